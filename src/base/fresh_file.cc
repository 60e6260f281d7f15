#include "base/fresh_file.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <ctime>

namespace tidelane {
namespace {

constexpr int kTries = 16;  // a name that exists already is somebody's attempt, or a miracle

// Where the system has no generator (before Linux 3.17, or forbidden): different in each process and at each call, though not
// beyond guessing. Files are created with O_EXCL in any case.
uint64_t Unlike() {
  static constinit std::atomic<uint64_t> calls;
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  uint64_t bits = static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 +
                  static_cast<uint64_t>(now.tv_nsec) + (static_cast<uint64_t>(getpid()) << 40) +
                  calls.fetch_add(0x9e3779b97f4a7c15);
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;  // SplitMix64
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return bits ^ (bits >> 31);
}

}  // namespace

uint64_t RandomBits() {
  uint64_t bits = 0;
  // Without waiting: early in a machine's life the generator may not be ready.
  if (getrandom(&bits, sizeof bits, GRND_NONBLOCK) != sizeof bits) bits = Unlike();
  return bits == 0 ? 1 : bits;
}

int CreateFresh(const std::string& beside, mode_t mode, std::string& name) {
  for (int i = 0; i < kTries; ++i) {
    char random[24];
    std::snprintf(random, sizeof random, ".%016" PRIx64, RandomBits());
    name = beside + random;
    const int descriptor =
        open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (descriptor >= 0 || errno != EEXIST) return descriptor;
  }
  return -1;
}

}  // namespace tidelane
