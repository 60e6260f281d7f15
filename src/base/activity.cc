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

// Trivially destructible, so it outlives static destruction.
constinit Overlap overlap;
static_assert(std::is_trivially_destructible_v<Overlap>);

constinit thread_local unsigned depth = 0;  // waits of this thread that have begun

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

const WaitKind& KindOf(Wait wait) { return kKinds[static_cast<unsigned>(wait)]; }

void Waiting::Begin() {
  running_ = true;
  begin_ns_ = NowNs();
  if (recorded_ && depth++ == 0) overlap.WaitBegins(begin_ns_);
}

uint64_t Waiting::Stop() {
  if (!running_) return 0;
  running_ = false;
  const uint64_t end_ns = NowNs();
  const uint64_t ns = end_ns - begin_ns_;
  if (!recorded_) return ns;
  const WaitKind& kind = KindOf(wait_);
  Trace(kind.span, begin_ns_, end_ns, bytes_);
  if (--depth != 0) return ns;
  overlap.WaitEnds(end_ns);
  Count(kind.ns, ns);
  if (how_ != kRest) Count(kind.times);
  return ns;
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
}

}  // namespace tidelane
