/// \file
/// How one file is written: bytes are captured, taken as they lie where the program lends them, or written through.
///
/// Capture is in write_path.cc; writes that this thread makes itself are in write_through.cc; the superblock, which others look at, in
/// write_superblock.cc.
///
/// Invariant: when Write returns ok the bytes are the file's, for every reader, and the caller's memory is its own again, unless it
/// has lent it.
/// Thread safety: belongs to the program's side (one caller at a time), but for RelieveArena, which may be called from any thread.
/// Storage is asked with no lock held.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/annotations.h"
#include "base/counters.h"
#include "base/status.h"
#include "content/read_path.h"
#include "file/call_scope.h"
#include "file/drainer.h"
#include "file/file_commits.h"
#include "file/file_epochs.h"
#include "file/reservation.h"
#include "file/superblock_order.h"

namespace tidelane {

class WritePath {
 public:
  WritePath(FileContext& file, Drainer& drainer, FileEpochs& epochs, ReadPath& reads);

  /// Captures the bytes and returns; or writes through when it must. Bytes may be reused at once. `call` is what the call in progress
  /// permits.
  Status Write(uint64_t address, uint64_t size, const void* bytes, const CallContext& call);

  /// Whether so many bytes in small pieces, between which other ranks write, had better be written by the program itself:
  /// they cannot be joined, and behind no pause nothing hides them. Then, and only then, EndScattered when it has.
  bool BeginScattered(uint64_t begin_ns, uint64_t bytes);
  void EndScattered(uint64_t begin_ns, uint64_t bytes, uint64_t pieces);

  /// The arena is full: store what is queued, let go of an idle slab.
  void RelieveArena();

  /// Flushes and closes of a new file will return before it is stored: whoever looks at its first bytes meanwhile (netCDF does)
  /// finds an HDF5 file. What storage refuses of them is counted, and fails where the rest of the superblock does.
  void StoreSignature();
  FileCommits& commits() { return commits_; }
  SuperblockPlace& superblock() { return superblock_; }
  Reservation& reservation() { return reservation_; }

 private:
  // Copied under the lock: cheaper than taking it twice.
  static constexpr uint64_t kSmallCopy = uint64_t{64} * 1024;
  // A copy of it takes longer than what else a request costs.
  static constexpr uint64_t kLargeWrite = uint64_t{16} * 1024;

  // What this thread writes itself.
  static Run DirectRun(uint64_t address, uint64_t size) {
    Run direct;
    direct.begin = address;
    direct.end = address + size;
    return direct;
  }
  // One write on its way into memory, or past it, piece by piece.
  struct BufferedWrite {
    const uint64_t bytes;  // of all of it
    const CallContext& call;
    WriteCosts::WriteBudget may_wait{};
    uint64_t piece_ns = 0;  // when the piece before was done; of small writes 0: nothing is timed
    uint64_t copy_ns = 0;   // waits have accounts of their own
    uint64_t through_bytes = 0;
    bool went_through = false;
    uint64_t uncounted = 1;  // this write, until a part of it is captured
    bool enough = false;     // is gathered to be stored
  };

  bool IsSynchronous(const CallContext& call) const;
  WriteCosts::WriteBudget BeginLarge(uint64_t now_ns, uint64_t size) const;
  Status Capture(uint64_t address, uint64_t size, const std::byte* from, const CallContext& call);
  Status CapturePieces(uint64_t address, uint64_t size, const std::byte* from,
                       BufferedWrite& capturing);
  void CapturedLocked(const SlabWriter::Space& space, uint64_t address, BufferedWrite& capturing)
      TL_REQUIRES(drainer_.mutex());
  void InsertLocked(const SlabWriter::Space& space, uint64_t address, const CallContext& call)
      TL_REQUIRES(drainer_.mutex());
  bool CaptureLent(uint64_t address, uint64_t size, const std::byte* bytes,
                   const CallContext& call);
  bool MakeRoom(uint64_t wanted);

  Status WriteOrKeep(uint64_t address, uint64_t size, const std::byte* bytes, Fallback reason,
                     const CallContext& call);
  Status StoreOrKeep(Run& direct, const std::byte* bytes, Fallback reason, const CallContext& call);
  Status WriteAsNatively(uint64_t address, uint64_t size, const void* bytes);
  // This thread writes storage itself: first nobody else does in that range, then what was pending there is void.
  void BeginDirectLocked(const Run& direct) TL_REQUIRES(drainer_.mutex());
  Status StoreDirect(Run& direct, const void* bytes, Fallback reason);

  Status WriteAtSuperblock(uint64_t address, uint64_t size, const std::byte* at, bool through,
                           const CallContext& call);
  bool CaptureSuperblock(uint64_t address, uint64_t size, const std::byte* bytes,
                         const CallContext& call);
  void FindSuperblock(uint64_t address, uint64_t size, const void* bytes);

  FileContext& file_;
  Drainer& drainer_;
  FileEpochs& epochs_;
  ReadPath& reads_;
  FileCommits commits_;
  SuperblockPlace superblock_;
  Reservation reservation_;
};

}  // namespace tidelane
