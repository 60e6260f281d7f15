#include "tier/pace.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace tidelane::tier {
namespace {

using Clock = std::chrono::steady_clock;
// So long does somebody who wants the file wait for who sleeps here.
constexpr auto kLook = std::chrono::milliseconds(20);

}  // namespace

std::chrono::nanoseconds Rate::Left() const {
  if (bytes_ == 0) return {};
  MutexLock lock(mutex_);
  return free_at_ - Clock::now();
}

void Rate::Wrote(uint64_t bytes) {
  if (bytes_ == 0) return;
  const std::chrono::duration<double> takes(static_cast<double>(bytes) /
                                            static_cast<double>(bytes_));
  MutexLock lock(mutex_);
  free_at_ = std::max(free_at_, Clock::now()) + std::chrono::duration_cast<Clock::duration>(takes);
}

void Pace::Begin(uint64_t before, std::function<void()> passed) {
  bytes_ = 0;
  writes_ = false;
  before_ = before;
  passed_ = std::move(passed);
}

int Pace::Await(const std::function<int()>& may_change) {
  writes_ = true;
  for (;;) {
    if (const int error = may_change(); error != 0) return error;
    const std::chrono::nanoseconds left = rate_.Left();
    if (left <= std::chrono::nanoseconds::zero()) return 0;
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(left, kLook));
  }
}

void Pace::Wrote(uint64_t bytes) {
  bytes_ += bytes;
  rate_.Wrote(bytes);
  if (bytes_ > before_ && passed_) std::exchange(passed_, nullptr)();
}

}  // namespace tidelane::tier
