#include "content/blocks.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "base/counters.h"

namespace tidelane {

bool Blocks::Find(uint64_t address, uint64_t size, void* buffer) {
  MutexLock lock(mutex_);
  if (!cache_.Read(address, size, buffer)) return false;
  Count(Counter::kReadAheadHits);
  return true;
}

bool Blocks::Read(ByteSource& source, uint64_t address, uint64_t size, void* buffer, bool raw,
                  Filled& filled) {
  NodeBlocks* const node = raw ? nullptr : node_.get();
  const uint64_t middle = BlockCache::BlockStart(address) + BlockCache::kBlock;
  if (address < middle && middle < address + size && size <= BlockCache::kBlock) {
    auto* const rest = static_cast<std::byte*>(buffer) + (middle - address);
    const uint64_t size_here = middle - address;
    return (node != nullptr ? FindShared(source, address, size_here, buffer)
                            : Find(address, size_here, buffer)) &&
           Read(source, middle, address + size - middle, rest, raw, filled);
  }
  const uint64_t end = source.size();
  const uint64_t start = BlockCache::BlockStart(address);
  if (node != nullptr && FindShared(source, address, size, buffer)) return true;
  BlockBytes block;
  uint64_t changes = 0;
  {
    MutexLock lock(mutex_);
    if (cache_.Read(address, size, buffer)) {
      Count(Counter::kReadAheadHits);
      if (!raw) worth_.Answered();
      return true;
    }
    if (!cache_.Wants(address, size, raw, end)) return false;
    // Nobody but us may change the file under a cached block: a lock tells, and what the program does with its own
    // descriptor (or a SWMR writer in another process) nobody tells.
    const ByteSource::Keep keep = source.keep();
    if (keep != ByteSource::Keep::kYes) {
      if (keep == ByteSource::Keep::kNotLocked && !std::exchange(counted_unlocked_, true))
        Count(Fallback::kLocking);
      return false;
    }
    block = cache_.TakeMemory(start);
    if (block == nullptr) return false;
    changes = changes_;
    kept_.store(true, std::memory_order_relaxed);
  }
  const uint64_t valid = std::min(BlockCache::kBlock, end - start);
  NodeTurn turn(node, source, start);
  if (!turn.here() || !node->Read(source, start, valid, block.get())) {
    filled.begin = start;
    filled.size = valid;
    filled.ok = source.Read(Reader::kProgram, start, valid, block.get(), filled.times).ok();
    if (!filled.ok) return false;  // the plain read decides what the program is told
    turn.Put(block.get(), valid);
    if (!raw && filled.times.bytes != 0) worth_.Filled(filled.times.end_ns - filled.times.begin_ns);
  }
  std::memcpy(buffer, block.get() + (address - start), size);
  MutexLock lock(mutex_);
  if (changes_ == changes) cache_.Insert(start, valid, std::move(block));
  return true;
}

bool Blocks::FindShared(const ByteSource& source, uint64_t address, uint64_t size, void* buffer) {
  if (!Find(address, size, buffer) && !node_->Read(source, address, size, buffer)) return false;
  worth_.Answered();
  return true;
}

void Blocks::Update(uint64_t address, uint64_t size, const void* bytes) {
  MutexLock lock(mutex_);
  ++changes_;
  cache_.Update(address, size, bytes);
}

void Blocks::CutFrom(uint64_t address) {
  MutexLock lock(mutex_);
  ++changes_;
  cache_.CutFrom(address);
}

void Blocks::Clear() {
  MutexLock lock(mutex_);
  ++changes_;
  cache_.Clear();
}

void Blocks::CountUnlocked() {
  MutexLock lock(mutex_);
  if (!std::exchange(counted_unlocked_, true)) Count(Fallback::kLocking);
}

}  // namespace tidelane
