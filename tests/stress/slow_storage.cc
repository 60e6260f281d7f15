// Preloaded, makes writes to storage take a random while (up to STRESS_SLOW_US microseconds), so that
// extents stay pending, several requests are in flight and files drain for long after their close.
// Local disks are too fast to show what goes wrong then. STRESS_PROCESSORS has a process believe that it may run on so many
// processors, so that filters get as many threads.
//
// Thread safety: every thread draws from its own generator.
#include <dlfcn.h>
#include <sched.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

unsigned most_us() {
  static const unsigned value = [] {
    const char* text = std::getenv("STRESS_SLOW_US");
    return text == nullptr ? 0u : static_cast<unsigned>(std::atoi(text));
  }();
  return value;
}

// Native's files (in b/) stay fast: they are the oracle, and their many small writes would take for ever.
bool on_the_plugins_side(int fd) {
  char link[64], path[512];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t n = ::readlink(link, path, sizeof path - 1);
  if (n <= 0) return false;
  path[n] = '\0';
  return std::strstr(path, "/a/") != nullptr;
}

void pause_a_while(int fd) {
  if (most_us() == 0 || !on_the_plugins_side(fd)) return;
  static std::atomic<uint64_t> threads{1};
  thread_local uint64_t state = threads.fetch_add(0x9e3779b97f4a7c15ULL);
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  // Half of the requests at once, half late: neighbours overtake each other.
  if ((state >> 20) % 2 == 0) ::usleep((state >> 24) % most_us());
}

template <class F>
F next(const char* name) {
  return reinterpret_cast<F>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

int sched_getaffinity(pid_t process, size_t size, cpu_set_t* set) noexcept {
  static const auto real = next<int (*)(pid_t, size_t, cpu_set_t*)>("sched_getaffinity");
  const int result = real(process, size, set);
  const char* const text = std::getenv("STRESS_PROCESSORS");
  for (int i = 0; result == 0 && text != nullptr && i < std::atoi(text); ++i)
    CPU_SET_S(static_cast<size_t>(i), size, set);
  return result;
}

ssize_t pwrite64(int fd, const void* data, size_t n, off64_t at) {
  static const auto real = next<ssize_t (*)(int, const void*, size_t, off64_t)>("pwrite64");
  pause_a_while(fd);
  return real(fd, data, n, at);
}

ssize_t pwritev64(int fd, const iovec* parts, int count, off64_t at) {
  static const auto real = next<ssize_t (*)(int, const iovec*, int, off64_t)>("pwritev64");
  pause_a_while(fd);
  return real(fd, parts, count, at);
}

int ftruncate64(int fd, off64_t size) noexcept {
  static const auto real = next<int (*)(int, off64_t)>("ftruncate64");
  pause_a_while(fd);
  return real(fd, size);
}

}  // extern "C"
