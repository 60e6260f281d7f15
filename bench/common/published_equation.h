/// \file
/// An asynchronous epoch as the literature has it (IPDPS 2022), for benchmarks that show by how much it is off. Decision 16 says why
/// the model does not go by it.
///
/// Thread safety: a pure function.
#pragma once

#include <algorithm>

#include "model/epoch.h"

namespace tidelane::bench {

/// In seconds.
constexpr double PublishedAsyncEpoch(const model::EpochTimes& times) {
  return std::max(times.compute, times.io - times.compute) + times.overhead;
}

}  // namespace tidelane::bench
