/// \file
/// A weighted average of the last values: each new one counts for a fixed share, the first ones for as much as there are
/// of them (the first for all, the second for a half).
///
/// Invariant: the mean lies between the smallest and the largest value added.
/// Thread safety: a value.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace tidelane::model {

class RecentMean {
 public:
  constexpr RecentMean() = default;
  explicit constexpr RecentMean(double share) : share_(share) {}

  /// `weight`: less than 1 for a value that is to count for less.
  void Add(double value, double weight = 1) {
    if (!std::isfinite(value)) return;
    ++count_;
    const double full = std::max(share_, 1.0 / static_cast<double>(count_));
    const double share = count_ == 1 ? 1 : full * std::clamp(weight, 0.0, 1.0);
    const double step = value - mean_;
    mean_ += share * step;
    variance_ = (1 - share) * (variance_ + share * step * step);
  }
  /// As if `count` values had been added, with this outcome.
  void Set(uint64_t count, double mean, double deviation) {
    count_ = count, mean_ = mean, variance_ = deviation * deviation;
  }

  /// As if `newer`'s values had been added: their outcome counts by their number, old values by as many as they were or
  /// as still count.
  void Merge(const RecentMean& newer) {
    if (newer.count_ == 0) return;
    const double still = std::min(static_cast<double>(count_), 1 / share_);
    const double share =
        static_cast<double>(newer.count_) / (still + static_cast<double>(newer.count_));
    const double step = newer.mean_ - mean_;
    mean_ += share * step;
    variance_ = (1 - share) * (variance_ + share * step * step) + share * newer.variance_;
    count_ += newer.count_;
  }

  uint64_t count() const { return count_; }
  double mean() const { return mean_; }
  double deviation() const { return std::sqrt(variance_); }

 private:
  double share_ = 0.25;
  uint64_t count_ = 0;
  double mean_ = 0;
  double variance_ = 0;
};

}  // namespace tidelane::model
