/// \file
/// Filtered chunks that ranks of an MPI program write together (decision 20), with `parallel_writes=on`.
///
///   1. A collective write of whole chunks by every rank (or of none by some) is agreed upon with the one reduction of
///      vol/ranks_write.h. Each rank copies its chunks; lanes run the filters (vol/chunk_job.h). HDF5 hears nothing of it.
///   2. At a moment at which all ranks provably are together, they *commit*: each waits for its filters, all tell one another
///      which chunks they have, how large they came out, and every rank puts every chunk into the file with HDF5's direct
///      chunk write, in one order (chunk/chunk_order.h). So each rank's HDF5 allocates the same space and makes the
///      same index. Our driver captures the bytes of this rank's own chunks, and drops others'.
///   3. Such moments are: collective reads and native writes of that dataset, deletions, shrinking, copies, atomic mode,
///      flush and close (h5::NeedsChunks); further such writes, as far as the filters of all ranks are done, or where memory runs
///      short; the end of the library.
///   4. A rank that asks alone, for elements, sizes or stored chunks, is told what it would be told if all chunks were in the file
///      (OverlayHeld and others): it asks the other ranks (vol/ranks_peers.h), if all are on one machine.
///
/// Invariants:
///  1. All ranks hold the same list of writes, each with its own chunks in it. What decides about it was agreed.
///  2. A commit that failed on any rank leaves the list as it was, on all of them, and is tried again by the next one; the call
///     that needed it fails on all ranks. Until then nothing more is taken.
///  3. Before a rank tells HDF5 of the first chunk, all have the memory for all of them, and HDF5 is not told of a failure of
///     ours: what all ranks make of the file's index stays the same on each.
///  4. A dataset with chunks in the list is open by a handle of ours: the program may close it.
///
/// Thread safety: used inside callbacks, under HDF5's lock.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/counters.h"
#include "chunk/chunk_order.h"
#include "h5/parallel_file.h"
#include "vol/chunk_job.h"
#include "vol/chunk_memory.h"
#include "vol/ranks_peers.h"
#include "vol/read_dataset.h"
#include "vol/writing.h"

namespace tidelane::vol {

class RankChunks {
 public:
  /// A write of one dataset by all ranks, with this rank's chunks.
  struct Write {
    SharedWrite shared;
    std::shared_ptr<void> handle;  // of the dataset
    std::vector<std::shared_ptr<ChunkJob>> jobs;
    uint32_t all_filters = 0;
    uint64_t most = 0;  // chunks that any rank has in it, or in the other writes of the same call
    std::vector<std::shared_ptr<ChunkJob>> shown;  // those that the board is about to get
    std::shared_ptr<void> desk;                    // somebody answers for it
  };
  /// What this rank's part of a collective write would be.
  struct Offer {
    std::optional<Fallback> refusal = Fallback::kMpiDataset;
    bool no_room = false;  ///< as long as others are held
    uint64_t chunks = 0;
    std::vector<Write> writes;
    std::vector<std::optional<TouchedChunks>> touched;
  };

  explicit RankChunks(LibraryState& library) : library_(library), board_(ChunkBoard::Make()) {}

  Offer Look(h5::ParallelFile& file, const Writes& writes, hid_t dxpl);
  /// Once no rank has refused: how the ranks of this file ask one another. Collective the first time.
  void MeetPeers(h5::ParallelFile& file);
  /// What all ranks offered; none of them has more than `most` chunks in it. Collective.
  void Take(const std::shared_ptr<h5::ParallelFile>& file, const Writes& writes, Offer offer,
            uint64_t most);

  /// So many of the oldest writes of this file have no chunk on this rank that is not filtered yet.
  uint64_t Finished(const h5::ParallelFile& file) const;
  /// Whether all ranks hold chunks of this dataset (0: of any).
  bool Hold(const h5::ParallelFile& file, uint64_t dataset) const;
  /// What all ranks hold that the question, which names no writes yet, is about: in the order in which one takes the other's place.
  /// Without peers that can be asked, this rank's own. nullopt: a rank does not answer. May throw std::bad_alloc.
  std::optional<std::vector<HeldChunk>> Ask(const h5::ParallelFile& file, ChunkQuestion question);
  /// The grid of a dataset that chunks are held of; nullptr: there are none.
  const ChunkGrid* GridOf(const h5::ParallelFile& file, uint64_t dataset) const;

  /// Commits the oldest writes. Collective. The same on all ranks, but for the message.
  Status Commit(h5::ParallelFile& file, uint64_t count = UINT64_MAX);

  /// The file is about to be closed, and nothing of it is held.
  void Forget(const h5::ParallelFile& file);
  /// The library closes: what can be is committed, file after file in the order in which they were opened, which is the same on
  /// all ranks. Call from within a call of HDF5.
  void End();

 private:
  struct Held {
    std::shared_ptr<h5::ParallelFile> file;
    std::vector<Write> writes;
    bool failed = false;
    uint64_t first = 0;  // so many writes were before these
    enum class Reach { kNotAsked, kAll, kNone } reach = Reach::kNotAsked;
    std::vector<Peer> peers;           // in the order of ranks
    std::vector<uint64_t> introduced;  // space to find them
  };

  bool MayTake(const h5::ParallelFile& file) const;
  std::optional<Fallback> LookAt(const h5::ParallelFile& file, const Writing& writing, hid_t dxpl,
                                 Offer& offer, uint64_t& charge);
  bool MakeJobs(const h5::ParallelFile& file, const Writes& writes, Offer& offer);
  std::shared_ptr<void> Open(const h5::ParallelFile& file, void* dataset, uint64_t number);
  bool AnswersFor(Offer& offer);
  void FindPeers(h5::ParallelFile& file, Held& held);
  /// A commit, once all its memory is there.
  struct Plan {
    std::vector<OrderedChunk> chunks;
    std::vector<size_t> old_sizes;
  };

  Status CommitNow(Held& held, size_t count);
  Status Agree(Held& held, size_t count, Plan& plan);
  Status PutAll(Held& held, Plan& plan);
  Status Put(Held& held, const OrderedChunk& chunk, size_t old_size);

  LibraryState& library_;
  const std::shared_ptr<ChunkBoard> board_;
  ChunkMemory memory_;
  std::map<uint64_t, Held> held_;  // by the files' numbers
};

/// Collective. Before a call that could see such chunks of this file; false, with the failure on the error stack, on all
/// ranks, if they could not be put into it.
bool CommitChunks(LibraryState& library, h5::ParallelFile& file);
/// Whether all ranks hold chunks of one of these datasets.
bool HoldChunksOf(LibraryState& library, const h5::ParallelFile& file, size_t count,
                  void* datasets[]);
/// Commits if they do.
bool CommitChunksOf(LibraryState& library, h5::ParallelFile& file, size_t count, void* datasets[]);

// What a rank that asks alone is told of datasets of which ranks hold chunks: what it would be told if those were in the file. (They are
// defined in vol/ranks_questions.cc.) Only addresses nobody knows yet, as all ranks together give them: who asks for one gets an
// error, which says that a flush helps.

/// After a rank's own read: lays what ranks hold over it. False, with the failure on the error stack: that cannot be done.
bool OverlayHeld(LibraryState& library, const h5::ParallelFile& parallel, const Reading& reading);

/// Sizes as H5Dget_storage_size and H5Dget_space_status tell them, after HDF5 has answered with `result`.
herr_t CountHeld(LibraryState& library, const h5::ParallelFile& parallel, herr_t result,
                 void* dataset, const H5VL_dataset_get_args_t* args, hid_t dxpl);

/// What H5Dget_num_chunks, H5Dget_chunk_storage_size, H5Dread_chunk and their kin are told; nullopt: HDF5 knows it.
std::optional<herr_t> AnswerHeld(LibraryState& library, const h5::ParallelFile& parallel,
                                 void* dataset, H5VL_optional_args_t* args, hid_t dxpl);

}  // namespace tidelane::vol
