/// \file
/// How long storage takes for so many bytes of so many ranks: t_io = size / rate, the rate by regression.
///
/// Three forms are fitted side by side:
///   linear      rate = b0 + b1 size + b2 ranks         (as published)
///   linear-log  rate = b0 + b1 ln size + b2 ln ranks   (as published)
///   time        time = b0 + b1 size + b2 ranks         (a latency and a bandwidth: small sizes)
/// Before a measurement is added, each form says what it expected of it: its error on data that it had not seen. The form
/// that erred least speaks, and its error is the error bar.
///
/// Properties, whatever was measured: a time is never negative, grows with the size or stays, and its rate is at most
/// twice the quickest and at least half the slowest that was seen.
/// Thread safety: a value.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "model/recent_mean.h"
#include "model/regression.h"

namespace tidelane::model {

enum class Form : uint8_t { kLinear, kLinearLog, kTime };
inline constexpr unsigned kForms = 3;
const char* Name(Form form);

struct IoPrediction {
  double seconds = 0;
  double relative_error = 0;  ///< of earlier predictions, on average; 1 where there was none
  Form form = Form::kLinear;
  std::optional<double> r2;
};

class IoRate {
 public:
  /// A transfer that was measured; `bytes` and `ranks` of at least 1, `seconds` more than 0, or it is not added.
  void Add(double bytes, double ranks, double seconds);
  void Merge(const IoRate& other);
  void Fade(double factor);

  /// Nothing before the first measurement.
  std::optional<IoPrediction> Predict(double bytes, double ranks) const;
  /// By one of the forms, to compare them.
  std::optional<IoPrediction> PredictBy(Form form, double bytes, double ranks) const;
  double weight() const { return sums_[0].weight(); }

  /// What the history file holds.
  struct State {
    std::array<Regression, kForms> sums;
    std::array<RecentMean, kForms> errors;
    double slowest = 0;  ///< rates, in bytes a second
    double quickest = 0;
  };
  State state() const { return {sums_, errors_, slowest_, quickest_}; }
  /// False, and nothing changed, where no data could have given this.
  bool SetState(const State& state);

 private:
  Form Best() const;

  std::array<Regression, kForms> sums_;
  std::array<RecentMean, kForms> errors_;
  double slowest_ = 0;
  double quickest_ = 0;
};

}  // namespace tidelane::model
