#include "engine/backlog.h"

#include <algorithm>

namespace tidelane {
namespace {

constexpr uint64_t kMib = 1u << 20;
constexpr uint64_t kTelling = 16 * 1024;       // shorter requests say little about storage,
constexpr uint64_t kTellingRate = 256 * 1024;  // and these little about how much passes
// Storage that answers as memory does: so long for each MiB, besides what a request takes.
constexpr uint64_t kQuickMibNs = 1'000'000;

}  // namespace

Backlog::Backlog(const Times& times) : times_(times), ns_per_mib_(kQuickMibNs) {}

bool Backlog::Opened(uint64_t device, bool promises) {
  std::atomic<uint64_t>& slot = Slot(device);
  const bool known = (slot.load(std::memory_order_relaxed) & ~uint64_t{1}) == Name(device);
  if (!known) slot.store(Name(device) | (promises ? 1 : 0), std::memory_order_relaxed);
  return QuickOn(device);
}

uint64_t Backlog::Begin(uint64_t now_ns, uint64_t bytes, uint64_t most) {
  const uint64_t last_end = last_end_ns_.load(std::memory_order_relaxed);
  const uint64_t pause = last_end == 0 || now_ns < last_end ? 0 : now_ns - last_end;
  if (pause >= times_.shortest_pause_ns) {
    const bool nothing_to_hide = burst_bytes() < kLittle;
    burst_bytes_.store(0, std::memory_order_relaxed);
    const bool asked = asked_.exchange(false, std::memory_order_relaxed);
    const uint64_t storable = pause / (ns_per_mib_.load(std::memory_order_relaxed) + 1) * kMib;
    allowance_.store(asked || nothing_to_hide ? 0 : std::min(storable, most),
                     std::memory_order_relaxed);
  }
  burst_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  return allowance_.load(std::memory_order_relaxed);
}

bool Backlog::Pausing(uint64_t now_ns) const {
  return now_ns >= last_end_ns_.load(std::memory_order_relaxed) + times_.shortest_pause_ns;
}

uint64_t Backlog::Expected(uint64_t now_ns) const {
  if (!Pausing(now_ns) || asked_.load(std::memory_order_relaxed)) return 0;
  return burst_bytes_.load(std::memory_order_relaxed);
}

void Backlog::Asked(uint64_t now_ns) {
  const uint64_t burst = burst_bytes_.load(std::memory_order_relaxed);
  const uint64_t last_end = last_end_ns_.load(std::memory_order_relaxed);
  const uint64_t takes = burst / kMib * ns_per_mib_.load(std::memory_order_relaxed);
  if (now_ns > last_end + takes) return;
  asked_.store(true, std::memory_order_relaxed);
  allowance_.store(0, std::memory_order_relaxed);
}

bool Backlog::Stored(uint64_t device, uint64_t bytes, uint64_t ns) {
  const bool quick = ns < times_.quick_request_ns + bytes * kQuickMibNs / kMib;
  if (bytes >= kTelling)
    Slot(device).store(Name(device) | (quick ? 1 : 0), std::memory_order_relaxed);
  if (bytes >= kTellingRate) {
    const uint64_t before = ns_per_mib_.load(std::memory_order_relaxed);
    ns_per_mib_.store((3 * before + ns * kMib / bytes) / 4, std::memory_order_relaxed);
  }
  return quick;
}

}  // namespace tidelane
