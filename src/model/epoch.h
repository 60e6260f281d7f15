/// \file
/// The model's equations: an application is its start, its epochs and its end; an epoch is an I/O phase and the
/// computation after it. Decision 15 (docs/decisions/) derives them, and says where the published one does not hold.
///
///   t_app   = t_init + sum of epochs + t_term
///   sync    = t_io + t_comp
///   async   = max(t_comp, t_io) + t_overhead               what Tidelane goes by
///   printed = max(t_comp, t_io - t_comp) + t_overhead      as published
///
/// All times are in seconds.
/// Thread safety: pure functions.
#pragma once

#include <algorithm>

namespace tidelane::model {

struct EpochTimes {
  double io = 0;        ///< storage's, for the bytes of the phase
  double compute = 0;   ///< the program's, until its next I/O phase
  double overhead = 0;  ///< of handing the bytes over: a copy
};

constexpr double SyncEpoch(const EpochTimes& times) { return times.io + times.compute; }

constexpr double AsyncEpoch(const EpochTimes& times) {
  return std::max(times.compute, times.io) + times.overhead;
}

constexpr double AsyncEpochAsPrinted(const EpochTimes& times) {
  return std::max(times.compute, times.io - times.compute) + times.overhead;
}

/// What a phase keeps the program waiting, where only a part of it may be hidden: `room` of it, the share that memory
/// can hold, behind `slack`, the time until the program asks for its bytes.
constexpr double AsyncWaits(double io, double overhead, double slack, double room) {
  return overhead + io - std::min(slack, io * std::clamp(room, 0.0, 1.0));
}

constexpr double Application(double start, double epochs, double end) {
  return start + epochs + end;
}

}  // namespace tidelane::model
