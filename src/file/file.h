/// \file
/// One open file: capture, pending bytes, lanes' work, reads, truncation, drain. This is the wiring; each part has a file of its own:
///
///   FileContext    what all of them share and need no lock for: storage, lock, length, what is ours of it
///   WritePath      how bytes are captured, lent or written through
///   Drainer        stores the Backlog (what is captured and not stored yet); who waits for that
///   FileEpochs     what requests wait for
///   FileContent    what readers see; ReadPath (content/) how they read it
///   FileCommits    what is found of it after any end of the program (WritePath's)
///   Closing        how the file ends
///
/// The program's side (Write, Read, Truncate, Flush, …) is called by the driver in HDF5's order; the lanes' side is
/// Drainer::RunOne. What storage sees may come in another order, except:
///   1. The first superblock write of a session is stored before anything else, and before the open returns (it marks
///      the file as open for writing). A new file's is, where the file is not locked; otherwise it is as later ones.
///   2. Later superblock writes are stored after everything else, at a drain: extents, then truncation, then superblock. The
///      signature of a new file, which never changes, may go before (WritePath::StoreSignature).
///   3. Two writes of the same byte are stored in program order.
///   4. Cutting the file short happens at once; making it longer happens at the end of a drain.
///
/// Invariant: `eof()` and Read give what a synchronous driver would give, at every moment.
/// Thread safety: the program's side needs one caller at a time (HDF5's lock gives that); everything else may be called
/// from any thread. The parts share one mutex, the drainer's. Storage is asked with no lock held.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/counters.h"
#include "base/status.h"
#include "content/read_path.h"
#include "device/device.h"
#include "file/call_scope.h"
#include "file/closing.h"
#include "file/drainer.h"
#include "file/file_content.h"
#include "file/file_context.h"
#include "file/file_epochs.h"
#include "file/write_path.h"
#include "ranks/dirty_range_table.h"

namespace tidelane {

class File final : public std::enable_shared_from_this<File> {
 public:
  File(FileEnvironment environment, std::unique_ptr<Device> device, FileIdentity identity,
       std::string path, bool writable, const FileTraits& traits = kOwnFile);
  ~File();

  const FileIdentity& identity() const { return context_.identity; }
  const std::string& path() const { return context_.path; }
  bool writable() const { return context_.writable; }
  /// What of it is ours.
  const FileTraits& traits() const { return context_.traits; }
  /// The process's, unless the file was given its own when it was opened.
  FileSettings settings() const;
  void SetSettings(const FileSettings& settings);
  /// What writes to its storage cost.
  const WriteCosts& costs() const { return context_.costs; }

  Drainer& drainer() { return drainer_; }
  const Drainer& drainer() const { return drainer_; }
  Closing& closing() { return closing_; }
  EpochSource& epochs() { return epochs_; }
  WritePath& writes() { return writes_; }
  ReadPath& reads() { return reads_; }
  /// The same, for reads that go on by themselves, and keep the file.
  std::shared_ptr<ReadPath> SharedReads() { return {shared_from_this(), &reads_}; }

  // The program's side; `call` is what the call in progress permits ----------------------------------------------

  /// As WritePath::Write.
  Status Write(uint64_t address, uint64_t size, const void* bytes, const CallContext& call = {}) {
    return writes_.Write(address, size, bytes, call);
  }
  /// `raw`: dataset elements rather than metadata. A read of elements into memory that its call has named for it becomes a deferred
  /// one.
  Status Read(uint64_t address, uint64_t size, void* buffer, bool raw,
              const CallContext& call = {});
  /// The size this file has, or will have when drained.
  uint64_t eof() const { return context_.eof.load(std::memory_order_relaxed); }
  Status Truncate(uint64_t size);

  /// Waits until everything captured is stored (as native's write calls promise; no fsync), after asking for a retry
  /// of what failed. When the call lets flush return early: starts the drain and returns; when it lets
  /// flush be skipped: does nothing.
  /// `closing`: as a part of a close, whose wait it then is.
  Status Flush(bool closing = false, const CallContext& call = {});

  /// While paused, bytes are captured and stay: until a flush, a close, a request or the arena wants them stored.
  void SetPaused(bool paused);
  /// Bytes stay at least so long, unless wanted as above; 0: as the process's settings say.
  void SetDelay(uint64_t us);
  /// Ends a pause, and has lanes store at once what is queued.
  void Start();

  Status Lock(bool exclusive);
  Status Unlock(const CallContext& call = {});
  /// Whether it has a lock of the file system's, which keeps others out.
  bool locked() const { return context_.lock.held(); }

  /// From now on every write goes through, in order. `reason` is counted once.
  Status WriteThrough(Fallback reason);
  /// Nothing is deferred here: somebody else looks at the file while it is open, or Tidelane is to keep out of it.
  bool writes_through() const { return context_.mode.through(); }
  /// The descriptor as HDF5's get_handle returns it. Drains and writes through from now on if the call says that it
  /// goes to the program.
  Status Descriptor(int*& descriptor, const CallContext& call = {});

  /// Of a shared file, before the first write: from now on other processes on this machine see what is pending, and this
  /// one waits for theirs in AwaitOthers.
  void SetDirtyRanges(std::unique_ptr<DirtyRangeTable> table);
  /// nullptr: there is none.
  const DirtyRangeTable* dirty_ranges() const { return context_.dirty_ranges.get(); }
  /// Until no other process holds bytes there that it wrote before this call. Nothing where there is no table.
  void AwaitOthers(uint64_t address, uint64_t size,
                   DirtyRangeTable::Whose whose = DirtyRangeTable::Whose::kOthers);

  // Its end -----------------------------------------------------------------------------------------------------

  /// No path leads to it any more.
  bool nameless() const;
  /// What is not stored never will be. What is on storage stays as it is: others may have the file open. For files that
  /// are stuck, or that nobody wants.
  void GiveUp();
  /// The same, and the descriptor is closed: reads and writes fail from now on. The program's side.
  void Abandon();
  bool abandoned() const { return *context_.device->descriptor() < 0; }

  /// fork: hold the lock across it.
  void LockForFork() TL_NO_ANALYSIS { drainer_.LockForFork(); }
  void UnlockAfterFork(bool child) TL_NO_ANALYSIS;

 private:
  bool DeferRead(uint64_t address, uint64_t size, void* buffer, const CallContext& call);

  FileContext context_;
  Drainer drainer_;
  FileEpochs epochs_;
  FileContent content_;
  ReadPath reads_;
  WritePath writes_;
  Closing closing_;
};

/// Somebody may change a file that is kept without a lock: nothing of it is kept from now on. `reason` is counted once.
inline void KeepNothing(File& file, Fallback reason) {
  static_cast<void>(file.WriteThrough(reason));  // it holds nothing that could fail
  file.reads().Forget();
}

}  // namespace tidelane
