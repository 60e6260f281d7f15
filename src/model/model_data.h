/// \file
/// For the model's tests: numbers that look random and are the same everywhere, in any language (the references were
/// computed with numpy from the same generator).
///
/// Thread safety: one object, one thread.
#pragma once

#include <cstdint>

namespace tidelane::model {

class Numbers {
 public:
  explicit Numbers(uint64_t seed) : state_(seed) {}
  /// In [0, 1).
  double Next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state_ >> 11) / 9007199254740992.0;
  }
  double Between(double low, double high) { return low + (high - low) * Next(); }

 private:
  uint64_t state_;
};

}  // namespace tidelane::model
