#include "conformance/storage_gate.h"

#include <dlfcn.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tidelane::testing::storage {
namespace {

constexpr int kNoLimit = INT32_MAX;

std::string path_of(int fd) {
  char link[64];
  char path[4096];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof path);
  return length > 0 ? std::string(path, static_cast<size_t>(length)) : std::string();
}

// Lanes may be asking a plan while the test makes another: whatever a plan refers to is the test's again once it is replaced.
class PlanInForce {
 public:
  void replace(Plan plan) {
    const std::unique_lock lock(mutex_);
    plan_ = std::move(plan);
  }
  Fault ask(Kind kind, int fd, uint64_t address, uint64_t size) const {
    const std::shared_lock lock(mutex_);
    return plan_ ? plan_({kind, path_of(fd), address, size}) : Fault();
  }

 private:
  mutable std::shared_mutex mutex_;
  Plan plan_;
};

struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  int admitted = kNoLimit;
  int waiting = 0;
  int error = 0;
  pid_t failed_thread = 0;  // the last whose write failed so
  PlanInForce read_plan;
  PlanInForce plan;
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
  at.failed_thread = gettid();
  at.changed.notify_all();
  return at.error;
}

// Whether a thread of this process waits for something, or has ended.
bool sleeps(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return true;
  const size_t name_end = line.rfind(')');  // the state follows the name
  return name_end != std::string::npos && line.compare(name_end, 3, ") S") == 0;
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
  return at.changed.wait_for(lock, std::chrono::seconds(30),
                             [&] { return at.waiting > 0 && at.admitted == 0; });
}

void fail_with(int error) {
  std::lock_guard const lock(gate().mutex);
  gate().error = error;
}

bool wait_failed() {
  Gate& at = gate();
  const auto late = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  pid_t thread = 0;
  {
    std::unique_lock lock(at.mutex);
    if (!at.changed.wait_until(lock, late, [&] { return at.failed_thread != 0; })) return false;
    thread = at.failed_thread;
  }
  for (int asleep = 0; asleep < 3; std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
    if (std::chrono::steady_clock::now() > late) return false;
    asleep = sleeps(thread) ? asleep + 1 : 0;
  }
  return true;
}

void follow(Plan plan) { gate().plan.replace(std::move(plan)); }
void follow_reads(Plan plan) { gate().read_plan.replace(std::move(plan)); }

namespace {

template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

Fault ask(Kind kind, int fd, uint64_t address, uint64_t size) {
  const PlanInForce& plan = kind == Kind::kRead ? gate().read_plan : gate().plan;
  const int before = errno;
  const Fault fault = plan.ask(kind, fd, address, size);
  if (fault.delay.count() != 0) std::this_thread::sleep_for(fault.delay);
  errno = before;
  return fault;
}

ssize_t fail(int error) {
  errno = error;
  return -1;
}

std::vector<iovec> first_of(const iovec* parts, int count, uint64_t bytes) {
  std::vector<iovec> some;
  for (int i = 0; i < count && bytes != 0; ++i) {
    some.push_back(parts[i]);
    some.back().iov_len = std::min<uint64_t>(bytes, parts[i].iov_len);
    bytes -= some.back().iov_len;
  }
  return some;
}

ssize_t write(int fd, const iovec* parts, int count, off_t address) {
  using Pwritev = ssize_t (*)(int, const iovec*, int, off_t);
  static const auto real = next<Pwritev>("pwritev64");
  uint64_t size = 0;
  for (int i = 0; i < count; ++i) size += parts[i].iov_len;
  const Fault fault = ask(Kind::kWrite, fd, static_cast<uint64_t>(address), size);
  ssize_t done = 0;
  if (fault.written_first >= size) {
    done = real(fd, parts, count, address);
  } else if (const auto some = first_of(parts, count, fault.written_first); !some.empty()) {
    done = real(fd, some.data(), static_cast<int>(some.size()), address);
  }
  if (done < 0 || fault.error == 0) return fault.lies ? static_cast<ssize_t>(size) : done;
  return fail(fault.error);
}

}  // namespace
}  // namespace tidelane::testing::storage

// The names that the plugin's calls and HDF5's are bound to, large-file suffix included.
#define TL_REPLACES_LIBC extern "C" __attribute__((visibility("default")))

TL_REPLACES_LIBC ssize_t pwritev(int fd, const iovec* parts, int count, off_t offset) {
  namespace storage = tidelane::testing::storage;
  if (const int error = storage::pass(); error != 0) return storage::fail(error);
  return storage::write(fd, parts, count, offset);
}

TL_REPLACES_LIBC ssize_t pwrite(int fd, const void* bytes, size_t size, off_t offset) {
  const iovec part{const_cast<void*>(bytes), size};
  return tidelane::testing::storage::write(fd, &part, 1, offset);
}

TL_REPLACES_LIBC ssize_t pread(int fd, void* bytes, size_t size, off_t offset) {
  namespace storage = tidelane::testing::storage;
  static const auto real = storage::next<ssize_t (*)(int, void*, size_t, off_t)>("pread64");
  const auto fault = storage::ask(storage::Kind::kRead, fd, static_cast<uint64_t>(offset), size);
  return fault.error != 0 ? storage::fail(fault.error) : real(fd, bytes, size, offset);
}

TL_REPLACES_LIBC int ftruncate(int fd, off_t size) noexcept {
  namespace storage = tidelane::testing::storage;
  static const auto real = storage::next<int (*)(int, off_t)>("ftruncate64");
  const auto fault = storage::ask(storage::Kind::kTruncate, fd, static_cast<uint64_t>(size), 0);
  if (fault.error != 0) return static_cast<int>(storage::fail(fault.error));
  return fault.lies ? 0 : real(fd, size);
}

// As close(2): the descriptor is gone even when it fails.
TL_REPLACES_LIBC int close(int fd) {
  namespace storage = tidelane::testing::storage;
  static const auto real = storage::next<int (*)(int)>("close");
  const auto fault = storage::ask(storage::Kind::kClose, fd, 0, 0);
  const int result = real(fd);
  return fault.error != 0 ? static_cast<int>(storage::fail(fault.error)) : result;
}
