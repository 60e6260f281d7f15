#include "content/deferred_reads.h"

#include "content/parallel_read.h"

namespace tidelane {

void DeferredReads::PruneLocked() {
  std::erase_if(reads_, [](const std::weak_ptr<ParallelRead>& one) {
    const std::shared_ptr<ParallelRead> read = one.lock();
    return read == nullptr || read->done();
  });
  count_.store(reads_.size(), std::memory_order_relaxed);
}

void DeferredReads::Add(const std::shared_ptr<ParallelRead>& read) {
  MutexLock lock(mutex_);
  if (reads_.size() == reads_.capacity()) PruneLocked();  // not for each of many
  reads_.push_back(read);
  count_.store(reads_.size(), std::memory_order_relaxed);
}

bool DeferredReads::any() {
  if (count_.load(std::memory_order_relaxed) == 0) return false;
  MutexLock lock(mutex_);
  PruneLocked();
  return !reads_.empty();
}

template <typename Which>
void DeferredReads::AwaitWhich(Which which) {
  std::vector<std::shared_ptr<ParallelRead>> those;
  {
    MutexLock lock(mutex_);
    PruneLocked();
    for (const std::weak_ptr<ParallelRead>& one : reads_) {
      if (std::shared_ptr<ParallelRead> read = one.lock(); read != nullptr && which(*read))
        those.push_back(std::move(read));
    }
  }
  for (const std::shared_ptr<ParallelRead>& read : those) static_cast<void>(read->Finish());
}

void DeferredReads::AwaitThose(uint64_t begin, uint64_t end) {
  AwaitWhich([&](const ParallelRead& read) { return read.Touches(begin, end); });
}

void DeferredReads::AwaitThoseThatFill() {
  AwaitWhich([](const ParallelRead& read) { return read.fills_memory(); });
}

}  // namespace tidelane
