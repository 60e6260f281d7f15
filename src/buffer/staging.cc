#include "buffer/staging.h"

#include <sys/mman.h>

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

namespace tidelane {
namespace {

uint64_t RoundUp(uint64_t size, uint64_t unit) { return (size + unit - 1) / unit * unit; }

}  // namespace

StagingMemory::StagingMemory(uint64_t cap) : cap_(RoundUp(std::max<uint64_t>(cap, 1), kGranule)) {}

StagingMemory::~StagingMemory() {
  MutexLock lock(mutex_);
  if (base_ != nullptr) munmap(base_, cap_);
}

uint64_t StagingMemory::in_use() const {
  MutexLock lock(mutex_);
  return in_use_;
}

uint64_t StagingMemory::pinned() const {
  MutexLock lock(mutex_);
  return kGranule * static_cast<uint64_t>(std::ranges::count(granules_, Pages::kPinned));
}

// Address space costs nothing; a granule's pages are made accessible when one is wanted. Granules begin at multiples of their size,
// so that who has an address knows where the next one begins.
bool StagingMemory::Reserve() {
  if (base_ != nullptr) return true;
  granules_.assign(cap_ / kGranule, Pages::kNone);
  free_ = {{0, {cap_, nullptr}}};
  void* const mapped =
      mmap(nullptr, cap_ + kGranule, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return false;
  auto* const begin = static_cast<std::byte*>(mapped);
  const uint64_t before =
      RoundUp(reinterpret_cast<uintptr_t>(mapped), kGranule) - reinterpret_cast<uintptr_t>(mapped);
  if (before != 0) munmap(begin, before);
  munmap(begin + before + cap_, kGranule - before);
  base_ = begin + before;
  madvise(base_, cap_, MADV_DONTFORK);
  madvise(base_, cap_, MADV_HUGEPAGE);
  return true;
}

bool StagingMemory::Populate(uint64_t begin, uint64_t end, Pinner& pinner) {
  for (uint64_t i = begin / kGranule; i * kGranule < end; ++i) {
    if (granules_[i] != Pages::kNone) continue;
    std::byte* const at = base_ + i * kGranule;
    if (mprotect(at, kGranule, PROT_READ | PROT_WRITE) != 0) return false;
    granules_[i] = pinner.Pin(at, kGranule) == 0 ? Pages::kPinned : Pages::kPlain;
  }
  return true;
}

Slab* StagingMemory::TryAcquire(uint64_t size, Pinner& pinner) {
  if (size > cap_) return nullptr;
  const uint64_t whole = RoundUp(size, kUnit);
  MutexLock lock(mutex_);
  try {
    if (!Reserve()) return nullptr;
    // The lowest place: so few granules are touched.
    const auto room =
        std::ranges::find_if(free_, [&](const auto& at) { return at.second.size >= whole; });
    if (room == free_.end()) return nullptr;
    const uint64_t at = room->first;
    if (!Populate(at, at + whole, pinner)) return nullptr;
    auto slab = std::make_unique<Slab>();
    used_[at] = {whole, slab.get()};
    Pieces::node_type rest = free_.extract(room);
    if (rest.mapped().size > whole) {
      rest.key() += whole;
      rest.mapped().size -= whole;
      free_.insert(std::move(rest));
    }
    slab->kind = Slab::Kind::kOwned;
    slab->owner = this;
    slab->data = base_ + at;
    slab->references.store(1, std::memory_order_relaxed);
    in_use_ += whole;
    return slab.release();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void StagingMemory::AwaitReturn(std::chrono::steady_clock::time_point deadline) {
  MutexLock lock(mutex_);
  const uint64_t before = returns_;
  while (returns_ == before && returned_.WaitUntil(mutex_, deadline)) {
  }
}

// Joins it with its free neighbours. Nothing is allocated: lanes come here.
void StagingMemory::GiveBack(uint64_t at) {
  Pieces::node_type piece = used_.extract(at);
  piece.mapped().slab = nullptr;
  in_use_ -= piece.mapped().size;
  const auto behind = free_.upper_bound(at);
  if (behind != free_.end() && behind->first == at + piece.mapped().size) {
    piece.mapped().size += behind->second.size;
    free_.erase(behind);
  }
  auto before = free_.lower_bound(at);
  if (before != free_.begin() && (--before)->first + before->second.size == at) {
    before->second.size += piece.mapped().size;
  } else {
    free_.insert(std::move(piece));
  }
}

void StagingMemory::Release(Slab* slab) {
  {
    MutexLock lock(mutex_);
    // What a fork took from this process is no part of the range any more.
    if (slab->kind != Slab::Kind::kWithdrawn) GiveBack(static_cast<uint64_t>(slab->data - base_));
    ++returns_;
    returned_.NotifyAll();
  }
  delete slab;
}

void StagingMemory::Empty() {
  for (auto& [at, piece] : used_) {
    piece.slab->kind = Slab::Kind::kWithdrawn;
    piece.slab->data = nullptr;
  }
  used_.clear();
  free_.clear();
  granules_.clear();
  in_use_ = 0;
  base_ = nullptr;
}

void StagingMemory::UnlockAfterFork(bool child) {
  if (child) {
    new (&returned_) Condition;  // the parent's waiters are not here
    Empty();
  }
  mutex_.unlock();
}

}  // namespace tidelane
