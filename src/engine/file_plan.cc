// When queued bytes are worth storing: at once, after lingering for neighbours, or when somebody waits for them.
#include <algorithm>
#include <chrono>

#include "engine/file.h"

namespace tidelane {
namespace {

constexpr uint64_t kRunBytes = 1u << 20;  // a request worth making
constexpr uint64_t kScatteredMean =
    uint64_t{16} * 1024;  // smaller extents, on average, are worth more with their neighbours
constexpr unsigned kPatience = 250;       // and linger so many times longer,
constexpr unsigned kSharedPatience = 10;  // or so many, where other ranks may wait for them
// What the program gathers where it stores itself: the same memory is filled again and again, and stays in its caches.
constexpr uint64_t kGathered = uint64_t{256} * 1024;
constexpr uint64_t kScatteredGathered = uint64_t{512} * 1024;
// For ever, as far as a clock that counts nanoseconds can say it: thirty years.
constexpr uint64_t kLongestUs = uint64_t{1'000'000'000} * 1'000'000;
constexpr size_t kManyExtents = 1u << 16;  // what one sweep has to merge

}  // namespace

void File::KickLocked() {
  if (scheduled_ || storing_here_) return;
  lanes_.Schedule(shared_from_this());  // first: there may be no memory
  scheduled_ = true;
}

bool File::PatientLocked() const {
  // Written at once, scattered bytes cost a request each, and bytes that keep being replaced cost one every time. Both
  // lose nothing by waiting: a flush, a close, a request or a full arena ends it.
  const uint64_t bytes = pending_.queued_bytes();
  const size_t extents = pending_.queued_extents();
  return extents > 1 && (bytes / extents < kScatteredMean || pending_.replaced_bytes() > bytes);
}

bool File::WorthwhileLocked() const {
  if (urgent_ || drain_wanted_ || sweep_extents_ != 0) return true;
  if (order_ == PendingMap::Order::kHeldFirst && pending_.HeldPending()) return true;
  if (pending_.queued_extents() >= kManyExtents) return true;
  if (HeldBackLocked()) return false;
  return pending_.queued_bytes() >=
         (PatientLocked() ? std::max(arena_.cap() / 4, kRunBytes) : kRunBytes);
}

bool File::GatheredEnoughLocked() const {
  if (!ProgramStoresLocked() || scheduled_ || storing_here_) return false;
  return pending_.queued_bytes() >= (PatientLocked() ? kScatteredGathered : kGathered) ||
         pending_.queued_extents() >= kManyExtents;
}

void File::PlanLocked() {
  if (ProgramStoresLocked()) return;
  // Another rank may be on its way to read it: it would wait out the linger.
  if (board_ != nullptr && pending_.ordinary() != 0 && board_->awaited()) urgent_ = true;
  if (WorthwhileLocked()) {
    KickLocked();
  } else if (!lingering_ && !settings_.paused && pending_.ordinary() != 0) {
    lingering_since_ = std::chrono::steady_clock::now();
    const uint64_t delay_us = settings_.delay_us;
    LingerLocked(std::chrono::microseconds(
        std::min(delay_us != 0 ? delay_us : config_.linger_us, kLongestUs)));
    lingering_ = true;
  }
}

void File::LingerLocked(std::chrono::steady_clock::duration linger) {
  linger_due_ = lingering_since_ + linger;
  lanes_.ScheduleAfter(shared_from_this(), linger_due_ - std::chrono::steady_clock::now());
}

bool File::LingeredEnoughLocked() {
  if (!lingering_) return false;
  if (settings_.paused) {
    lingering_ = false;
    return false;
  }
  if (lanes_.threaded()) {
    const auto now = std::chrono::steady_clock::now();
    if (now < linger_due_) return false;
    const auto patience =
        std::chrono::microseconds(config_.linger_us * (shared_ ? kSharedPatience : kPatience));
    if (settings_.delay_us == 0 && PatientLocked() && now < lingering_since_ + patience) {
      LingerLocked(patience);
      return false;
    }
  }
  lingering_ = false;
  return true;
}

}  // namespace tidelane
