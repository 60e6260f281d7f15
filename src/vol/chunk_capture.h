/// \file
/// Filtered chunks on their way: written by the program, not yet in the file (decision 11).
///
///   1. A write of whole chunks is copied, a chunk a job; lanes run the filters (vol/chunk_job.h).
///   2. A thread of the program inserts what has been filtered (vol/chunk_insert.h) inside one of its next calls, and before any call
///      that could see those chunks (vol/call_queue.h). Our driver then captures the bytes like any others.
///      A request waits for its chunks like that, too, and then for their bytes (vol/chunk_batch.h).
///   3. A dataset that is closed with chunks on their way is kept open until they are in.
///
/// Invariant: memory for chunks stays within a quarter of the arena's cap. Who finds none inserts first.
///
/// Thread safety: used inside callbacks, under HDF5's lock; lanes know only jobs.
#pragma once

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <vector>

#include "vol/call_queue.h"
#include "vol/chunk_batch.h"
#include "vol/chunk_job.h"
#include "vol/chunk_memory.h"
#include "vol/chunk_write.h"
#include "vol/dataset_catalogue.h"
#include "vol/lending.h"
#include "vol/library_state.h"

namespace tidelane::vol {

/// What is known of a dataset that filtered chunks may be written to.
struct FilteredDataset final : DatasetState {
  static constexpr Kind kKind = kFiltered;
  bool stays() const override { return pending != 0; }

  WrittenDataset written;
  uint64_t open_as_of =
      UINT64_MAX;      ///< how many files had been closed when its own was known to be open
  size_t pending = 0;  ///< jobs, in whatever list
  std::unordered_map<uint64_t, ChunkJob*> newest;  ///< of those in the queue, by the chunk's number
  bool closed = false;                             ///< by the program
};

class ChunkCapture {
 public:
  explicit ChunkCapture(LibraryState& library)
      : library_(library), calls_(CallQueue::Of(library)) {}

  /// Takes over a write; false: HDF5 has to run it, everything that it could meet has been settled, and if `may_run` is
  /// false that failed. `late` is the part that these chunks are of a request; nullptr: nobody asked for one.
  bool Take(const Writing& writing, hid_t dxpl, bool& may_run,
            const std::shared_ptr<ChunkBatch>& late = nullptr);
  /// Whether it would take over a write, but for want of room; nothing has been done.
  bool WouldTake(const Writing& writing, hid_t dxpl);
  /// As vol/call_queue.h's DoCallWork, before elements of datasets are read or written: those without chunks of ours need not wait.
  bool InsertBefore(size_t count, void* datasets[], hid_t dxpl);
  /// Whether `extent` has all chunks of a dataset where they are, with the numbers they have: it grows in the slowest
  /// dimension, if at all. False if something went wrong that has not been told yet.
  bool OnlyAppends(void* dataset, const hsize_t extent[]);
  /// The program reads datasets.
  void NoteReads(size_t count, void* datasets[]);

  /// The program closes `dataset`; true: it will be closed natively once its chunks are in.
  bool KeepOpen(void* dataset);
  /// Whether `dataset`, newly opened, is a dataset that is kept open so: HDF5 then keeps the access list that it was first opened with. Null:
  /// whether any dataset is kept open.
  bool IsKeptOpen(void* dataset);
  /// `dataset` has just been made, in one piece as far as can be told: the list that says so may have been changed since
  /// it was looked at. Then HDF5 filters its chunks; where any chunk of ours is pending, the dataset is looked at.
  void NoteProbablyPlain(void* dataset);
  /// The program closes a file, perhaps one that it has open a second time.
  void NoteFileClose();
  /// Of a dataset that chunks of ours may have been put into; else nullptr.
  const ChunkGrid* GridOf(void* dataset) const;

  /// The library closes, and nothing is on its way any more.
  void End();

 private:
  FilteredDataset* LookAt(const Writing& writing, hid_t dxpl);
  FilteredDataset& Known(void* dataset, hid_t dxpl);
  FilteredDataset* Find(void* dataset) const;
  bool IsPlain(void* dataset, hid_t dxpl);
  bool IsOpen(FilteredDataset& known);
  bool MayTake(FilteredDataset& known);
  bool TakeIfOurs(FilteredDataset& known, const Writing& writing, hid_t dxpl,
                  const std::shared_ptr<ChunkBatch>& late);
  bool TakeChunks(FilteredDataset& known, const Writing& writing, const TouchedChunks& touched,
                  const std::shared_ptr<ChunkBatch>& late);
  std::shared_ptr<ChunkJob> MakeJob(const FilteredDataset& known, void* dataset, uint64_t number);
  bool MakeRoom(uint64_t charge);
  bool Queue(FilteredDataset& known, const std::shared_ptr<ChunkJob>& job);
  void UseIndex(FilteredDataset& known, void* dataset);
  // A chunk's work for HDF5.
  class Insertion;
  void NoLongerNewest(const ChunkJob& job);
  // It is in, or never will be.
  void Gone(ChunkJob& job);

  LibraryState& library_;
  CallQueue& calls_;
  uint64_t file_closes_ = 0;
  unsigned indexes_used_ = 0;  // kinds of them, a bit each
  bool any_ours_ = false;      // a dataset was ever seen whose chunks lanes may filter
  ChunkMemory memory_;
};

/// As ChunkCapture::InsertBefore.
inline bool InsertChunksBefore(LibraryState& library, size_t count, void* datasets[], hid_t dxpl) {
  if (!AnyCallWork(library)) return true;
  if (library.chunk_capture != nullptr)
    return library.chunk_capture->InsertBefore(count, datasets, dxpl);
  return std::all_of(datasets, datasets + count, [&](void* dataset) {
    return CallQueue::Of(library).DoAll(dataset, H5I_DATASET, dxpl);
  });
}

}  // namespace tidelane::vol
