/// \file
/// Adds up the time between changes.
///
/// Thread safety: as overlap.h.
#include "base/overlap.h"

namespace tidelane {

void Overlap::Advance(uint64_t at_ns) {
  if (at_ns <= last_ns_) return;
  const uint64_t ns = at_ns - last_ns_;
  last_ns_ = at_ns;
  if (working_ == 0) return;
  totals_.storage_ns += ns;
  if (waiting_ == 0) totals_.hidden_ns += ns;
}

void Overlap::Change(int work, int wait, uint64_t at_ns) {
  MutexLock lock(mutex_);
  Advance(at_ns);
  working_ += work;
  waiting_ += wait;
}

Overlap::Totals Overlap::At(uint64_t at_ns) {
  MutexLock lock(mutex_);
  Advance(at_ns);
  return totals_;
}

}  // namespace tidelane
