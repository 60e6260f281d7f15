#include "throttle/meter.h"

#include <algorithm>
#include <bit>

namespace tidelane::throttle {

namespace {

uint64_t transfer_ns(uint64_t bytes, uint64_t bytes_per_second) {
  if (bytes_per_second == 0) return 0;
  // A request is at most a few MiB, so the product stays far below 2^64.
  return bytes * 1'000'000'000ull / bytes_per_second;
}

int size_class(uint64_t bytes) { return bytes <= 1 ? 0 : std::bit_width(bytes - 1); }

}  // namespace

uint64_t Meter::book(Kind kind, uint64_t now_ns, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  Counters& c = kind == Kind::kRead ? reads_ : writes_;
  ++c.requests;
  c.bytes += bytes;
  ++c.by_size[std::min(size_class(bytes), kClasses - 1)];
  pipe_free_ns_ = std::max(now_ns, pipe_free_ns_) + transfer_ns(bytes, cost_.bytes_per_second);
  return pipe_free_ns_ + cost_.latency_ns;
}

void Meter::reset_counters() {
  const std::lock_guard lock(mutex_);
  reads_ = Counters{};
  writes_ = Counters{};
}

std::string Meter::json_of(const Counters& c) {
  std::string s = "{\"requests\":" + std::to_string(c.requests) +
                  ",\"bytes\":" + std::to_string(c.bytes) + ",\"up_to\":{";
  bool first = true;
  for (int k = 0; k < kClasses; ++k) {
    if (c.by_size[k] == 0) continue;
    if (!first) s += ',';
    first = false;
    s += '"' + std::to_string(1ull << k) + "\":" + std::to_string(c.by_size[k]);
  }
  return s + "}}";
}

std::string Meter::json() const {
  const std::lock_guard lock(mutex_);
  return "{\"latency_ns\":" + std::to_string(cost_.latency_ns) +
         ",\"bytes_per_second\":" + std::to_string(cost_.bytes_per_second) +
         ",\"reads\":" + json_of(reads_) + ",\"writes\":" + json_of(writes_) + "}\n";
}

}  // namespace tidelane::throttle
