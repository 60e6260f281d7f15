/// \file
/// The model's equations: an application is its start, its epochs and its end; an epoch is an I/O phase and the
/// computation after it. Decision 16 (docs/decisions/) derives them, and says where the published one does not hold.
///
///   t_app   = t_init + sum of epochs + t_term
///   sync    = t_io + t_comp
///   async   = max(t_comp, t_io) + t_overhead
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

/// One epoch of a program whose bytes may wait in memory for longer than that epoch.
struct QueuedEpoch {
  EpochTimes times;
  bool asks =
      false;  ///< for its bytes, `slack` after the phase; it then waits until all are stored
  double slack = 0;
  double alongside =
      0;  ///< the share of the copy in which storage works already: 1 where it does not need the processor
  double room = 0;  ///< seconds of storage's work that memory holds
};

struct Queue {
  double waits = 0;  ///< of the program, its copy included
  double left = 0;   ///< seconds of storage's work after the epoch
};

/// What the epoch costs with `left` seconds of work from before. Where epochs are alike and each begins with nothing
/// left, or with memory full, this is AsyncEpoch without its computation (less what goes alongside the copy).
constexpr Queue AfterEpoch(double left, const QueuedEpoch& epoch) {
  Queue queue{epoch.times.overhead, left + epoch.times.io};
  queue.left = std::max(left, queue.left - epoch.alongside * epoch.times.overhead);
  if (const double over = queue.left - epoch.room; over > 0)
    queue.waits += over, queue.left -= over;
  if (epoch.asks) {
    queue.waits += std::max(0.0, queue.left - epoch.slack);
    queue.left = 0;
  }
  queue.left = std::max(0.0, queue.left - epoch.times.compute);
  return queue;
}

constexpr double Application(double start, double epochs, double end) {
  return start + epochs + end;
}

}  // namespace tidelane::model
