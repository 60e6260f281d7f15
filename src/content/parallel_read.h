/// \file
/// A read in parts, which the program's thread and lanes make together. What a part is, and what
/// becomes of its bytes, a derived class says (chunk_read.h, extent_read.h).
///
///   1. Lanes are asked to help, and take parts; so does the program's thread while it waits.
///   2. Everybody takes the next part that nobody has taken, until there is none. A lane that comes
///      later than that finds nothing to do, and touches nothing.
///   3. Who waits does what nobody has begun, then waits for what others have begun; never for a lane
///      to begin, unless he has only so much time. Lanes need nothing that the program holds (HDF5's lock): no deadlock.
///   4. The first failure ends it: parts not yet begun are left out.
///
/// A read that was *deferred* goes on after the call that made it. Until it is done its file changes
/// nothing that it reads (deferred_reads.h), so that lanes find what the call would have found.
///
/// Invariant: a read that is done touches the program's memory no more, and stays done.
/// Thread safety: all functions may be called from any thread.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/annotations.h"
#include "base/status.h"
#include "content/parallel_read_source.h"
#include "lane/lanes.h"

namespace tidelane {

/// Memory that is not cleared, and is taken only where it is needed.
class Room {
 public:
  /// nullptr: there is no memory.
  std::byte* Get(size_t size);

 private:
  std::unique_ptr<std::byte[]> bytes_;
  size_t size_ = 0;
};

/// What a kind of read needs besides.
class ReadScratch {
 public:
  virtual ~ReadScratch() = default;
};

/// What one thread needs for one part after another, of its turn.
struct ReadRooms {
  Room stored;
  Room whole;
  std::unique_ptr<ReadScratch> scratch;
};

class ParallelRead : public LaneTask, public std::enable_shared_from_this<ParallelRead> {
 public:
  void RunOne() override;

  /// Lanes begin. After this nobody adds parts.
  void Start() TL_EXCLUDES(mutex_);
  /// It is a deferred read. Before anybody else knows it.
  void Defer();
  /// Does what is left of it and waits for what others do.
  Status Finish() TL_EXCLUDES(mutex_) {
    (void)FinishUntil(std::chrono::steady_clock::time_point::max());
    return status();
  }
  /// The same until `deadline`; whether it is done. Who has only so much time begins nothing.
  bool FinishUntil(std::chrono::steady_clock::time_point deadline) TL_EXCLUDES(mutex_);
  bool done() TL_EXCLUDES(mutex_);
  /// How it ended; ok until it is done.
  Status status() TL_EXCLUDES(mutex_);

  /// All parts are there now.
  virtual void Seal() {}
  /// Bytes of the file that it reads, as far as they are known.
  virtual uint64_t FileBytes() const = 0;
  /// Whether it reads bytes of [begin, end) of its file.
  virtual bool Touches(uint64_t begin, uint64_t end) const = 0;
  ParallelReadSource& source() const { return *source_; }
  /// Whether lanes help: else only who waits gets on with it.
  bool helped() const { return lanes_.threaded(); }
  /// Whether it fills memory of the program's.
  virtual bool fills_memory() const { return true; }

 protected:
  /// `helpers`: so many lanes, at most, help at once.
  ParallelRead(std::shared_ptr<ParallelReadSource> source, Lanes& lanes, unsigned helpers)
      : source_(std::move(source)), lanes_(lanes), helpers_(helpers), process_(OwnProcess()) {}

  virtual Status ReadPart(Reader reader, uint64_t part, ReadRooms& rooms) = 0;
  /// For ReadPart: bytes of the file.
  Status ReadBytes(Reader reader, uint64_t address, uint64_t size, std::byte* to);
  /// Start and Finish of a read that the program waits for, as the model is told of it.
  Status ReadAtOnce() TL_EXCLUDES(mutex_);
  /// So many parts; a lane goes on to the next task after `per_turn` of them.
  void SetParts(uint64_t parts, uint64_t per_turn) TL_EXCLUDES(mutex_);

 private:
  static pid_t OwnProcess();
  bool Work(Reader reader, uint64_t most) TL_EXCLUDES(mutex_);
  Status TryPart(Reader reader, uint64_t part, ReadRooms& rooms);

  const std::shared_ptr<ParallelReadSource> source_;
  Lanes& lanes_;
  const unsigned helpers_;
  const pid_t process_;
  bool deferred_ = false;
  std::atomic<uint64_t> asked_bytes_{0};  // by ReadBytes
  Mutex mutex_;
  Condition all_finished_;
  uint64_t parts_ TL_GUARDED_BY(mutex_) = UINT64_MAX;  // until they are known
  uint64_t per_turn_ TL_GUARDED_BY(mutex_) = 1;
  uint64_t next_ TL_GUARDED_BY(mutex_) = 0;
  uint64_t finished_ TL_GUARDED_BY(mutex_) = 0;
  Status status_ TL_GUARDED_BY(mutex_);
};

}  // namespace tidelane
