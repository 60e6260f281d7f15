/// \file
/// GPU buffers: transfers whose elements lie in a device's memory go through memory of ours that HDF5 can look at.
///
///   1. Of each buffer the driver of the GPU is asked whose it is (gpu/runtime.h), if the program has loaded one.
///   2. What is selected of a device's memory is copied, run for run, into staging memory (buffer/staging.h), after what the program
///      has put into its stream; the call then goes on with that memory, and a dataspace for it where the runs had gaps.
///   3. Long writes are not copied once more: their extents, and chunks for lanes to filter, lie in the staging memory (HeldBytes).
///   4. What was read is copied to the device before the call returns; where the call gave an event set, lanes may read into the
///      staging memory after it, and the copy comes later still (vol/device_upload.h).
///
/// Memory that was written from is the program's own again when the call returns, also where it gave an event set.
///
/// Elements that hold pointers (of variable length, references) have no meaning there: such a call fails, and says why.
///
/// Cost: where the program has loaded no driver (gpu::IsLoaded), one load a call. Thread safety: used inside callbacks, under HDF5's lock.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "file/held_bytes.h"
#include "gpu/loaded.h"
#include "vol/library_state.h"
#include "vol/writing.h"

namespace tidelane::vol {

/// Whose the buffers of one call are, a row each: nullopt of the host's. Empty where all are.
using Memories = std::vector<std::optional<gpu::Memory>>;

Memories MemoriesOf(size_t count, const void* const buffers[]);

/// What is larger is transferred in slices (vol/device_slices.h), so that one can be stored while the next one is copied.
uint64_t MostStaged();

/// The rows of one call, those in device memory replaced. When it goes, nothing is on its way any more.
class StagedRows final : public HeldBytes {
 public:
  /// `after`: the program's stream that its copies come after.
  StagedRows(LibraryState& library, hid_t dxpl, gpu::Stream after);
  ~StagedRows() override;

  /// Which memory will do where there is no room in the staging memory.
  enum class Room : bool { kAny, kStaging };

  /// Begins to copy down what `writes` selects in device memory. False: that cannot be (Tell).
  bool Stage(const Memories& memories, const Writes& writes);
  /// Makes room for what `reads` wants in device memory; where HDF5 may leave bytes of it as they are, copies those down first.
  bool Stage(const Memories& memories, const Transfers<void*>& reads, Room room);
  /// Stage failed only because there is no such room.
  bool lacks_room() const { return lacks_room_; }
  /// Puts on the error stack what has failed here, if anything has.
  void Tell() const;
  /// The same, for whoever asks the call's request.
  Status failure() const;
  /// Copies what was read to the device, and waits for it. False: that failed (Tell).
  bool CopyUp();

  // The same after the call, whose ids may have been closed by then.
  /// In the call: these copies will come after what the program has put into its stream by now. False: that failed (Tell).
  bool PrepareUp();
  /// All elements are in the staging memory: begins to copy.
  void BeginUp();
  /// Whether all copies have ended: done, or one has failed.
  bool PollUp();
  /// Waits for them. False: that failed (failure).
  bool FinishUp();

  const Writes& writes() const { return writes_; }
  const Transfers<void*>& reads() const { return reads_; }

  uint64_t size() const override { return bytes_; }
  uint64_t PieceAt(const void* bytes, uint64_t size) const override;
  bool AwaitAll() override;
  Status Await(const void* bytes, uint64_t size) override;
  uint64_t TakeCopyNs() override { return std::exchange(copy_ns_, 0); }
  Slab* SlabOf(const void* bytes, uint64_t size) const override;

 private:
  struct Row;
  // What lies between the elements of a buffer that is written from may be read; nobody may write there.
  enum class Gaps : bool { kStay, kMayBeCopied };

  Row* RowAt(const void* bytes, uint64_t size) const;
  bool Make(Row& row, const Writing& writing, Gaps gaps, Room room);
  bool FindRuns(Row& row, const Writing& writing, hid_t space, Gaps gaps);
  bool Acquire(Row& row, Room room);
  void Waited(const Row& row, uint64_t ns);
  bool Fails(const Row& row, const char* what, const std::string& why);

  LibraryState& library_;
  const hid_t dxpl_;
  const gpu::Stream after_;
  uint64_t bytes_ = 0;
  uint64_t copy_ns_ = 0;
  std::string failure_;
  std::string path_;  // of the file of what has failed
  bool lacks_room_ = false;
  std::vector<std::unique_ptr<Row>> rows_;
  Rest<const void*> for_writes_;
  Rest<void*> for_reads_;
  Writes writes_{};
  Transfers<void*> reads_{};
};

namespace internal {
bool AwaitHeld(LibraryState& library, const Writes& writes, hid_t dxpl);
}

/// Before HDF5 is given elements of the call in progress that may still be on their way: waits until all of them are there, unless
/// HDF5 only hands them on to our driver, which waits. False: that failed (StagedRows::Tell).
inline bool AwaitHeld(LibraryState& library, const Writes& writes, hid_t dxpl) {
  return !gpu::IsLoaded() || internal::AwaitHeld(library, writes, dxpl);
}

}  // namespace tidelane::vol
