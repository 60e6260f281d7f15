/// \file
/// Where a file's bytes rest: what is below the pipeline of one open file. Capture, lanes and reads know this interface alone, so
/// that another kind of storage (a log, a cache in front of one) takes the place of the file itself without their notice.
///
/// It is asked once for a run of up to a MiB or for a read, never for a captured write: a virtual call costs nothing there.
///
/// Invariant: `size` is what storage has, also after a failure; a call either did all of what it was asked or says why not.
/// Thread safety: all functions may be called from any thread, with no lock held; calls on overlapping bytes, and SetSize
/// beside any other call, are ordered by the caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "device/device.h"
#include "extent/extent.h"

namespace tidelane {

/// When a commit is made.
enum class Committing : uint8_t {
  kIfDue,    ///< if it is due by what the program asked for
  kNow,      ///< in any case
  kIntoFile  ///< and then the file by itself has all of it
};

/// Functions return 0 or an errno unless they say otherwise; addresses and sizes are bytes.
class Store {
 public:
  virtual ~Store() = default;

  /// Stores a run's extents, and says in it when storage was asked and when it answered. What lies between them stays as it was, or
  /// is zero where storage has nothing yet. ENOMEM: there was no memory for that; nothing was written.
  virtual int Write(Run& run) = 0;
  /// Stores the bytes of [run.begin, run.end), which lie at `bytes`; times likewise.
  virtual int WriteBytes(Run& run, const void* bytes) = 0;
  /// Bytes beyond the end read as zero.
  virtual int Read(uint64_t address, void* buffer, size_t n) = 0;
  virtual uint64_t size() const = 0;
  /// Cuts it short or makes it longer.
  virtual int SetSize(uint64_t size) = 0;
  /// Makes sure that writing [address, address + size) will not fail for lack of space; EOPNOTSUPP where that cannot be
  /// promised.
  virtual int Reserve(uint64_t address, uint64_t size) = 0;
  /// Gives back what was reserved beyond the end. `found`: how long storage is, which is less than size() where somebody else has
  /// cut it short.
  virtual void EndReservations(uint64_t& found) = 0;
  virtual int Version(FileVersion& version) = 0;
  /// Whether writes end in this machine's memory, as far as it is known before one was made.
  virtual bool memory_speed() const = 0;
  /// Before the first read and the first write, and after the file was locked, if it is: storage may have been left in the middle of
  /// something. What it came to; size() may be another one then. Again, after it failed.
  virtual Status Settle() { return {}; }
  /// Where HDF5's superblock lies, which says what the rest means: before it is written.
  virtual void SetSuperblock(uint64_t /*begin*/, uint64_t /*end*/) {}
  /// Whether commits mean something here.
  virtual bool commits() const { return false; }
  /// All that was written is what is found after any end of the program. Nothing may be on its way.
  virtual int Commit(Committing /*when*/) { return 0; }
  /// The last commit; then the file is by itself what it is. Nothing but EndReservations, Publish and Close may follow.
  virtual int Finish() { return 0; }
  /// From now on others look at the file itself: commits mean nothing any more. Nothing may be on its way.
  virtual int EndCommits() { return 0; }
  /// As Device's.
  virtual Status Publish(Publishing when) = 0;
  virtual void Withhold(Withholding why) = 0;
  /// No other call may follow, but for size().
  virtual int Close() = 0;
};

/// The store that is the file itself (direct_store.h).
std::unique_ptr<Store> DirectStoreOn(const std::shared_ptr<Device>& device);

}  // namespace tidelane
