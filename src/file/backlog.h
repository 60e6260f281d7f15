/// \file
/// What of one file is captured and not stored yet: the bytes, the order they are stored in, what of them failed, and who waits.
///
/// Most of its parts have a file and an invariant of their own. They are here together because one mutex guards all of them (Drainer::mutex):
/// what is stored next is a question to most of them at once.
///
/// Invariant: a file is drained when nothing is pending and storage is as long as the file.
/// Thread safety: none; guarded by the file's mutex.
#pragma once

#include <cstdint>
#include <optional>

#include "base/status.h"
#include "extent/epochs.h"
#include "extent/pending_map.h"
#include "file/close_state.h"
#include "file/drain_state.h"
#include "file/failure_state.h"
#include "file/file_context.h"
#include "file/flush_planner.h"
#include "file/open_epoch.h"
#include "file/slab_writer.h"
#include "file/superblock_order.h"
#include "file/write_policy.h"

namespace tidelane {

/// Buffers of the program's among what is pending (buffer/loan.h).
struct Loans {
  bool any = false;   ///< one was captured since they were last copied
  bool over = false;  ///< a failure was seen, which may be told later: lend nothing more
};

/// What was captured and is not yet among the counters: two atomic additions a write would be a tenth of a small one's cost, two
/// a run are nothing.
struct CapturedTally {
  uint64_t writes = 0;
  uint64_t bytes = 0;

  void Tell();
};

struct Backlog {
  explicit Backlog(FileContext& context)
      : file(context),
        policy(context.costs, context.traits.peers_may_wait, context.env.config,
               context.store->memory_speed()),
        writer(context.env.arena),
        order(context.eof) {}

  FileContext& file;
  WritePolicy policy;
  PendingMap pending;
  SlabWriter writer;
  FailureState failures;
  Loans loans;
  OpenEpoch epoch;
  CapturedTally captured;
  SuperblockOrder order;
  FlushPlanner planner;
  DrainState drain;
  CloseState closing;

  DrainState::Facts Facts() const {
    return {pending, order.order(), file.TooShort(), failures.extend_failed()};
  }
  bool IsDrained() const { return drain.IsDrained(Facts()); }
  /// Nothing more can be stored without a retry.
  bool IsStuck() const { return drain.IsStuck(Facts()); }
  /// Something could not be stored at the last attempt; also while it is being tried again, until somebody was told.
  bool IsFailing() const;
  /// A superblock must be stored before anything else, and is not yet.
  bool AwaitsFirstSuperblock() const { return order.first() && pending.SuperblockPending(); }
  /// Whether lanes are to store something now.
  bool IsWorthwhile() const {
    return drain.wanted() || planner.Worthwhile(pending, policy.held_back(), file.env.arena.cap(),
                                                AwaitsFirstSuperblock());
  }
  LingerTerms Terms() const { return policy.Terms(file.env.config.linger_us); }
  /// How an epoch (or all up to it) stands.
  Epochs::State StateOf(uint64_t which, bool and_older, Status& error) const;

  /// Somebody wants what is queued; with `all_of_it`, everything stored.
  void Want(bool all_of_it) {
    planner.Hurry();
    if (all_of_it) drain.Want();
  }
  /// What failed is to be tried again.
  void Retry() {
    pending.RetryFailed();
    failures.Retry();
  }
  /// The next run to store; false: there is none now.
  bool TakeRun(Run& run);
  /// It was stored, or failed with `error`.
  void EndRun(Run& run, int error);
  /// There is no memory to store what is queued: it fails, as on storage that refuses it; it stays, is told, and is tried again.
  void FailQueued();
  /// After each piece of work.
  void NoteProgress();
  /// Extents in slabs of that kind get memory of their own. What there is no memory for is lost.
  void Keep(Slab::Kind kind, const char* why);
};

}  // namespace tidelane
