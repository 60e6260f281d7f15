#include "cache/block_cache.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace tidelane {

bool BlockCache::Wants(uint64_t address, uint64_t size, bool raw, uint64_t eof) {
  if (size > (raw ? kSmallRaw : kSmall) || address + size > eof) return false;
  if (BlockStart(address) != BlockStart(address + size - 1)) return false;
  if (raw) {
    if (policy_ == Toggle::kOff) return false;
    if (near_ == nullptr) near_ = std::make_unique<NearReads>();
    return near_->Note(address);
  }
  return policy_ == Toggle::kOn || (policy_ == Toggle::kAuto && worth_.Pays());
}

bool BlockCache::Read(uint64_t address, uint64_t size, void* buffer) {
  if (blocks_.empty() || size > kBlock) return false;
  const uint64_t start = BlockStart(address);
  const auto found = blocks_.find(start);
  if (found == blocks_.end() || address + size > start + found->second.valid) return false;
  // Who reads a block's last byte goes on in the next one: this one goes first. If it were the newest, a stream in its place among as
  // many others as there are blocks would drive out the next stream's block, and that one the one after it.
  found->second.used = address + size == start + kBlock ? 0 : ++clock_;
  std::memcpy(buffer, found->second.bytes.get() + (address - start), size);
  return true;
}

BlockBytes BlockCache::TakeMemory(uint64_t start) {
  // By an eighth: who reads many in turn finds room for all of them in its second round.
  if (evicted_ != nullptr && evicted_->Take(start / kBlock))
    wanted_again_ = std::min(wanted_again_ + 1 + wanted_again_ / 8, kMostBlocks);
  // Some more than streams: of one that lost its place to others the block is still wanted.
  const size_t streams = near_ == nullptr ? 0 : near_->streams();
  const size_t most =
      std::min(std::max(kBlocks + wanted_again_, streams + streams / 4), kMostBlocks);
  if (blocks_.empty() || (blocks_.size() < most && BlockMemory::Roomy()))
    return BlockMemory::Take();
  const auto oldest =
      std::ranges::min_element(blocks_, {}, [](const auto& entry) { return entry.second.used; });
  if (evicted_ == nullptr) evicted_.reset(new (std::nothrow) EvictedBlocks);
  if (evicted_ != nullptr) evicted_->Note(oldest->first / kBlock);
  BlockBytes bytes = std::move(oldest->second.bytes);
  blocks_.erase(oldest);
  return bytes;
}

void BlockCache::Insert(uint64_t start, uint64_t valid, BlockBytes bytes) {
  blocks_.insert_or_assign(start, Block{valid, ++clock_, std::move(bytes)});
}

void BlockCache::Patch(uint64_t start, Block& block, uint64_t address, uint64_t size,
                       const void* bytes) {
  const uint64_t from = std::max(address, start);
  const uint64_t to = std::min(address + size, start + kBlock);
  // A hole would come between: what it holds is not known here.
  if (from >= to || from > start + block.valid) return;
  std::memcpy(block.bytes.get() + (from - start),
              static_cast<const std::byte*>(bytes) + (from - address), to - from);
  block.valid = std::max(block.valid, to - start);
}

void BlockCache::Update(uint64_t address, uint64_t size, const void* bytes) {
  if (size / kBlock >= blocks_.size()) {
    for (auto& [start, block] : blocks_) Patch(start, block, address, size, bytes);
    return;
  }
  for (uint64_t start = BlockStart(address); start < address + size; start += kBlock) {
    const auto found = blocks_.find(start);
    if (found != blocks_.end()) Patch(start, found->second, address, size, bytes);
  }
}

void BlockCache::CutFrom(uint64_t address) {
  for (auto& [start, block] : blocks_) {
    if (start + block.valid > address) block.valid = address > start ? address - start : 0;
  }
}

}  // namespace tidelane
