/// \file
/// What a copy costs: t_overhead, from the bandwidth of copies that were measured, by the size of one write.
///
/// Sizes are told apart by powers of two. Between two that were measured the cost of a byte is interpolated; beyond the
/// largest it stays what it is there, as published (constant from 32 MiB on).
///
/// Invariant: a cost is never negative, and zero only for no bytes or where nothing was measured.
/// Thread safety: a value.
#pragma once

#include <array>
#include <cstdint>

#include "model/recent_mean.h"

namespace tidelane::model {

class CopyCost {
 public:
  static constexpr unsigned kSmallestPower = 12;  // 4 KiB, and below
  static constexpr unsigned kSizes = 16;          // to 128 MiB, and above

  /// `bytes` were copied in writes of `write_bytes` each, in `seconds` together.
  void Add(double write_bytes, double bytes, double seconds);
  void Merge(const CopyCost& other);
  bool known() const;
  /// Of `bytes` in writes of `write_bytes` each.
  double Seconds(double write_bytes, double bytes) const;

  /// By power of two: how many measurements, and seconds a byte.
  using State = std::array<RecentMean, kSizes>;
  const State& state() const { return costs_; }
  bool SetState(const State& state);

 private:
  State costs_;
};

/// Copies a little memory now and measures it, some tenths of a millisecond: where nothing is known.
void CalibrateCopy(CopyCost& cost);

}  // namespace tidelane::model
