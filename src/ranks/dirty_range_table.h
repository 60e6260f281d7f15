/// \file
/// Where the processes of MPI programs on one machine let each other see which bytes of a shared file they hold and have not
/// stored yet: memory that all of them have mapped.
///
/// Natively a write that has returned is there for every rank that hears of it, by a barrier or a message. With the table it
/// is so here, too: who reads or writes alone first looks, and waits for those that hold bytes of the same range. Their
/// lanes store them in any case, soon, whatever their programs do meanwhile; so such a wait ends without anybody's help. A process
/// that was killed stores nothing any more: who waits looks now and then whether it is still there.
///
/// A table belongs to a file, and not to one open of it: the file may be open on several communicators at once. Ranks of one
/// communicator meet where it matters (h5/parallel_file.h), so that what the others of it hold is stored by then; outsiders are
/// those who take no part in that.
///
/// Ranks often write rows that take turns in the file; joined to a few ranges, each rank's would cover the others', and all
/// would wait for bytes that nobody writes to. So rows of a block are told as what they are.
///
/// Invariants:
///  1. A process's rows and ranges cover what it holds from before its write returns until the bytes are stored, or have failed.
///  2. Each process changes its own part only.
///  3. What table_file.h says of the memory.
/// Thread safety: Extend and Clear under the file's lock; everything else from any thread, in any process.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/annotations.h"
#include "device/device.h"
#include "ranks/table_file.h"

namespace tidelane {

class DirtyRangeTable {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr int kRows = 16;    ///< of a process: pieces of one length, at equal distances
  static constexpr int kRanges = 16;  ///< of what comes after; more are joined
  static constexpr uint64_t kParts = 4096;  ///< processes on one table

  /// The ranks of one communicator that have opened the file together.
  struct Group {
    uint64_t id = 0;        ///< what it is told from all others by
    bool complete = false;  ///< all of them are on this table
  };
  enum class Whose { kOthers, kOutsiders };

  static std::string PathOf(const FileIdentity& file);
  /// Takes a part of this file's table, the one of that number if it is free. nullptr: that is not possible.
  static std::unique_ptr<DirtyRangeTable> Join(const FileIdentity& file, int wanted_part);
  /// For who only looks: it holds nothing. nullptr: not possible, or, where none is to be made, nobody has this file open.
  static std::unique_ptr<DirtyRangeTable> Watch(const FileIdentity& file,
                                                TableFile::Missing missing);
  ~DirtyRangeTable();
  DirtyRangeTable(const DirtyRangeTable&) = delete;
  DirtyRangeTable& operator=(const DirtyRangeTable&) = delete;

  /// The same for all who are on the same table, and on no other one of this time. Below 2^63.
  uint64_t id() const { return file_->head().id; }
  /// Before the first Extend. Until then all are outsiders.
  void SetGroup(const Group& group);
  const Group& group() const { return group_; }

  /// This process holds [begin, end).
  void Extend(uint64_t begin, uint64_t end);
  /// It holds nothing any more.
  void Clear();
  /// It writes no more, and holds nothing: others may take its part. The destructor does the same, but a lane may be the last to let
  /// go of the file, later than the program closes it.
  void Leave() const;

  /// How often anybody has joined it. Who keeps what it has read asks before each use whether that is still as it was.
  uint32_t joined() const { return file_->head().joined.load(); }
  /// Whether another process is on it that may write the file. Ask after joined(): who comes then is in the next answer of that.
  bool Written() const;

  /// Whether another process holds bytes of [begin, end).
  bool OthersHold(uint64_t begin, uint64_t end, Whose whose = Whose::kOthers) const;
  /// Until what they hold there when this is called is stored, by those that still run. False: it was not by then.
  bool AwaitOthers(uint64_t begin, uint64_t end, Whose whose = Whose::kOthers,
                   Clock::time_point deadline = Clock::time_point::max());
  /// How many processes this one has found to have ended before they had stored what they held: it is lost.
  uint64_t lost() const { return lost_.load(); }
  /// Whether another process has ever waited for this one: then what it writes is better stored at once.
  bool awaited() const;

 private:
  struct Part;
  DirtyRangeTable(std::unique_ptr<TableFile> file, std::optional<uint64_t> own);
  static std::unique_ptr<TableFile> FileOf(const FileIdentity& file, TableFile::Missing missing);
  Part& part(uint64_t number) const;
  uint64_t used() const;
  bool Concerns(uint64_t number, Whose whose) const;
  bool AddToRows(uint64_t begin, uint64_t size);
  void AddToRanges(uint64_t begin, uint64_t end);
  static bool Holds(const Part& part, uint64_t begin, uint64_t end);
  bool VoidIfFree(uint64_t number) TL_EXCLUDES(voiding_);
  bool AwaitPart(uint64_t number, uint64_t begin, uint64_t end, Clock::time_point deadline);

  const std::unique_ptr<TableFile> file_;
  const std::optional<uint64_t> own_;  // this process's part
  Mutex voiding_;
  std::atomic<uint64_t> lost_{0};
  Group group_;
  int used_rows_ = 0;  // of that part
  int used_ = 0;       // ranges
};

}  // namespace tidelane
