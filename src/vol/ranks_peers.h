/// \file
/// What ranks on one machine tell one another of filtered chunks that they have not put into the file yet (vol/ranks_filtered.h).
///
/// Natively a collective write that has returned is there for every rank, and a rank may ask alone: for elements, sizes, stored
/// chunks. It asks each other rank's desk (ranks/inquiry.h), where a thread answers, whatever that rank's program does meanwhile.
///
/// A question names writes by their place in the file's list of them, which is the same on all ranks. A rank that has left the
/// agreement on a write may ask before another one has copied its part: the answer waits for that.
///
/// Invariants:
///  1. Nobody commits while a rank is in a call that it makes alone, as a commit is of all ranks: what is asked for is held
///     until the answer is complete.
///  2. A buffer is not used again while an answer may be reading it.
/// Thread safety: ChunkBoard's functions may be called from any thread; AskForChunks under HDF5's lock.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/annotations.h"
#include "ranks/inquiry.h"
#include "vol/chunk_insert.h"
#include "vol/chunk_job.h"

namespace tidelane::vol {

/// As the chunk goes into the file: without its filters where those failed, which HDF5 reads as well.
StoredChunk StoredOf(const ChunkJob& job, uint32_t all_filters);
/// Until all are filtered; helps.
void FilterAll(std::span<const std::shared_ptr<ChunkJob>> jobs);

/// Where a rank is asked.
struct Peer {
  uint64_t desk = 0;
  uint64_t subject = 0;
  uint64_t file = 0;  ///< its own number of the file
};

struct ChunkQuestion {
  enum class What : uint64_t { kSizes, kElements, kStored };

  What what = What::kSizes;
  uint64_t dataset = 0;      ///< its number in the file
  uint64_t first_write = 0;  ///< of the writes from this one
  uint64_t end_write = 0;    ///< up to before that one
  int rank = 0;              ///< 0: chunks wherever they are, else those that have elements
  Coordinates low{};         ///< from here
  Coordinates high{};        ///< up to here, this one included

  bool Concerns(const ChunkGrid& grid, const Coordinates& origin) const;
};

/// A chunk that some rank holds.
struct HeldChunk {
  uint64_t write = 0;
  int rank = 0;  ///< who holds it
  Coordinates origin{};
  uint64_t size = 0;                 ///< as it will be stored; not with What::kElements
  uint32_t mask = 0;                 ///< likewise
  const std::byte* bytes = nullptr;  ///< what was asked for
  std::vector<std::byte> fetched;    ///< where they are, if another rank has them
};

class ChunkBoard {
 public:
  static std::shared_ptr<ChunkBoard> Make();
  uint64_t subject() const { return subject_; }

  using Jobs = std::vector<std::shared_ptr<ChunkJob>>;

  /// For so many writes more, which Add then needs no memory for. May throw std::bad_alloc.
  void Reserve(uint64_t file, size_t writes) TL_EXCLUDES(mutex_);
  /// The next write of a file.
  void Add(uint64_t file, uint64_t number, uint64_t dataset, uint32_t all_filters, Jobs jobs)
      TL_EXCLUDES(mutex_);
  /// Those before `end` are in the file. Whether an answer may still be reading their chunks.
  bool Drop(uint64_t file, uint64_t end) TL_EXCLUDES(mutex_);
  void Forget(uint64_t file) TL_EXCLUDES(mutex_);

 private:
  struct Write {
    uint64_t number;
    uint64_t dataset;
    uint32_t all_filters;
    Jobs jobs;
  };
  struct OfFile {
    uint64_t end = 0;  // writes that there have been
    std::vector<Write> writes;
  };
  ChunkBoard() = default;
  void Answer(std::span<const uint64_t> words, const InquiryDesk::Send& send) TL_EXCLUDES(mutex_);
  std::vector<Write> Find(uint64_t file, const ChunkQuestion& question) TL_EXCLUDES(mutex_);

  uint64_t subject_ = 0;
  Mutex mutex_;
  Condition changed_;
  std::map<uint64_t, OfFile> files_ TL_GUARDED_BY(mutex_);
  int answering_ TL_GUARDED_BY(mutex_) = 0;
};

/// Appends what a peer, the rank of that number, holds. False: it does not answer. May throw std::bad_alloc.
bool AskForChunks(const Peer& peer, int rank, const ChunkQuestion& question,
                  std::vector<HeldChunk>& found);

}  // namespace tidelane::vol
