/// \file
/// Collective writes in pieces between which other ranks' lie: whether ranks store their own later, or MPI-IO joins all ranks' now.
///
/// Joined they are fewer and larger requests, so storage has less to do; stored later they can be hidden. As with all that is deferred
/// (model/epoch.h), what the program computes between two phases hides them, as far as it does not ask for its bytes before:
///
///     joined     waits  t                   what such writes were seen to take
///     deferred   waits  max(0, k t - slack) k times as long, by what a request costs here: TimesLonger
///
/// Nothing is known of the first phase, so its writes are joined. Both are counted by the byte, as phases differ.
///
/// Thread safety: Asked may be called from any thread, all else from one at a time.
#pragma once

#include <algorithm>
#include <cstdint>

#include "model/tally.h"

namespace tidelane::model {

class JoinedWrites {
 public:
  /// Of this process, whatever files it writes: a step may have a file of its own.
  static JoinedWrites& OfProgram();

  /// How much longer storage takes for requests of `piece` bytes than for those of `joined`, where as many bytes as it stores in the
  /// time that a request costs are `worth`.
  static double TimesLonger(double worth, double piece, double joined) {
    return (worth / std::max(piece, 1.0) + 1) / (worth / std::max(joined, 1.0) + 1);
  }
  /// Less than so much is not worth an exchange of bytes between ranks.
  static constexpr double kMuchLonger = 1.1;

  /// A collective write begins, whoever is to make it.
  void Begin(uint64_t now_ns);
  /// It ends. Of this rank's bytes: those stored by MPI-IO, which joined them in `joined_ns`; 0: they were not to be joined.
  void End(uint64_t now_ns, uint64_t bytes, uint64_t joined_ns);
  /// The program asks for what it wrote to be stored.
  void Asked(uint64_t now_ns) {
    if (asked_ns_.get() == 0) asked_ns_.Set(now_ns);
  }

  /// Whether pauses hide writes of which storage takes so many times longer, so far that they are better deferred.
  bool Hidden(double times_longer) const;

 private:
  // What a busy machine stops a program for, and less than so much of what its writes take, ends no phase.
  static constexpr double kShortestNs = 1e6, kShare = 0.1;
  static constexpr double kCheaper =
      0.9;  // what is deferred must wait less than so much of the other
  static constexpr double kKept = 0.75;  // of what is known, after a further phase

  struct Sums {
    double bytes = 0, slack_ns = 0;
    double joined_bytes = 0, joined_ns = 0;  // of them
  };
  double JoinedNs(double bytes) const;

  uint64_t last_end_ns_ = 0;
  Sum asked_ns_;  // since then; 0: not
  Sums phase_;    // the one that goes on,
  Sums known_;    // and those before
};

}  // namespace tidelane::model
