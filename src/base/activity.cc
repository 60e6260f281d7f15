/// \file
/// Hands each wait and each piece of work to the counters, the timeline and the overlap.
///
/// Thread safety: as activity.h.
#include "base/activity.h"

#include <new>
#include <type_traits>

namespace tidelane {
namespace internal {

constinit std::atomic<bool> recording_waits{true};

}  // namespace internal

namespace {

constinit std::atomic<bool> always{false};  // waits are recorded

// Trivially destructible, so it outlives static destruction.
constinit Overlap overlap;
static_assert(std::is_trivially_destructible_v<Overlap>);

constinit thread_local unsigned depth = 0;  // waits of this thread that have begun

// The end of the first wait of each kind, and how long everybody had waited until then.
struct FirstWait {
  std::atomic<uint64_t> end_ns{0};
  std::atomic<uint64_t> waited_ns{0};
};
constinit FirstWait first_waits[kWaitCount];
constinit std::atomic<uint64_t> waited_ns{0};

constexpr WaitKind kKinds[] = {
#define X(name, span, key, label) \
  {Counter::kWait##name##Ns, Counter::kWaits##name, SpanKind::span, key, label},
    TL_WAITS(X)
#undef X
};

void Trace(SpanKind kind, uint64_t begin_ns, uint64_t end_ns, uint64_t bytes) {
  if (!internal::tracing.load(std::memory_order_relaxed)) return;
  internal::RecordSpan(kind, begin_ns, end_ns, bytes);
}

}  // namespace

void RecordWaits(bool record) {
  const bool wanted = record || always.load(std::memory_order_relaxed);
  internal::recording_waits.store(wanted, std::memory_order_relaxed);
}

void RecordWaitsAlways() {
  always.store(true, std::memory_order_relaxed);
  RecordWaits(true);
}

const WaitKind& KindOf(Wait wait) { return kKinds[static_cast<unsigned>(wait)]; }

void Waiting::Begin() {
  running_ = true;
  begin_ns_ = NowNs();
  if (recorded_ && depth++ == 0) overlap.WaitBegins(begin_ns_);
}

uint64_t Waiting::Stop() {
  if (!running_) return 0;
  running_ = false;
  const uint64_t end_ns = end_ns_ = NowNs();
  const uint64_t ns = end_ns - begin_ns_;
  if (!recorded_) return ns;
  const WaitKind& kind = KindOf(wait_);
  Trace(kind.span, begin_ns_, end_ns, bytes_);
  if (--depth != 0) return ns;
  overlap.WaitEnds(end_ns);
  Count(kind.ns, ns);
  if (how_ != kRest) Count(kind.times);
  const uint64_t waited = waited_ns.fetch_add(ns, std::memory_order_relaxed) + ns;
  FirstWait& first = first_waits[static_cast<unsigned>(wait_)];
  uint64_t none = 0;
  if (first.end_ns.load(std::memory_order_relaxed) == 0 &&
      first.end_ns.compare_exchange_strong(none, end_ns, std::memory_order_relaxed)) {
    first.waited_ns.store(waited, std::memory_order_relaxed);
  }
  return ns;
}

uint64_t FreeTimeAfter(Wait wait) {
  const FirstWait& first = first_waits[static_cast<unsigned>(wait)];
  const uint64_t end_ns = first.end_ns.load(std::memory_order_relaxed);
  if (end_ns == 0) return 0;
  const uint64_t since = NowNs() - end_ns;
  const uint64_t waited =
      waited_ns.load(std::memory_order_relaxed) - first.waited_ns.load(std::memory_order_relaxed);
  return since > waited ? since - waited : 0;  // threads may wait at the same time
}

Working::Working(uint64_t bytes) : bytes_(bytes), begin_ns_(NowNs()) {
  overlap.WorkBegins(begin_ns_);
}

uint64_t Working::Stop() {
  if (!running_) return 0;
  running_ = false;
  const uint64_t end_ns = NowNs();
  overlap.WorkEnds(end_ns);
  Trace(SpanKind::kPwrite, begin_ns_, end_ns, bytes_);
  Count(Counter::kLaneBusyNs, end_ns - begin_ns_);
  return end_ns - begin_ns_;
}

Overlap::Totals ReadOverlap() { return overlap.At(NowNs()); }

void ResetActivityAfterFork() {
  new (&overlap) Overlap();  // another thread may have been inside: it is not here
  depth = 0;
  waited_ns.store(0, std::memory_order_relaxed);
  for (FirstWait& first : first_waits) first.end_ns.store(0, std::memory_order_relaxed);
}

}  // namespace tidelane
