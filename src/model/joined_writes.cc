#include "model/joined_writes.h"

namespace tidelane::model {

JoinedWrites& JoinedWrites::OfProgram() {
  static constinit JoinedWrites program;
  return program;
}

double JoinedWrites::JoinedNs(double bytes) const {
  const double seen = known_.joined_bytes + phase_.joined_bytes;
  return seen == 0 ? 0 : bytes / seen * (known_.joined_ns + phase_.joined_ns);
}

void JoinedWrites::Begin(uint64_t now_ns) {
  if (phase_.bytes == 0 || now_ns <= last_end_ns_) return;
  const uint64_t asked = asked_ns_.get();
  const uint64_t until = asked == 0 ? now_ns : std::clamp(asked, last_end_ns_, now_ns);
  phase_.slack_ns += static_cast<double>(until - last_end_ns_);
  const auto paused = static_cast<double>(now_ns - last_end_ns_);
  if (paused < std::max(kShortestNs, kShare * JoinedNs(phase_.bytes))) return;
  known_.bytes = kKept * known_.bytes + phase_.bytes;
  known_.slack_ns = kKept * known_.slack_ns + phase_.slack_ns;
  if (phase_.joined_bytes != 0) {  // what joining takes is forgotten only for what it takes now
    known_.joined_bytes = kKept * known_.joined_bytes + phase_.joined_bytes;
    known_.joined_ns = kKept * known_.joined_ns + phase_.joined_ns;
  }
  phase_ = {};
}

void JoinedWrites::End(uint64_t now_ns, uint64_t bytes, uint64_t joined_ns) {
  phase_.bytes += static_cast<double>(bytes);
  if (joined_ns != 0) {
    phase_.joined_bytes += static_cast<double>(bytes);
    phase_.joined_ns += static_cast<double>(joined_ns);
  }
  last_end_ns_ = now_ns;
  asked_ns_.Set(0);
}

bool JoinedWrites::Hidden(double times_longer) const {
  if (known_.bytes == 0 || known_.joined_bytes == 0) return false;
  const double slack = known_.slack_ns / known_.bytes;
  return slack > (times_longer - kCheaper) * known_.joined_ns / known_.joined_bytes;
}

}  // namespace tidelane::model
