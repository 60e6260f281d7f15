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
  PruneLocked();
  reads_.push_back(read);
  count_.store(reads_.size(), std::memory_order_relaxed);
}

bool DeferredReads::any() {
  if (count_.load(std::memory_order_relaxed) == 0) return false;
  MutexLock lock(mutex_);
  PruneLocked();
  return !reads_.empty();
}

void DeferredReads::AwaitThose(uint64_t begin, uint64_t end) {
  std::vector<std::shared_ptr<ParallelRead>> touched;
  {
    MutexLock lock(mutex_);
    PruneLocked();
    for (const std::weak_ptr<ParallelRead>& one : reads_) {
      if (std::shared_ptr<ParallelRead> read = one.lock();
          read != nullptr && read->Touches(begin, end)) {
        touched.push_back(std::move(read));
      }
    }
  }
  for (const std::shared_ptr<ParallelRead>& read : touched) static_cast<void>(read->Finish());
}

}  // namespace tidelane
