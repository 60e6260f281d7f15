/// \file
/// What the VOL face remembers about one libhdf5.
///
/// Invariant: nothing here owns HDF5 objects beyond the library's closing: Forget (lifetime.cc)
/// drops all ids. Thread safety: used inside callbacks, so protected by that libhdf5's lock; a fork asks `call_work` without.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/connector_info.h"
#include "file/file.h"
#include "h5/library.h"
#include "vol/request.h"

namespace tidelane::vol {

/// The numbers that this libhdf5 gave our optional operations (vol/control.h); -1: none yet.
struct Operations {
  enum Kind {
    kWait,
    kStart,
    kPause,
    kDelay,
    kTest,
    kKinds,
    kCommit = kKinds,
    kQuery,
    kQueryLater,
    kFileKinds
  };
  enum RequestKind { kRequestStart, kRequestDependency, kRequestKinds };
  int file[kFileKinds] = {-1, -1, -1, -1, -1, -1, -1, -1};
  int dataset[kKinds] = {-1, -1, -1, -1, -1};
  int request[kRequestKinds] = {-1, -1};
};

/// A file whose native close failed: HDF5 has released most of it, and only close may be called.
struct FailedClose {
  void* object;
  std::shared_ptr<File> file;  ///< has bytes that could not be stored; nullptr: it has none
};

/// Whether datasets may have a sieve buffer whose bytes nothing else has yet (vol/sieve_store.h).
struct SieveBuffers {
  bool any = false;
  bool unknown = false;  ///< of datasets, too, of which that is not noted
};

class DatasetCatalogue;
class CallQueue;
class LateQueries;
class ChunkCapture;
class RankChunks;

struct LibraryState {
  explicit constexpr LibraryState(int slot_number) : slot(slot_number) {}

  h5::Library& hdf5() const { return h5::LibraryAt(slot); }

  const int slot;
  int connectors = 0;          ///< initialized and not yet terminated: `tidelane`, `async`
  bool started = false;        ///< this libhdf5 is changed as Start says (vol/lifetime.h)
  bool watches_close = false;  ///< our H5atclose function is registered
  bool closing = false;        ///< the library is shutting down
  int calls =
      0;  ///< callbacks of ours in progress, one inside the other where HDF5 calls the program
  RequestQueue requests;
  hid_t default_dxpl =
      h5::kNoId;  ///< what H5P_DEFAULT means for transfers, seen when files are opened
  /// The last list that was seen to make datasets in one piece (vol/dataset_calls.cc).
  hid_t plain_dcpl = h5::kNoId;
  hid_t told_dxpl =
      h5::kNoId;  ///< a copy of it that says how a transfer went (vol/transfer_outcome.h)
  hid_t independent_dxpl = h5::
      kNoId;  ///< the last one that stood for a program's, which HDF5 writes to until its call ends (vol/ranks_read.h)
  /// How many properties that list has: one with as many has none of ours (vol/property_lists.h).
  size_t default_properties = 0;
  /// A file was captured that ranks of an MPI program have open together (vol/ranks.h).
  bool parallel_files = false;
  /// Of the last files that were found not to be open by ranks together: they are not asked about again.
  std::array<unsigned long, 16> foreign_serials{};
  /// How often a group in such a file was unlinked, with whatever is in it (vol/ranks_dataset.h).
  uint64_t groups_unlinked = 0;
  /// Filtered chunks that ranks put into such files together (vol/ranks_filtered.h). Never destroyed.
  RankChunks* rank_chunks = nullptr;
  bool mounts = false;               ///< a file was mounted on another
  bool limits_copies = false;        ///< a file was opened whose settings let buffers be lent
  H5Z_class2_t own_deflate{};        ///< HDF5's, while ours is in its place; id 0: it is not known
  H5L_class_t own_external_links{};  ///< HDF5's, while ours is in its place (vol/external_links.h)
  size_t last_inflated = 0;  ///< what the last deflated chunk came to (vol/deflate_filter.h)
  Operations operations;
  /// What is known of open datasets (vol/dataset_catalogue.h). Never destroyed.
  DatasetCatalogue* datasets = nullptr;
  SieveBuffers sieve_buffers;
  /// A file was opened of which we keep no blocks: its small reads are for HDF5's sieve, too.
  bool sieves_reads = false;
  /// Elements of such a file were read through the sieve: it may hold what is older than what others would find now.
  bool sieve_windows = false;
  /// A file was opened that is only read: small reads of it that follow each other are.
  bool only_reads = false;
  /// A file was opened whose sieve is larger than HDF5's usual one.
  bool large_sieves = false;
  /// Counts calls that may change where datasets' chunks are (class ChunkMapInvalidation).
  uint64_t changes = 0;
  uint64_t flushes = 0;  ///< calls that flush something
  /// The program has written chunks as they are stored (H5Dwrite_chunk): beyond the array they may have elements of its own.
  bool chunks_written_raw = false;
  /// Work for HDF5 that one of the program's next calls does (vol/call_queue.h); nullptr: there never was any. Never destroyed.
  CallQueue* call_queue = nullptr;
  /// Whether there is such work now, a failure of it that nobody has been told of, or such a query. Calls ask no more than this
  /// as long as there is none; a fork asks without HDF5's lock.
  enum Work : unsigned { kCalls = 1, kQueries = 2 };
  std::atomic<unsigned> call_work{0};
  void NoteWork(Work kind, bool any) {
    const unsigned bit = kind;
    const unsigned others = call_work.load(std::memory_order_relaxed) & ~bit;
    call_work.store(others | (any ? bit : 0), std::memory_order_relaxed);
  }
  /// Queries that are answered after their calls (vol/late_query.h); nullptr: there never were any. Never destroyed.
  LateQueries* late_queries = nullptr;
  /// Takes over writes of filtered chunks (vol/chunk_capture.h); nullptr: there never were any. Never destroyed.
  ChunkCapture* chunk_capture = nullptr;
  /// Never destroyed.
  std::vector<FailedClose>* failed_closes = nullptr;
  /// The native objects of the files that the program has open. Never destroyed.
  std::vector<void*>* open_files = nullptr;
  /// Those of them that another driver has, except MPI's (vol/file.cc).
  std::vector<void*>* foreign_files = nullptr;
  /// What access lists said about their files (vol/info.h). Never destroyed.
  std::deque<FileChoice>* file_choices = nullptr;
};

/// Around calls of HDF5 that may change chunks. It counts twice, so that a read that the program makes from inside such a
/// call (a conversion's callback may) leaves nothing behind that would still be believed after it.
class ChunkMapInvalidation {
 public:
  explicit ChunkMapInvalidation(LibraryState& library) : library_(library) { ++library_.changes; }
  ~ChunkMapInvalidation() { ++library_.changes; }
  ChunkMapInvalidation(const ChunkMapInvalidation&) = delete;
  ChunkMapInvalidation& operator=(const ChunkMapInvalidation&) = delete;

 private:
  LibraryState& library_;
};

/// Whether only a close may be called for `file`: the native one has failed, and nearly all of the file is gone.
inline bool IsHalfClosed(const LibraryState& library, const void* file) {
  return library.failed_closes != nullptr &&
         std::ranges::any_of(*library.failed_closes,
                             [file](const FailedClose& failed) { return failed.object == file; });
}

namespace internal {
extern LibraryState libraries[h5::kSlots];
}

template <int Slot>
LibraryState& LibraryStateOf() {
  static_assert(Slot >= 0 && Slot < h5::kSlots);
  return internal::libraries[Slot];
}

}  // namespace tidelane::vol
