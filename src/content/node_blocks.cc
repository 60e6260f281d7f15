#include "content/node_blocks.h"

#include <optional>
#include <utility>

#include "base/counters.h"
#include "content/file_watch.h"

namespace tidelane {

bool NodeBlocks::Read(const ByteSource& source, uint64_t address, uint64_t size,
                      void* buffer) const {
  const SharedBlocks* const shared = shared_.load(std::memory_order_acquire);
  if (shared == nullptr) return false;
  const std::optional<FileVersion> version = source.watched();
  if (!version.has_value()) return false;
  const uint64_t block = address / SharedBlocks::kBlock;
  if (!shared->Read(block, *version, address % SharedBlocks::kBlock, size, buffer)) return false;
  Count(Counter::kNodeHits);
  return true;
}

SharedBlocks::Turn NodeBlocks::Take(const ByteSource& source, uint64_t start) {
  using Turn = SharedBlocks::Turn;
  SharedBlocks* const shared = Join();
  if (shared == nullptr) return Turn::kAlone;
  const std::optional<FileVersion> version = source.watched();
  if (!version.has_value() || !FileWatch::Settled(*version)) return Turn::kAlone;
  const Turn turn = shared->Take(start / SharedBlocks::kBlock, *version);
  if (shared->full()) CountOnce();
  return turn;
}

SharedBlocks* NodeBlocks::Join() {
  if (SharedBlocks* const shared = shared_.load(std::memory_order_acquire); shared != nullptr)
    return shared;
  MutexLock lock(mutex_);
  if (!std::exchange(tried_, true)) {
    owned_ = SharedBlocks::Join(file_, job_);
    shared_.store(owned_.get(), std::memory_order_release);
    if (owned_ == nullptr) CountOnce();
  }
  return owned_.get();
}

void NodeBlocks::CountOnce() {
  if (!counted_.exchange(true)) Count(Fallback::kMpiNodeMemory);
}

}  // namespace tidelane
