/// \file
/// A file that the ranks of an MPI program have open together through HDF5's mpio driver, and whose elements we capture:
/// what ranks must do together so that nobody misses or overwrites another rank's bytes.
///
/// Each rank stores its own bytes later, alone. Whatever else happens to the file's elements happens at once, by MPI-IO, on
/// several ranks. Between the two stands one table of rules (kRules in the .cc): before such a moment every rank drains
/// what it holds; where another rank's bytes matter, too, the ranks wait for one another. Nobody waits afterwards: what a
/// rank writes next is stored later than it would be natively.
///
/// Invariants:
///  1. A rank never leaves out an exchange that others make: what decides is the same on all ranks, or was agreed.
///  2. A rank that could not store its bytes still takes part. Where all wait for one another they learn of it, and none of
///     them goes on: bytes that are stored later must not come over what others did meanwhile.
/// Thread safety: used inside calls of HDF5, under its lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/status.h"
#include "file/file.h"
#include "h5/mpi.h"
#include "ranks/agreement_backoff.h"
#include "ranks/write_footprint.h"

namespace tidelane::h5 {

/// The moments at which ranks' pending bytes matter.
enum class SyncPoint : unsigned {
  kWrite,      ///< HDF5 writes elements collectively: MPI-IO may rewrite what lies between
  kFill,       ///< HDF5 writes fill values or metadata collectively: the same
  kFree,       ///< space is given back, and may be another rank's next
  kTake,       ///< space is taken that closes, of which ranks need not know, may have given back
  kShrink,     ///< chunks are given back, and those at the new edge rewritten, by every rank
  kCopy,       ///< elements are read and written, by every rank
  kOverwrite,  ///< a rank writes what another one holds
  kRead,       ///< elements of all ranks are read
  kFlush,      ///< HDF5's own barriers follow
  kClose,      ///< likewise, and the agreement whether all could store their bytes
  kAtomic,     ///< from now on MPI-IO keeps writes apart
  kMount,      ///< from now on a file's objects are found in another one
};

/// Whether filtered chunks that ranks still hold are put into the file before such a moment (vol/ranks_filtered.h).
bool NeedsChunks(SyncPoint moment);

class ParallelFile {
 public:
  ParallelFile(std::shared_ptr<File> file, const Mpi& mpi, MpiHandle communicator, int rank,
               int ranks)
      : file_(std::move(file)),
        mpi_(mpi),
        communicator_(communicator),
        rank_(rank),
        ranks_(ranks),
        number_(++captured_before_) {}

  const std::shared_ptr<File>& file() const { return file_; }
  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  /// Greater than of all files that were captured before it.
  uint64_t number() const { return number_; }
  /// Whether there may still be exchanges.
  bool running() const { return mpi_.running(); }

  /// Whether elements may be captured now, as far as this rank knows.
  bool capturing() const { return !stopped_ && !atomic_; }
  /// This rank captures no more; `reason` is counted once. What it holds is stored.
  void Stop(Fallback reason);
  void SetAtomic(bool atomic);

  /// What this rank does before such a moment; the failure, if its bytes could not be stored. Where all wait, the same on
  /// all ranks but for the message: a failure on one is one on each.
  Status Before(SyncPoint moment);
  /// And when it is over, on this rank.
  void After() { inside_ = false; }
  /// The moments inside of that one need nothing more.
  bool inside() const { return inside_; }

  /// Collective. The greatest of all ranks' values.
  bool Max(const uint64_t* values, uint64_t* greatest, int count);
  /// Collective. All ranks' values, in the order of ranks.
  bool Gather(const std::vector<uint64_t>& values, std::vector<uint64_t>& all);
  /// Collective. Whether any rank says so.
  bool Any(bool here);
  /// Collective. `here` if that is a failure, or the failure of another rank.
  Status Worst(Status here);

  // What HDF5 wrote during the call in progress: how much we took, and how much went to MPI-IO.
  void BeginCount() {
    captured_ = native_ = 0;
    refused_ = Status();
  }
  void NoteCaptured(uint64_t bytes) { captured_ += bytes; }
  void NoteNative(uint64_t bytes) { native_ += bytes; }
  /// HDF5 was not told, as it would then leave its own work half done, on this rank alone.
  void NoteRefused(Status status) { refused_ = std::move(status); }
  const Status& refused() const { return refused_; }
  uint64_t captured() const { return captured_; }
  uint64_t counted() const { return captured_ + native_; }

  Mpi::Waits waits = Mpi::Waits::kTurning;  ///< in exchanges; the same on all ranks
  bool deleted_group =
      false;  ///< a group's space may be given back later, with that of what is in it
  bool metadata_together =
      true;                     ///< ranks read metadata together: none of them may ask HDF5 for it
  bool outsiders_hold = false;  ///< bytes, when the collective write in progress began
  bool wrote_alone = false;     ///< this rank has captured independent writes
  WriteFootprint places;        ///< where this rank wrote what it may not have stored yet
  AgreementBackoff small_writes;

 private:
  const std::shared_ptr<File> file_;
  const Mpi& mpi_;
  const MpiHandle communicator_;
  const int rank_;
  const int ranks_;
  const uint64_t number_;
  uint64_t captured_ = 0;
  uint64_t native_ = 0;
  Status refused_;
  bool stopped_ = false;
  bool atomic_ = false;
  bool inside_ = false;

  static inline std::atomic<uint64_t> captured_before_{0};
};

}  // namespace tidelane::h5
