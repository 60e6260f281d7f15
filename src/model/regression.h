/// \file
/// Least squares of one value on up to two others, from running sums: what was seen is not kept.
///
/// Means and co-moments are carried along (Welford's way, with weights), never sums of squares, so that a small spread
/// around a large mean is not lost. Sums of two runs can be put together, and old ones made to count less.
///
/// Invariant: weight() >= 0 and every variance is >= 0, whatever was added; a fit never divides by what is too small to
/// tell: a regressor that did not vary, or that only repeats the other one, is left out.
/// Thread safety: a value.
#pragma once

#include <array>
#include <optional>

namespace tidelane::model {

/// value = intercept + slope[0] * x[0] + slope[1] * x[1].
struct Fit {
  double intercept = 0;
  std::array<double, 2> slope{};
  /// How much of the values' variance the fit explains, from 0 to 1; nothing where they did not vary.
  std::optional<double> r2;
  double At(double x0, double x1) const { return intercept + slope[0] * x0 + slope[1] * x1; }
};

class Regression {
 public:
  /// What is not finite, or weighs nothing, is not added.
  void Add(double x0, double x1, double value, double weight = 1);
  /// As if all that `other` has seen had been added here.
  void Merge(const Regression& other);
  /// What was seen counts `factor` times as much from now on.
  void Fade(double factor);

  double weight() const { return weight_; }
  double mean_value() const { return mean_[2]; }
  double mean_x(unsigned which) const { return mean_[which]; }
  /// Nothing before the first value.
  std::optional<Fit> Solve() const;

  /// For the history file: weight, three means, six co-moments (00, 01, 02, 11, 12, 22).
  static constexpr unsigned kNumbers = 10;
  std::array<double, kNumbers> Numbers() const;
  /// False, and nothing changed, where no data could have given these numbers.
  bool SetNumbers(const std::array<double, kNumbers>& numbers);

 private:
  enum Moment : unsigned { k00, k01, k0y, k11, k1y, kyy };

  double weight_ = 0;
  std::array<double, 3> mean_{};
  std::array<double, 6> moment_{};
};

}  // namespace tidelane::model
