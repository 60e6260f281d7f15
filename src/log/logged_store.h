/// \file
/// A store whose file is, after any end of the program or of the machine, what it was at its last commit (docs/formats/log.md).
///
/// Bytes that no commit has go straight to the file; what is to take the place of bytes that a commit has goes to the log, until a checkpoint
/// moves it. What is read is the log over the file. HDF5's superblock is kept in memory until a commit: storage has the last commit's, and while
/// the file alone is not that commit, a mark in it.
///
///   logged_store.cc   where a write goes, reads, sizes
///   commits.cc        how a chain of segments begins, commits
///   checkpoint.cc     how it ends: the log's bytes move to the file
///
/// Invariant: at every moment the file, its mark and its log give the last commit that was acknowledged, or one that was begun later.
/// Thread safety: as Store; Settle before any other call but size. Lock order: commit, move, mark, state; sync. No storage is asked under the
/// state's lock.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/annotations.h"
#include "base/config.h"
#include "lane/lanes.h"
#include "log/folder.h"
#include "log/mark.h"
#include "log/recovery.h"
#include "store/direct_store.h"

namespace tidelane {

/// What a LoggedStore is made of.
struct LoggedFile {
  std::shared_ptr<Device> file;
  std::unique_ptr<log::Folder> folder;  ///< where the file's name leads
  std::string name;                     ///< there
  std::string path;                     ///< for words
  bool writable = false;
  Journal journal = Journal::kOff;              ///< off: it is only recovered
  JournalCommits commits;                       ///< which flushes are commits
  Lanes* lanes = nullptr;                       ///< nullptr: whoever commits moves the log's bytes
  uint64_t segment_bytes = uint64_t{64} << 20;  ///< of a segment when its bytes are moved
};

class LoggedStore final : public Store {
 public:
  explicit LoggedStore(LoggedFile parts);
  ~LoggedStore() override;

  int Write(Run& run) override TL_EXCLUDES(mutex_);
  int WriteBytes(Run& run, const void* bytes) override TL_EXCLUDES(mutex_);
  int Read(uint64_t address, void* buffer, size_t n) override TL_EXCLUDES(mutex_);
  uint64_t size() const override { return size_.load(std::memory_order_acquire); }
  int SetSize(uint64_t size) override TL_EXCLUDES(mutex_);
  int Reserve(uint64_t address, uint64_t size) override;
  void EndReservations(uint64_t& found) override { direct_->EndReservations(found); }
  int Version(FileVersion& version) override { return direct_->Version(version); }
  bool memory_speed() const override { return direct_->memory_speed(); }
  Status Publish(Publishing when) override { return direct_->Publish(when); }
  void Withhold(Withholding why) override { direct_->Withhold(why); }
  int Close() override;

  Status Settle() override TL_EXCLUDES(mutex_);
  void SetSuperblock(uint64_t begin, uint64_t end) override TL_EXCLUDES(mutex_);
  bool commits() const override { return way_.load(std::memory_order_relaxed) == Way::kJournal; }
  int Commit(Committing when) override TL_EXCLUDES(commit_mutex_, mutex_);
  int Finish() override TL_EXCLUDES(commit_mutex_, mutex_);
  int EndCommits() override TL_EXCLUDES(commit_mutex_, mutex_);

 private:
  class Checkpointer;

  enum class Way : uint8_t {
    kUnsettled,
    kJournal,
    kThrough,   // to the file, as natively
    kSnapshot,  // a marked file that is only read: through its log
    kFinished   // nothing more is written
  };
  // Bytes that belong at an address.
  struct Part {
    uint64_t address;
    std::span<const std::byte> bytes;
  };
  // Committed bytes of a segment that are on their way to the file, and the commit that they end with.
  struct Moving {
    log::Layer layer;
    Superblock superblock;
  };

  int WriteParts(Run& run, std::span<const Part> parts);
  int WriteStraight(Run& run, std::span<const Part> parts);
  int WriteLogged(std::span<const Part> parts);
  int WriteSuperblock(uint64_t offset, std::span<const std::byte> bytes);
  int ReadStored(uint64_t address, std::byte* buffer, uint64_t n);
  void RaiseSize(uint64_t end);
  int Claimed() TL_EXCLUDES(mutex_);
  void RemoveIfNameless() TL_EXCLUDES(mark_mutex_, mutex_);

  int BeginLogging() TL_EXCLUDES(mutex_);
  int MakeSegment(uint64_t number, std::unique_ptr<Device>& file) TL_REQUIRES(mark_mutex_);
  int MakeRoomFor(const std::string& segment);
  void RemoveSegment(log::Segment& segment);
  bool TakeMarkBack(const Superblock& committed);
  void ProtectBelow(uint64_t end) TL_EXCLUDES(mutex_);
  int CommitSuperblock() TL_REQUIRES(commit_mutex_) TL_EXCLUDES(mutex_);
  int CommitRecord() TL_REQUIRES(commit_mutex_) TL_EXCLUDES(mutex_);
  int CommitLocked() TL_REQUIRES(commit_mutex_) TL_EXCLUDES(mutex_);
  int PutSuperblock(const Superblock& superblock);
  int SyncFile() TL_EXCLUDES(sync_mutex_);
  int SyncWritten() TL_EXCLUDES(sync_mutex_);
  bool power() const { return parts_.journal == Journal::kPower; }

  bool MayMove() TL_REQUIRES(mutex_);
  bool BeginMoving() TL_REQUIRES(mutex_);
  int Move() TL_EXCLUDES(move_mutex_, mutex_);
  int MoveAll() TL_REQUIRES(commit_mutex_) TL_EXCLUDES(mutex_);
  void AfterCommit() TL_REQUIRES(commit_mutex_) TL_EXCLUDES(mutex_);
  std::optional<Lanes::Clock::duration> MoveIfDue() TL_EXCLUDES(commit_mutex_, mutex_);

  LoggedFile parts_;
  std::unique_ptr<DirectStore> direct_;  // over parts_.file
  std::atomic<Way> way_{Way::kUnsettled};
  std::atomic<uint64_t> size_{0};
  const int process_;  // a child of fork is not who writes the log
  std::atomic<bool> claimed_{false};
  std::atomic<bool> unsynced_{
      true};  // bytes in the file that no sync was asked for; who wrote it before asked for none

  std::atomic<int> broken_{0};  // a sync or a mark failed: nobody knows any more what storage has

  Mutex sync_mutex_;  // one sync of the file at a time; innermost

  Mutex commit_mutex_;  // one commit at a time; and nothing begins to move meanwhile
  uint64_t generation_ TL_GUARDED_BY(commit_mutex_) = 0;
  uint64_t flushes_ TL_GUARDED_BY(commit_mutex_) = 0;  // since the last commit
  Lanes::Clock::time_point committed_at_ TL_GUARDED_BY(commit_mutex_) = Lanes::Clock::now();

  Mutex move_mutex_;  // one segment at a time is moved

  Mutex mark_mutex_;  // who changes the superblock on storage, or begins a segment
  bool marked_ TL_GUARDED_BY(mark_mutex_) = false;
  uint64_t number_ TL_GUARDED_BY(mark_mutex_) = 0;  // of the last segment
  std::shared_ptr<log::Segment> spare_ TL_GUARDED_BY(mark_mutex_);

  mutable Mutex mutex_;
  uint64_t high_water_ TL_GUARDED_BY(mutex_) = 0;
  unsigned writing_ TL_GUARDED_BY(mutex_) = 0;   // to the log, now
  Superblock superblock_ TL_GUARDED_BY(mutex_);  // as HDF5 has written it
  uint64_t superblock_begin_ TL_GUARDED_BY(mutex_) = 0;
  uint64_t superblock_end_ TL_GUARDED_BY(mutex_) = 0;
  bool superblock_changed_ TL_GUARDED_BY(mutex_) = false;  // since the last commit
  Superblock committed_ TL_GUARDED_BY(mutex_);  // the last commit's; empty: there is none
  uint64_t committed_end_ TL_GUARDED_BY(mutex_) = 0;
  std::vector<log::CommitEntry> entries_ TL_GUARDED_BY(mutex_);  // of the next COMMIT
  log::Layer current_ TL_GUARDED_BY(mutex_);
  Moving moving_ TL_GUARDED_BY(mutex_);
  std::vector<log::Layer> snapshot_;  // Way::kSnapshot's

  const std::shared_ptr<Checkpointer> checkpointer_;
};

}  // namespace tidelane
