#include "file/write_policy.h"

#include "extent/test_hooks.h"

namespace tidelane {
namespace {

constexpr uint64_t kLongestRun =
    1u << 20;  // longer writes hold the inode's lock against the program's own
constexpr uint64_t kLongPiece =
    4096;  // on quick storage a request takes no longer than reading and writing so much again
constexpr uint64_t kWidestGap = uint64_t{64} * 1024;  // the window of HDF5's sieve, as natively

}  // namespace

WriteCosts::WriteBudget WriteCosts::Begin(uint64_t now_ns, const std::string& path, Mode mode,
                                          uint64_t room, uint64_t held, uint64_t size) const {
  const WriteBudget allowed = cost_model_->Begin(
      now_ns, {.device = device_, .file = path, .mode = mode, .room = room, .held = held}, size);
  if (MutationEnabled("whims")) return {Randomized(true) ? UINT64_MAX : 0, Randomized(true)};
  return allowed;
}

bool WriteCosts::Defers() const { return Randomized(cost_model_->Defers(device_)); }

bool WriteCosts::IsQuick() const { return Randomized(cost_model_->QuickOn(device_)); }

bool WriteCosts::Stored(uint64_t bytes, uint64_t begin_ns, uint64_t end_ns) const {
  return Randomized(cost_model_->Stored(device_, bytes, begin_ns, end_ns));
}

// Joining a piece saves a request, and costs twice the gap before it and the piece once more: nothing is lost where half of what
// storage takes in the time of a request is more than both together.
RunLimits WritePolicy::Runs(bool alone) const {
  RunLimits limits{.bytes = kLongestRun};
  if (!alone) return limits;
  if (settings_.gap_bytes == UINT64_MAX) {
    const uint64_t worth = quick_ ? 2 * kLongPiece : costs_.WorthARequest(2 * kLongPiece);
    limits.gap = std::clamp(worth / 2, kLongPiece, kWidestGap);
    limits.long_piece = std::max(worth / 2, kLongPiece);
  } else {
    limits.gap = settings_.gap_bytes;
    if (quick_) limits.long_piece = kLongPiece;
  }
  return limits;
}

}  // namespace tidelane
