/// \file
/// The log of one file that is open for writing: what it has in the place of the file's own bytes, commits, and checkpoints.
///
///   commit_log.cc   what is logged, and what is read
///   segments.cc     how a chain of segments begins and goes on
///   commits.cc      what a commit writes, in which order
///   checkpoint.cc   how the log's bytes move to the file, and a chain ends
///   next_place.cc   how it goes on elsewhere
///
/// Invariant: at every moment the file, its mark and its log give the last commit that was acknowledged, or one that was begun later.
/// Thread safety: all functions may be called from any thread; calls on overlapping bytes are ordered by the caller, and nothing may be on its
/// way to storage during Commit and Finish. Lock order: commit, move, mark, state. No storage is asked under the state's lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/annotations.h"
#include "lane/lanes.h"
#include "log/checkpointer.h"
#include "log/log_parts.h"
#include "log/mark.h"
#include "log/marked_file.h"
#include "log/recovery.h"
#include "log/segment_entries.h"
#include "log/segment_maker.h"
#include "store/store.h"

namespace tidelane::log {

/// Bytes that belong at an address.
struct Part {
  uint64_t address;
  std::span<const std::byte> bytes;
};

/// Functions return 0 or an errno unless they say otherwise.
class CommitLog {
 public:
  /// `size`: what the file has, with all that was written.
  CommitLog(MarkedFile& file, LogParts& parts, const std::atomic<uint64_t>& size);
  ~CommitLog();
  CommitLog(const CommitLog&) = delete;
  CommitLog& operator=(const CommitLog&) = delete;

  /// What lies by its segments' names before it has any.
  LeftSegments& left() { return maker_.left(); }
  /// The file as it is now is the last commit.
  void Begin(const Superblock& superblock) TL_EXCLUDES(mutex_);
  /// The last commit is that of a log which another program has left: of one segment, in this one's folder, by its name.
  void GoOn(Snapshot left) TL_EXCLUDES(commit_mutex_, mark_mutex_, mutex_);

  // Which bytes it has ------------------------------------------------------------------------------------------

  struct Places {
    uint64_t high_water;  ///< no commit has anything from here on
    uint64_t superblock_begin;
    uint64_t superblock_end;
    uint64_t logged;  ///< what the log takes
  };
  Places places() const TL_EXCLUDES(mutex_);
  void SetSuperblock(uint64_t begin, uint64_t end) TL_EXCLUDES(mutex_);

  /// Of bytes below the high water, beside the superblock.
  int Write(std::span<const Part> parts) TL_EXCLUDES(mutex_);
  int WriteSuperblock(uint64_t offset, std::span<const std::byte> bytes) TL_EXCLUDES(mutex_);
  /// From `begin` to `end` there are zeros.
  int Cut(uint64_t begin, uint64_t end) TL_EXCLUDES(mutex_);
  /// Where the bytes of [begin, end) lie, in address order; over them, HDF5's superblock.
  void Find(uint64_t begin, uint64_t end, std::vector<Source>& sources,
            Superblock& superblock) const TL_EXCLUDES(mutex_);

  // The next place ----------------------------------------------------------------------------------------------

  /// The file becomes the last commit, and the log has nothing; it will be made where `parts.next` says, and begins with the next write. What
  /// no commit has is still read where it was (`left_behind`), and is to be written again. Nobody may write or commit meanwhile, nor before
  /// that is done. An error: nothing has changed.
  int GoToNextPlace() TL_EXCLUDES(commit_mutex_, move_mutex_, mark_mutex_, mutex_);
  Layer left_behind() const TL_EXCLUDES(mutex_);
  /// All of it was written again.
  void ForgetLeftBehind() TL_EXCLUDES(mutex_);

  // Commits -----------------------------------------------------------------------------------------------------

  int Commit(Committing when) TL_EXCLUDES(commit_mutex_, mutex_);
  /// A last one, and the file by itself is it.
  int Finish() TL_EXCLUDES(commit_mutex_, mutex_);
  /// A last one, and the log stays, if there is one: whoever opens the file next, or a mover, does the rest.
  int FinishInLog(bool& stays) TL_EXCLUDES(commit_mutex_, mutex_);
  /// Nobody moves anything any more.
  void Stop() { checkpointer_->Detach(); }
  /// Lets go of the log, and `removes` it: nobody can open its file any more.
  void End(bool removes) TL_EXCLUDES(mark_mutex_, mutex_);

 private:
  // Committed bytes of a segment that are on their way to the file, and the commit that they end with.
  struct Moving {
    Layer layer;
    Superblock superblock;
    uint64_t end = 0;  // of the file
  };

  int BeginLogging() TL_EXCLUDES(mark_mutex_, mutex_);
  int MarkCreated(const Superblock& first) TL_EXCLUDES(mark_mutex_, mutex_);

  int CommitLocked() TL_REQUIRES(commit_mutex_) TL_EXCLUDES(mutex_);
  int CommitFound() TL_REQUIRES(commit_mutex_) TL_EXCLUDES(mark_mutex_);
  int CommitSuperblock() TL_REQUIRES(commit_mutex_) TL_EXCLUDES(mutex_);
  int CommitRecord() TL_REQUIRES(commit_mutex_) TL_EXCLUDES(mutex_);
  void ProtectBelow(uint64_t end) TL_EXCLUDES(mutex_);
  bool IsWorthReuse() const TL_REQUIRES(mutex_);
  void Reuse(Segment& segment, std::span<const CommitEntry> needed) TL_EXCLUDES(mutex_);
  void Committed(const Superblock& superblock, uint64_t end) TL_EXCLUDES(mutex_);

  bool BeginMoving() TL_REQUIRES(mutex_);
  int Move() TL_EXCLUDES(move_mutex_, mutex_);
  int MoveBytes(Segment& segment, const Layer& layer, uint64_t end) TL_REQUIRES(move_mutex_);
  int EndMove(std::shared_ptr<Segment> segment, const Superblock& superblock)
      TL_EXCLUDES(mark_mutex_, mutex_);
  int MoveAll() TL_REQUIRES(commit_mutex_) TL_EXCLUDES(mutex_);
  int LeaveMark(const Segment& segment) TL_REQUIRES(mark_mutex_) TL_EXCLUDES(mutex_);
  void AfterCommit() TL_REQUIRES(commit_mutex_) TL_EXCLUDES(mutex_);
  void MoveWhenQuiet();
  Checkpointer::Delay MoveIfDue() TL_EXCLUDES(commit_mutex_, mutex_);

  MarkedFile& file_;
  LogParts& parts_;
  const std::atomic<uint64_t>& size_;
  const int process_;  // a child of fork is not who writes the log
  const std::shared_ptr<Checkpointer> checkpointer_;

  Mutex commit_mutex_;  // one commit at a time; and nothing begins to move meanwhile
  uint64_t generation_ TL_GUARDED_BY(commit_mutex_) = 0;
  uint64_t flushes_ TL_GUARDED_BY(commit_mutex_) = 0;  // since the last commit
  Lanes::Clock::time_point committed_at_ TL_GUARDED_BY(commit_mutex_) = Lanes::Clock::now();

  Mutex move_mutex_;  // one segment at a time is moved

  Mutex mark_mutex_;  // who changes the superblock on storage, or begins a segment
  bool marked_ TL_GUARDED_BY(mark_mutex_) = false;
  SegmentMaker maker_;  // so do his calls of it

  mutable Mutex mutex_;
  Places places_ TL_GUARDED_BY(mutex_){};
  unsigned writing_ TL_GUARDED_BY(mutex_) = 0;             // to the log, now
  Superblock superblock_ TL_GUARDED_BY(mutex_);            // as HDF5 has written it
  bool superblock_changed_ TL_GUARDED_BY(mutex_) = false;  // since the last commit
  Superblock committed_ TL_GUARDED_BY(mutex_);  // the last commit's; empty: there is none
  uint64_t committed_end_ TL_GUARDED_BY(mutex_) = 0;
  Layer current_ TL_GUARDED_BY(mutex_);
  SegmentEntries entries_ TL_GUARDED_BY(mutex_);  // the current one's
  Moving moving_ TL_GUARDED_BY(mutex_);
  Layer left_behind_ TL_GUARDED_BY(mutex_);  // of the place before: no commit has it
};

}  // namespace tidelane::log
