#include "model/io_rate.h"

#include <algorithm>
#include <cmath>

namespace tidelane::model {
namespace {

constexpr double kBeyondSeen = 2;
constexpr double kFading = 0.98;  // a measurement after fifty others counts for a third
constexpr double kMostError = 10;
// Forms that err alike take turns otherwise: the first ones are the published ones.
constexpr double kClearlyBetter = 0.9;

// What a form makes regressors of.
double Scaled(Form form, double x) { return form == Form::kLinearLog ? std::log(x) : x; }

// A rate that grows faster than the size would make larger transfers take less time.
double RateAt(Form form, const Fit& fit, const Regression& sums, double bytes, double ranks) {
  const double x = Scaled(form, bytes);
  const double of_ranks = fit.intercept + fit.slope[1] * Scaled(form, ranks);
  const double slope = fit.slope[0];
  if (form == Form::kLinearLog) return std::max(of_ranks + slope * x, slope);
  if (of_ranks >= 0 || slope <= 0) return of_ranks + slope * x;
  return bytes * sums.mean_value() / sums.mean_x(0);
}

double TimeAt(const Fit& fit, const Regression& sums, double bytes, double ranks) {
  const double of_ranks = fit.intercept + fit.slope[1] * ranks;
  if (fit.slope[0] > 0 && of_ranks >= 0) return of_ranks + fit.slope[0] * bytes;
  return bytes * sums.mean_value() / sums.mean_x(0);
}

}  // namespace

const char* Name(Form form) {
  constexpr const char* kNames[] = {"linear", "linear-log", "time"};
  return kNames[static_cast<unsigned>(form)];
}

void IoRate::Add(double bytes, double ranks, double seconds) {
  if (!(bytes >= 1) || !(ranks >= 1) || !(seconds > 0)) return;
  const double rate = bytes / seconds;
  if (!std::isfinite(rate) || !std::isfinite(ranks)) return;
  for (unsigned i = 0; i < kForms; ++i) {
    const auto expected = PredictBy(static_cast<Form>(i), bytes, ranks);
    if (!expected) continue;
    errors_[i].Add(std::min(std::abs(expected->seconds - seconds) / seconds, kMostError));
  }
  for (Regression& sums : sums_) sums.Fade(kFading);
  sums_[0].Add(bytes, ranks, rate);
  sums_[1].Add(std::log(bytes), std::log(ranks), rate);
  // Errors in proportion to the time are what matters, so that short times count as much as long ones.
  sums_[2].Add(bytes, ranks, seconds, 1 / (seconds * seconds));
  slowest_ = slowest_ == 0 ? rate : std::min(slowest_, rate);
  quickest_ = std::max(quickest_, rate);
}

void IoRate::Merge(const IoRate& other) {
  if (other.weight() <= 0) return;
  for (unsigned i = 0; i < kForms; ++i) {
    sums_[i].Merge(other.sums_[i]);
    if (other.errors_[i].count() != 0) errors_[i] = other.errors_[i];  // the newer ones
  }
  slowest_ = slowest_ == 0 ? other.slowest_ : std::min(slowest_, other.slowest_);
  quickest_ = std::max(quickest_, other.quickest_);
}

void IoRate::Fade(double factor) {
  for (Regression& sums : sums_) sums.Fade(factor);
}

Form IoRate::Best() const {
  unsigned best = 0;
  for (unsigned i = 1; i < kForms; ++i) {
    if (errors_[i].count() == 0) continue;
    if (errors_[i].mean() < kClearlyBetter * errors_[best].mean()) best = i;
  }
  return static_cast<Form>(best);
}

std::optional<IoPrediction> IoRate::Predict(double bytes, double ranks) const {
  return PredictBy(Best(), bytes, ranks);
}

std::optional<IoPrediction> IoRate::PredictBy(Form form, double bytes, double ranks) const {
  const auto i = static_cast<unsigned>(form);
  const std::optional<Fit> fit = sums_[i].Solve();
  if (!fit) return std::nullopt;
  bytes = std::max(bytes, 1.0);
  ranks = std::max(ranks, 1.0);
  const double least = bytes / (kBeyondSeen * quickest_);
  const double most = bytes / (slowest_ / kBeyondSeen);
  double seconds = most;
  if (form == Form::kTime) {
    seconds = TimeAt(*fit, sums_[i], bytes, ranks);
  } else if (const double rate = RateAt(form, *fit, sums_[i], bytes, ranks); rate > 0) {
    seconds = bytes / rate;
  }
  return IoPrediction{std::clamp(seconds, least, most),
                      errors_[i].count() == 0 ? 1 : errors_[i].mean(), form, fit->r2};
}

bool IoRate::SetState(const State& state) {
  const bool empty = state.sums[0].weight() <= 0;
  const bool rates =
      std::isfinite(state.quickest) && state.slowest > 0 && state.slowest <= state.quickest;
  if (!empty && !rates) return false;
  for (const Regression& sums : state.sums) {
    // Sizes and values are positive, and all forms have seen the same.
    if (!empty && (sums.weight() <= 0 || sums.mean_value() <= 0 || sums.mean_x(0) < 0))
      return false;
  }
  for (const RecentMean& error : state.errors) {
    if (!(error.mean() >= 0 && error.mean() <= kMostError)) return false;
  }
  sums_ = state.sums, errors_ = state.errors;
  slowest_ = empty ? 0 : state.slowest, quickest_ = empty ? 0 : state.quickest;
  return true;
}

}  // namespace tidelane::model
