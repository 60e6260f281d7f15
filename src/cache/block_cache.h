/// \file
/// Blocks of a file's logical content (storage with pending bytes on top), for small reads: metadata read-ahead on slow
/// storage, and neighbouring small raw reads everywhere.
///
/// A block is filled by one logical read and patched by every later write, so it always equals what a read would give:
/// there is nothing to invalidate except a truncation. This holds because the owner sees every byte written to the file
/// while the cache is in use: it must hold the file's lock, and must Clear() when it no longer does.
///
/// When it reads ahead: raw reads of at most kSmallRaw bytes near an earlier one (cache/near_reads.h); metadata reads of at most
/// kSmall when the policy is on, or, on auto, while that pays on this storage (model/block_worth.h).
///
/// Invariant: valid bytes of a block equal the file's logical content. At most kBlocks blocks, or a quarter more than there are
/// streams of raw reads: with fewer each would lose its block before its next read. Where small datasets lie side by side, a stream is
/// not seen for each; a block that is wanted again soon after it made room tells the same. One block only where all files' take enough
/// memory together.
/// Thread safety: none; guarded by the file's read mutex.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "base/config.h"
#include "cache/block_memory.h"
#include "cache/evicted_blocks.h"
#include "cache/near_reads.h"
#include "model/block_worth.h"

namespace tidelane {

class BlockCache {
 public:
  static constexpr uint64_t kBlock = BlockMemory::kBlock;
  static constexpr size_t kBlocks = 32;
  static constexpr size_t kMostBlocks = NearReads::kStreams + NearReads::kStreams / 4;
  static constexpr uint64_t kSmall = 4096;
  static constexpr uint64_t kSmallRaw = uint64_t{16} * 1024 - 1;

  /// `worth` outlives it.
  BlockCache(Toggle policy, model::BlockWorth& worth) : policy_(policy), worth_(worth) {}

  /// Whether a read of `size` bytes at `address` should go through a block (of a file that ends at `eof`).
  bool Wants(uint64_t address, uint64_t size, bool raw, uint64_t eof);
  /// Copies [address, address + size) when it is all here.
  bool Read(uint64_t address, uint64_t size, void* buffer);
  /// Where the block around `address` begins.
  static uint64_t BlockStart(uint64_t address) { return address / kBlock * kBlock; }
  /// Memory of kBlock bytes for the block at `start`, to fill (up to the file's end) and hand to Insert: that of the block least recently used, if there are
  /// as many as there may be.
  BlockBytes TakeMemory(uint64_t start);
  /// The block at `start` holds `valid` bytes.
  void Insert(uint64_t start, uint64_t valid, BlockBytes bytes);

  /// A write of these bytes happened.
  void Update(uint64_t address, uint64_t size, const void* bytes);
  /// The file was cut at `address`.
  void CutFrom(uint64_t address);
  void Clear() { blocks_.clear(); }

 private:
  struct Block {
    uint64_t valid;
    uint64_t used;
    BlockBytes bytes;
  };
  void Patch(uint64_t start, Block& block, uint64_t address, uint64_t size, const void* bytes);

  const Toggle policy_;
  model::BlockWorth& worth_;
  std::unordered_map<uint64_t, Block> blocks_;  // by where they begin
  uint64_t clock_ = 0;
  std::unique_ptr<NearReads> near_;         // of raw reads; nullptr: there were none
  std::unique_ptr<EvictedBlocks> evicted_;  // nullptr: there were none
  size_t wanted_again_ = 0;                 // so many more blocks than kBlocks are worth it
};

}  // namespace tidelane
