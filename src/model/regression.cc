#include "model/regression.h"

#include <algorithm>
#include <cmath>

namespace tidelane::model {
namespace {

// A spread below this part of the mean is rounding, and so is a determinant below this part of its largest.
constexpr double kNoSpread = 1e-12;
constexpr double kSameDirection = 1e-9;

// The pairs whose co-moments are kept, in the order of Regression::Moment.
constexpr unsigned kPairs[][2] = {{0, 0}, {0, 1}, {0, 2}, {1, 1}, {1, 2}, {2, 2}};

bool Varies(double moment, double weight, double mean) {
  const double deviation = std::sqrt(std::max(moment, 0.0) / weight);
  return deviation > kNoSpread * std::abs(mean) && deviation > 0;
}

}  // namespace

void Regression::Add(double x0, double x1, double value, double weight) {
  if (!std::isfinite(x0) || !std::isfinite(x1) || !std::isfinite(value)) return;
  if (!std::isfinite(weight) || weight <= 0) return;
  Regression one;
  one.weight_ = weight;
  one.mean_ = {x0, x1, value};
  Merge(one);
}

void Regression::Merge(const Regression& other) {
  if (other.weight_ <= 0) return;
  const double total = weight_ + other.weight_;
  const double share = other.weight_ / total;
  std::array<double, 3> step{};
  for (unsigned i = 0; i < 3; ++i) step[i] = other.mean_[i] - mean_[i];
  for (unsigned i = 0; i < 6; ++i) {
    moment_[i] += other.moment_[i] + step[kPairs[i][0]] * step[kPairs[i][1]] * weight_ * share;
  }
  for (unsigned i = 0; i < 3; ++i) mean_[i] += step[i] * share;
  weight_ = total;
}

void Regression::Fade(double factor) {
  weight_ *= factor;
  for (double& moment : moment_) moment *= factor;
}

std::optional<Fit> Regression::Solve() const {
  if (weight_ <= 0) return std::nullopt;
  Fit fit;
  bool use0 = Varies(moment_[k00], weight_, mean_[0]);
  bool use1 = Varies(moment_[k11], weight_, mean_[1]);
  const double determinant = moment_[k00] * moment_[k11] - moment_[k01] * moment_[k01];
  if (use0 && use1 && determinant <= kSameDirection * moment_[k00] * moment_[k11]) {
    // One repeats the other: the one that says more of the value stays.
    const double by0 = moment_[k0y] * moment_[k0y] / moment_[k00];
    const double by1 = moment_[k1y] * moment_[k1y] / moment_[k11];
    (by0 >= by1 ? use1 : use0) = false;
  }
  if (use0 && use1) {
    fit.slope[0] = (moment_[k0y] * moment_[k11] - moment_[k1y] * moment_[k01]) / determinant;
    fit.slope[1] = (moment_[k1y] * moment_[k00] - moment_[k0y] * moment_[k01]) / determinant;
  } else if (use0) {
    fit.slope[0] = moment_[k0y] / moment_[k00];
  } else if (use1) {
    fit.slope[1] = moment_[k1y] / moment_[k11];
  }
  fit.intercept = mean_[2] - fit.slope[0] * mean_[0] - fit.slope[1] * mean_[1];
  if (Varies(moment_[kyy], weight_, mean_[2])) {
    const double explained = fit.slope[0] * moment_[k0y] + fit.slope[1] * moment_[k1y];
    fit.r2 = std::clamp(explained / moment_[kyy], 0.0, 1.0);
  }
  return fit;
}

std::array<double, Regression::kNumbers> Regression::Numbers() const {
  std::array<double, kNumbers> numbers{};
  numbers[0] = weight_;
  std::copy(mean_.begin(), mean_.end(), numbers.begin() + 1);
  std::copy(moment_.begin(), moment_.end(), numbers.begin() + 4);
  return numbers;
}

bool Regression::SetNumbers(const std::array<double, kNumbers>& numbers) {
  for (const double number : numbers) {
    if (!std::isfinite(number)) return false;
  }
  Regression read;
  read.weight_ = numbers[0];
  std::copy_n(numbers.begin() + 1, 3, read.mean_.begin());
  std::copy_n(numbers.begin() + 4, 6, read.moment_.begin());
  const auto& m = read.moment_;
  if (read.weight_ < 0 || m[k00] < 0 || m[k11] < 0 || m[kyy] < 0) return false;
  // Cauchy and Schwarz, with room for rounding.
  constexpr double kRounding = 1 + 1e-6;
  const auto too_large = [](double cross, double a, double b) {
    return std::abs(cross) > std::sqrt(a) * std::sqrt(b) * kRounding;
  };
  if (too_large(m[k01], m[k00], m[k11]) || too_large(m[k0y], m[k00], m[kyy]) ||
      too_large(m[k1y], m[k11], m[kyy])) {
    return false;
  }
  *this = read;
  return true;
}

}  // namespace tidelane::model
