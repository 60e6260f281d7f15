#include "conformance/storage_gate.h"

#include <dlfcn.h>
#include <sys/uio.h>

#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace tidelane::testing::storage {
namespace {

constexpr int kNoLimit = INT32_MAX;

struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  int admitted = kNoLimit;
  int waiting = 0;
  int error = 0;
  int failed = 0;
};

// Never destroyed: lanes may write until the process ends.
Gate& gate() {
  static auto* const instance = new Gate;
  return *instance;
}

// 0, or the errno to fail with.
int pass() {
  Gate& at = gate();
  std::unique_lock lock(at.mutex);
  ++at.waiting;
  at.changed.notify_all();
  at.changed.wait(lock, [&] { return at.admitted > 0; });
  --at.waiting;
  if (at.admitted != kNoLimit) --at.admitted;
  if (at.error == 0) return 0;
  ++at.failed;
  at.changed.notify_all();
  return at.error;
}

}  // namespace

void hold(int admitted) {
  std::lock_guard const lock(gate().mutex);
  gate().admitted = admitted;
}

void release() {
  {
    std::lock_guard const lock(gate().mutex);
    gate().admitted = kNoLimit;
  }
  gate().changed.notify_all();
}

void release_after(std::chrono::milliseconds delay) {
  std::thread([delay] {
    std::this_thread::sleep_for(delay);
    release();
  }).detach();
}

bool wait_held() {
  Gate& at = gate();
  std::unique_lock lock(at.mutex);
  return at.changed.wait_for(lock, std::chrono::seconds(10),
                             [&] { return at.waiting > 0 && at.admitted == 0; });
}

void fail_with(int error) {
  std::lock_guard const lock(gate().mutex);
  gate().error = error;
}

bool wait_failed() {
  Gate& at = gate();
  std::unique_lock lock(at.mutex);
  return at.changed.wait_for(lock, std::chrono::seconds(10), [&] { return at.failed > 0; });
}

}  // namespace tidelane::testing::storage

// The name that the plugin's calls are bound to, large-file suffix included.
extern "C" __attribute__((visibility("default"))) ssize_t pwritev(int fd, const iovec* parts,
                                                                  int count, off_t offset) {
  using Pwritev = ssize_t (*)(int, const iovec*, int, off_t);
  static const auto next = reinterpret_cast<Pwritev>(dlsym(RTLD_NEXT, "pwritev64"));
  if (const int error = tidelane::testing::storage::pass(); error != 0) {
    errno = error;
    return -1;
  }
  return next(fd, parts, count, offset);
}
