// What a request costs on the simulated storage, and how many requests there were.
//
// The storage is one pipe: every request waits a fixed latency, and all requests share one
// bandwidth. Latencies of concurrent requests overlap, their bytes do not:
//
//     transfer starts   max(now, when the pipe is free)
//     pipe free again   transfer start + bytes / bandwidth
//     request ends      pipe free again + latency
//
// One caller at a time therefore sees latency + bytes / bandwidth per request, and many callers
// together see the bandwidth. Nothing here sleeps or reads a clock: the caller does.
//
// Invariant: the pipe's virtual time never goes back.
// Thread safety: every member function may be called from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>

namespace tidelane::throttle {

struct Cost {
  uint64_t latency_ns = 0;
  uint64_t bytes_per_second = 0;  // 0: no cap
};

enum class Kind { kRead, kWrite };

class Meter {
 public:
  explicit Meter(Cost cost) : cost_(cost) {}

  // Books a request of `bytes` that arrived at `now_ns`; returns when it is done.
  uint64_t book(Kind kind, uint64_t now_ns, uint64_t bytes);

  void reset_counters();
  std::string json() const;

 private:
  // Requests are counted by size class: class k holds sizes in (2^(k-1), 2^k].
  static constexpr int kClasses = 33;
  struct Counters {
    uint64_t requests = 0;
    uint64_t bytes = 0;
    std::array<uint64_t, kClasses> by_size{};
  };
  static std::string json_of(const Counters& c);

  const Cost cost_;
  mutable std::mutex mutex_;
  uint64_t pipe_free_ns_ = 0;
  Counters reads_;
  Counters writes_;
};

}  // namespace tidelane::throttle
