#include "cache/block_cache.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tidelane {

BlockCache::Block* BlockCache::Find(uint64_t start) {
  for (Block& block : blocks_) {
    if (block.start == start) return &block;
  }
  return nullptr;
}

bool BlockCache::Wants(uint64_t address, uint64_t size, bool raw, uint64_t eof) {
  if (size > kSmall || address + size > eof) return false;
  if (BlockStart(address) != BlockStart(address + size - 1)) return false;
  if (raw) {
    const uint64_t last = last_raw_;
    last_raw_ = address;
    return policy_ != Toggle::kOff && last != UINT64_MAX && address + kBlock > last &&
           address < last + kBlock;
  }
  return policy_ == Toggle::kOn ||
         (policy_ == Toggle::kAuto && average_ns_.load(std::memory_order_relaxed) > kSlowReadNs);
}

bool BlockCache::Read(uint64_t address, uint64_t size, void* buffer) {
  if (blocks_.empty() || size > kBlock) return false;
  Block* block = Find(BlockStart(address));
  if (block == nullptr || address + size > block->start + block->valid) return false;
  block->used = ++clock_;
  std::memcpy(buffer, block->bytes.get() + (address - block->start), size);
  return true;
}

std::unique_ptr<std::byte[]> BlockCache::TakeMemory() {
  if (blocks_.size() < kBlocks) return std::make_unique_for_overwrite<std::byte[]>(kBlock);
  const auto oldest = std::ranges::min_element(blocks_, {}, &Block::used);
  std::unique_ptr<std::byte[]> bytes = std::move(oldest->bytes);
  blocks_.erase(oldest);
  return bytes;
}

void BlockCache::Insert(uint64_t start, uint64_t valid, std::unique_ptr<std::byte[]> bytes) {
  std::erase_if(blocks_, [&](const Block& block) { return block.start == start; });
  blocks_.push_back({start, valid, ++clock_, std::move(bytes)});
}

void BlockCache::Update(uint64_t address, uint64_t size, const void* bytes) {
  for (Block& block : blocks_) {
    const uint64_t from = std::max(address, block.start);
    const uint64_t to = std::min(address + size, block.start + kBlock);
    if (from >= to) continue;
    if (from >
        block.start + block.valid) {  // a hole would come between: what it holds is not known here
      continue;
    }
    std::memcpy(block.bytes.get() + (from - block.start),
                static_cast<const std::byte*>(bytes) + (from - address), to - from);
    block.valid = std::max(block.valid, to - block.start);
  }
}

void BlockCache::CutFrom(uint64_t address) {
  for (Block& block : blocks_) {
    if (block.start + block.valid > address)
      block.valid = address > block.start ? address - block.start : 0;
  }
}

void BlockCache::Observe(uint64_t size, uint64_t ns) {
  if (size > kBlock) return;
  const uint64_t average = average_ns_.load(std::memory_order_relaxed);
  average_ns_.store(average == 0 ? ns : (average * 3 + ns) / 4, std::memory_order_relaxed);
}

}  // namespace tidelane
