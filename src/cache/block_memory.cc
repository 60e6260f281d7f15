#include "cache/block_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>

#include "base/memory_limit.h"

namespace tidelane {
namespace {

constexpr uint64_t kMostOfAll = uint64_t{64} << 20;
constexpr uint64_t kShare = 64;

constinit std::atomic<uint64_t> taken{0};

}  // namespace

void BlockRelease::operator()(std::byte* bytes) const {
  munmap(bytes, BlockMemory::kBlock);
  taken.fetch_sub(BlockMemory::kBlock, std::memory_order_relaxed);
}

BlockBytes BlockMemory::Take() {
  void* const mapped =
      mmap(nullptr, kBlock, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  taken.fetch_add(kBlock, std::memory_order_relaxed);
  return BlockBytes(static_cast<std::byte*>(mapped));
}

uint64_t BlockMemory::Taken() { return taken.load(std::memory_order_relaxed); }

uint64_t BlockMemory::Most() {
  static const uint64_t most = std::min(kMostOfAll, UsableMemoryBytes() / kShare);
  return most;
}

}  // namespace tidelane
