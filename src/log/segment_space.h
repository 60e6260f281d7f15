/// \file
/// Which bytes of a segment are taken: all below its end, but for those that no commit needs any more.
///
/// Invariant: what is free shares no sector with what is needed.
/// Thread safety: all functions may be called from any thread; the lock is a leaf.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/annotations.h"
#include "log/format.h"

namespace tidelane::log {

class SegmentSpace {
 public:
  struct Range {
    uint64_t begin;
    uint64_t end;
  };

  /// So many bytes in one piece, from the offset that is returned.
  uint64_t Take(uint64_t size) TL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    for (Range& range : free_) {
      if (range.end - range.begin < size) continue;
      const uint64_t offset = range.begin;
      range.begin += size;
      return offset;
    }
    const uint64_t offset = end_;
    end_ += size;
    return offset;
  }

  /// They were taken, and nothing came there: storage may have no room as far as they go.
  void GiveBack(const Range& range) TL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (range.end == end_) {
      end_ = range.begin;
    } else {
      AddFree(range);
    }
  }

  /// Whatever else was taken is free.
  void KeepOnly(std::vector<Range> needed) TL_EXCLUDES(mutex_) {
    std::ranges::sort(needed, {}, &Range::begin);
    MutexLock lock(mutex_);
    free_.clear();
    uint64_t begin = kDataBegin;
    needed.push_back({end_, end_});
    for (const Range& range : needed) {
      AddFree({begin, range.begin});
      begin = std::max(begin, range.end);
    }
  }

  /// Another program has taken these: all that is taken.
  void GoOn(std::vector<Range> needed) TL_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      for (const Range& range : needed) end_ = std::max(end_, range.end);
    }
    KeepOnly(std::move(needed));
  }

  /// Nothing was ever taken from here on.
  uint64_t end() const TL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return end_;
  }
  /// What is taken.
  uint64_t taken() const TL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    uint64_t taken = end_ - kDataBegin;
    for (const Range& range : free_) taken -= range.end - range.begin;
    return taken;
  }

 private:
  void AddFree(const Range& range) TL_REQUIRES(mutex_) {
    const Range sectors{(range.begin + kSector - 1) / kSector * kSector,
                        range.end / kSector * kSector};
    if (sectors.begin < sectors.end) free_.push_back(sectors);
  }

  mutable Mutex mutex_;
  uint64_t end_ TL_GUARDED_BY(mutex_) = kDataBegin;
  std::vector<Range> free_ TL_GUARDED_BY(mutex_);  // some may be empty
};

}  // namespace tidelane::log
