/// \file
/// Small reads of one file, through blocks of its content (cache/block_cache.h).
///
/// Invariant: storage is asked with no lock held; what was changed while a block was read is not kept.
/// Thread safety: all functions may be called from any thread. Cost of a write while nothing is kept: one relaxed load.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/annotations.h"
#include "base/config.h"
#include "cache/block_cache.h"
#include "content/byte_source.h"
#include "content/node_blocks.h"
#include "model/block_worth.h"

namespace tidelane {

class Blocks {
 public:
  /// `worth`: of metadata's blocks, on the storage of this file; outlives it.
  Blocks(Toggle read_ahead, model::BlockWorth& worth) : worth_(worth), cache_(read_ahead, worth) {}

  /// Before the first read: metadata's blocks are shared with other processes.
  void Share(std::unique_ptr<NodeBlocks> node) { node_ = std::move(node); }

  /// Whether so small a read, or any while something is kept, is to be asked for here.
  bool MayHave(uint64_t size) const {
    return size <= BlockCache::kSmallRaw || kept_.load(std::memory_order_relaxed);
  }
  /// Copies it, if it is all here.
  bool Find(uint64_t address, uint64_t size, void* buffer) TL_EXCLUDES(mutex_);
  /// One read of a block, and what it took; `begin` and `size` are 0 where none was made.
  struct Filled {
    uint64_t begin = 0;
    uint64_t size = 0;
    ReadTimes times;
    bool ok = true;
  };
  /// The same; or reads the block that it lies in, if that is worth it; of two blocks, the second, if the first is here.
  /// False: the read is the caller's.
  bool Read(ByteSource& source, uint64_t address, uint64_t size, void* buffer, bool raw,
            Filled& filled) TL_EXCLUDES(mutex_);

  /// A write of these bytes happens.
  void Written(uint64_t address, uint64_t size, const void* bytes) TL_EXCLUDES(mutex_) {
    if (kept_.load(std::memory_order_relaxed)) Update(address, size, bytes);
  }
  void CutFrom(uint64_t address) TL_EXCLUDES(mutex_);
  void Clear() TL_EXCLUDES(mutex_);
  /// A read that went to storage by itself took so long.
  void Observe(uint64_t size, uint64_t ns) {
    if (size <= BlockCache::kSmall) worth_.ReadAlone(ns);
  }
  /// The file is not locked: nothing is kept of it. Counted once.
  void CountUnlocked() TL_EXCLUDES(mutex_);

 private:
  bool FindShared(const ByteSource& source, uint64_t address, uint64_t size, void* buffer)
      TL_EXCLUDES(mutex_);
  void Update(uint64_t address, uint64_t size, const void* bytes) TL_EXCLUDES(mutex_);

  std::unique_ptr<NodeBlocks> node_;  // nullptr: nobody else reads the file with us
  model::BlockWorth& worth_;
  std::atomic<bool> kept_{false};  // something may be in the cache
  Mutex mutex_;
  BlockCache cache_ TL_GUARDED_BY(mutex_);
  uint64_t changes_ TL_GUARDED_BY(mutex_) = 0;
  bool counted_unlocked_ TL_GUARDED_BY(mutex_) = false;
};

}  // namespace tidelane
