// Where a program's time went: spans of CLOCK_MONOTONIC, each in one class.
//
// Invariant: spans of one recorder do not overlap, so the classes and the rest add up to the total.
// Thread safety: one recorder belongs to one thread.
#pragma once

#include <array>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "common/clock.h"

namespace tidelane::checkpoint {

enum class Class { kCompute, kCreate, kWrite, kFlush, kClose, kFileClose, kWait, kShutdown };
inline constexpr int kClassCount = 8;
const char* name_of(Class c);

using measure::now_us;

class Spans {
 public:
  // Runs `f` and records how long it took.
  template <class F>
  auto time(Class c, const char* call, int step, F&& f) {
    const Closing closing{*this, c, call, step, now_us()};
    return f();
  }

  double total_us(Class c) const { return totals_[static_cast<size_t>(c)]; }
  nlohmann::json json() const;

 private:
  struct Span {
    Class c;
    const char* call;
    int step;
    double begin_us;
    double end_us;
  };
  struct Closing {
    Spans& spans;
    Class c;
    const char* call;
    int step;
    double begin_us;
    ~Closing() { spans.add({c, call, step, begin_us, now_us()}); }
  };
  void add(const Span& span) {
    spans_.push_back(span);
    totals_[static_cast<size_t>(span.c)] += span.end_us - span.begin_us;
  }

  std::vector<Span> spans_;
  std::array<double, kClassCount> totals_{};
};

}  // namespace tidelane::checkpoint
