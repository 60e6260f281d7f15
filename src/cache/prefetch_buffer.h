/// \file
/// Bytes of a file that are fetched before the program asks for them: what is wanted, what is on its
/// way, and what is here.
///
///   the program's side            lanes
///   Want ──▶ wanted ──────────▶ TakeBatch ──▶ on its way ──▶ End ──▶ here ──▶ Take
///
/// A byte leaves when the program has read it, when it changes (Drop), or when newer wishes need its
/// place. The program never waits for a lane to begin: what is wanted and not yet on its way it
/// takes back, and reads itself.
///
/// Invariants: pieces do not overlap; bytes that are here are what the file held when they were
/// wanted, and were not dropped since. Only Want adds pieces, and it is not called while a write is
/// under way: a lane cannot bring in bytes that a write is about to change.
/// Thread safety: all functions may be called from any thread; Want by one at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "base/annotations.h"
#include "buffer/arena.h"
#include "cache/access_predictor.h"

namespace tidelane {

/// How much may be fetched ahead, in all files together, and the memory for it.
class PrefetchBudget {
 public:
  /// `most` bytes, and never the second half of the arena: that is for bytes that are written.
  PrefetchBudget(Arena& arena, uint64_t most);

  uint64_t most() const { return most_; }
  uint32_t slab_size() const { return arena_.slab_size(); }
  bool none() const { return most_ < arena_.slab_size(); }

  /// A slab, given back when nobody refers to it any more; nullptr when there is no room.
  static std::shared_ptr<Slab> TakeSlab(const std::shared_ptr<PrefetchBudget>& room);

 private:
  Arena& arena_;
  const uint64_t most_;
  std::atomic<uint64_t> used_{0};
};

class PrefetchBuffer {
 public:
  /// Pieces are at most so long, and end at multiples of it.
  explicit PrefetchBuffer(uint64_t longest) : longest_(longest) {}
  ~PrefetchBuffer() { Drop(0, UINT64_MAX); }
  PrefetchBuffer(const PrefetchBuffer&) = delete;
  PrefetchBuffer& operator=(const PrefetchBuffer&) = delete;

  bool empty() const { return size_.load(std::memory_order_relaxed) == 0; }

  // The program's side ------------------------------------------------------------------------------------------

  /// Fetch these, in this order, as far as they are not here; keep at most `most` bytes, dropping what is not wanted
  /// any more. True when lanes have something to do.
  bool Want(const std::vector<ByteRange>& ranges, uint64_t most) TL_EXCLUDES(mutex_);
  /// Whether all of [begin, end) is here, on its way or wanted.
  bool Covers(uint64_t begin, uint64_t end) TL_EXCLUDES(mutex_);
  /// Whether some of it is.
  bool Touches(uint64_t begin, uint64_t end) TL_EXCLUDES(mutex_);

  struct Part {
    const std::byte* data = nullptr;  ///< nullptr: read it from storage
    uint64_t end = 0;                 ///< from `begin` so far
    std::shared_ptr<Slab> slab;       ///< keeps the bytes
    uint64_t waited_ns = 0;           ///< for bytes on their way
  };
  /// What is at `begin`, at most until `end`; the caller reads it now. Waits for bytes that are on their way.
  Part Take(uint64_t begin, uint64_t end) TL_EXCLUDES(mutex_);

  /// These bytes change, or are gone.
  void Drop(uint64_t begin, uint64_t end) TL_EXCLUDES(mutex_);
  /// Gives memory back.
  void DropAll() { Drop(0, UINT64_MAX); }
  /// Waits until nothing is on its way.
  void AwaitLanes() TL_EXCLUDES(mutex_);

  // The lanes' side ---------------------------------------------------------------------------------------------

  struct Fetch {
    uint64_t begin = 0;
    uint64_t size = 0;
    std::byte* to = nullptr;
  };
  /// Something is wanted.
  bool AnyWanted() TL_EXCLUDES(mutex_);
  /// The next pieces, as many as fit into `slab`, are on their way. Nothing if none is wanted.
  std::vector<Fetch> TakeBatch(const std::shared_ptr<Slab>& slab) TL_EXCLUDES(mutex_);
  /// It is here, or could not be fetched.
  void End(const Fetch& fetch, bool fetched) TL_EXCLUDES(mutex_);
  /// There is no room: forget what is wanted.
  void GiveUp() TL_EXCLUDES(mutex_);

  /// Bytes that were read, and that were fetched for nothing, so far.
  struct Score {
    uint64_t used = 0;
    uint64_t wasted = 0;
  };
  Score score() TL_EXCLUDES(mutex_);

 private:
  enum class State { kWanted, kOnItsWay, kHere };
  struct Piece {
    uint64_t end = 0;
    State state = State::kWanted;
    bool dropped = false;  // on its way, and not to be used
    uint64_t wish = 0;     // of which Want
    uint64_t used = 0;     // bytes of it that were read
    std::byte* data = nullptr;
    std::shared_ptr<Slab> slab;
  };
  using Map = std::map<uint64_t, Piece>;

  /// The first piece that ends behind `address`.
  Map::iterator From(uint64_t address) TL_REQUIRES(mutex_);
  void WantRange(ByteRange range) TL_REQUIRES(mutex_);
  /// Into the map; into the queue the caller puts it.
  void AddWanted(Map::iterator before, uint64_t begin, uint64_t end, uint64_t wish)
      TL_REQUIRES(mutex_);
  void MakeRoom(uint64_t most) TL_REQUIRES(mutex_);
  void TakeBack(Map::iterator it, uint64_t begin, uint64_t end) TL_REQUIRES(mutex_);
  Map::iterator Erase(Map::iterator it) TL_REQUIRES(mutex_);
  void Resize() TL_REQUIRES(mutex_) { size_.store(pieces_.size(), std::memory_order_relaxed); }

  const uint64_t longest_;
  std::atomic<size_t> size_{0};
  Mutex mutex_;
  Condition arrived_;
  Map pieces_ TL_GUARDED_BY(mutex_);
  std::deque<uint64_t> wanted_
      TL_GUARDED_BY(mutex_);  // where such pieces begin, the next one first
  uint64_t bytes_ TL_GUARDED_BY(mutex_) = 0;
  uint64_t wish_ TL_GUARDED_BY(mutex_) = 0;
  unsigned on_their_way_ TL_GUARDED_BY(mutex_) = 0;
  Score score_ TL_GUARDED_BY(mutex_);
};

}  // namespace tidelane
