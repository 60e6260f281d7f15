#include "file/flush_planner.h"

#include <algorithm>

namespace tidelane {
namespace {

constexpr unsigned kPatience = 250;       // scattered extents linger so many times longer,
constexpr unsigned kSharedPatience = 10;  // or so many, where other ranks may wait for them
// What the program gathers where it stores itself: the same memory is filled again and again, and stays in its caches.
constexpr uint64_t kGathered = uint64_t{256} * 1024;
constexpr uint64_t kScatteredGathered = uint64_t{512} * 1024;
// Where many files gather, that is memory that is in no cache, and fresh: each gathers as much then as HDF5's sieve natively does.
constexpr uint64_t kGatheredByAll = uint64_t{32} << 20;
constexpr uint64_t kGatheredOfMany = uint64_t{64} * 1024;
// For ever, as far as a clock that counts nanoseconds can say it: thirty years.
constexpr uint64_t kLongestUs = uint64_t{1'000'000'000} * 1'000'000;

}  // namespace

bool FlushPlanner::ShouldStoreInline(const PendingMap& pending, uint64_t in_arena) {
  const uint64_t enough = in_arena >= kGatheredByAll ? kGatheredOfMany
                          : Patient(pending)         ? kScatteredGathered
                                                     : kGathered;
  return pending.queued_bytes() >= enough || pending.queued_extents() >= kManyExtents;
}

std::optional<FlushPlanner::Clock::duration> FlushPlanner::Linger(const LingerTerms& terms) {
  if (since_.has_value() || terms.paused) return std::nullopt;
  const Clock::duration linger = std::chrono::microseconds(
      std::min(terms.delay_us != 0 ? terms.delay_us : terms.linger_us, kLongestUs));
  since_ = Clock::now();
  due_ = *since_ + linger;
  return linger;
}

std::optional<FlushPlanner::Clock::duration> FlushPlanner::Look(const PendingMap& pending,
                                                                const LingerTerms& terms,
                                                                bool any_time) {
  if (!since_.has_value()) return std::nullopt;
  if (terms.paused) {
    since_.reset();
    return std::nullopt;
  }
  const auto now = Clock::now();
  if (!any_time) {
    if (now < due_) return std::nullopt;
    const auto patience = std::chrono::microseconds(
        terms.linger_us * (terms.others_wait ? kSharedPatience : kPatience));
    if (terms.delay_us == 0 && Patient(pending) && now < *since_ + patience) {
      due_ = *since_ + patience;
      return due_ - now;
    }
  }
  since_.reset();
  sweep_extents_ = pending.ordinary();
  return std::nullopt;
}

}  // namespace tidelane
