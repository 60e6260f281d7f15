/// \file
/// How fast tiers become emptier, and how long it will take: from one look to the next, for `tidelane status --tier --watch`.
///
/// Invariant: what comes into a tier meanwhile makes nothing slower, and what waits for something is not promised.
/// Thread safety: one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "tools/tiers.h"

namespace tidelane::tools {

/// What the tiers had at one moment.
struct Seen {
  std::chrono::steady_clock::time_point at;
  std::vector<TieredFile> files;
};

Seen Look(const Places& places);

class DrainRate {
 public:
  explicit DrainRate(const Seen& first);

  void Add(const Seen& now);
  /// A line; empty: nothing went, and nothing waits.
  std::string InWords() const;

 private:
  struct Sum {
    std::chrono::steady_clock::time_point at;
    uint64_t drained;  // since the first look
  };

  std::vector<TieredFile> files_;  // of the last look
  std::deque<Sum> sums_;           // of the last seconds
};

}  // namespace tidelane::tools
