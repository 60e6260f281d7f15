/// \file
/// Regions, the free list, and pre-faulting.
///
/// Faulting a region in takes milliseconds, so it happens without the mutex: whoever maps sets
/// `mapping_`, and threads that need a slab meanwhile wait for it or for a released one, while
/// releases go on.
///
/// Thread safety: as arena.h.
#include "buffer/arena.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <new>

#include "base/counters.h"

namespace tidelane {
namespace {

// A program that writes little should pay little: the first step is one slab, the second a few, and both are faulted in as they
// fill. And since somebody may be waiting for a step (16 MiB take about 1 ms, 10 ms where a hypervisor must find the memory
// first), none is larger than it takes to fault at full speed.
constexpr uint64_t kSmallestStep = uint64_t{2} << 20;
constexpr uint64_t kLargestStep = uint64_t{16} << 20;
constexpr uint32_t kFaultAhead = uint32_t{64}
                                 << 10;  // of what fills: a page at a time takes four times as long

uint32_t SlabSizeFor(uint64_t cap) {
  const uint64_t wanted = std::clamp(cap / 32, uint64_t{64} << 10, uint64_t{1} << 20);
  return static_cast<uint32_t>(std::bit_floor(wanted));
}

uint64_t WholeSlabs(uint64_t cap, uint32_t slab_size) {
  return cap < slab_size ? uint64_t{4} * slab_size : cap / slab_size * slab_size;
}

}  // namespace

Arena::Arena(uint64_t cap, SlabMemory& memory)
    : cap_(WholeSlabs(cap, SlabSizeFor(cap))), slab_size_(SlabSizeFor(cap)), memory_(memory) {
  CountMax(Counter::kArenaCapBytes, cap_);
}

Arena::~Arena() {
  MutexLock lock(mutex_);
  while (regions_ != nullptr) {
    Region* region = regions_;
    regions_ = region->next;
    if (region->base != nullptr) memory_.Release(region->base, region->size);
    delete[] region->slabs;
    delete region;
  }
}

Arena::Region* Arena::MakeRegion(uint64_t size, bool& faulted) {
  const size_t count = size / slab_size_;
  Slab* slabs = new (std::nothrow) Slab[count];
  Region* region = new (std::nothrow) Region;
  std::byte* base =
      slabs == nullptr || region == nullptr ? nullptr : memory_.Acquire(size, faulted);
  if (base == nullptr) {
    delete[] slabs;
    delete region;
    return nullptr;
  }
  *region = {base, size, slabs, nullptr};
  return region;
}

void Arena::AddRegion(Region* region, bool faulted) {
  region->next = regions_;
  regions_ = region;
  mapped_ += region->size;
  // Lowest addresses end up first in the list: neighbours in time become neighbours in memory.
  for (size_t i = region->size / slab_size_; i-- > 0;) {
    Slab& slab = region->slabs[i];
    slab.data = region->base + i * slab_size_;
    slab.size = slab_size_;
    slab.faulted = faulted ? slab_size_ : 0;
    slab.arena = const_cast<Arena*>(this);
    slab.next_free = free_;
    free_ = &slab;
  }
}

bool Arena::Grow(bool ahead) {
  uint64_t step = mapped_ == 0 ? slab_size_ : std::clamp(mapped_, kSmallestStep, kLargestStep);
  step = std::min(step, cap_ - mapped_);
  if (step < slab_size_) return false;
  bool faulted = ahead || step > kSmallestStep;
  mapping_ = true;
  mutex_.unlock();
  Region* region = MakeRegion(step / slab_size_ * slab_size_, faulted);
  while (region == nullptr && step / 2 >= slab_size_) {  // little is better than nothing
    step /= 2;
    region = MakeRegion(step / slab_size_ * slab_size_, faulted);
  }
  mutex_.lock();
  mapping_ = false;
  if (region != nullptr) AddRegion(region, faulted);
  freed_.NotifyAll();
  return region != nullptr;
}

Slab* Arena::Pop() {
  Slab* slab = free_;
  if (slab == nullptr) return nullptr;
  free_ = slab->next_free;
  slab->next_free = nullptr;
  slab->references.store(1, std::memory_order_relaxed);
  const uint64_t now_used = in_use_.load(std::memory_order_relaxed) + slab_size_;
  in_use_.store(now_used, std::memory_order_relaxed);
  CountMax(Counter::kArenaPeakBytes, now_used);
  return slab;
}

Slab* Arena::PopOrGrow() {
  while (free_ == nullptr) {
    if (mapping_) {
      freed_.Wait(mutex_);
    } else if (!Grow(false) && free_ == nullptr) {
      return nullptr;
    }
  }
  return Pop();
}

Slab* Arena::TryAcquire() {
  MutexLock lock(mutex_);
  return PopOrGrow();
}

Slab* Arena::AcquireUntil(std::chrono::steady_clock::time_point deadline) {
  MutexLock lock(mutex_);
  for (;;) {
    if (Slab* slab = PopOrGrow()) return slab;
    if (!freed_.WaitUntil(mutex_, deadline)) return Pop();
  }
}

void Arena::Unref(Slab* slab) {
  // acq_rel: what the other holders did with the bytes is over before the slab is handed out again.
  if (slab->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  slab->kind == Slab::Kind::kArena ? slab->arena->Release(slab) : EndOutside(slab);
}

void Arena::FaultMore(Slab& slab, uint32_t size) {
  const uint32_t wanted = (size + kFaultAhead - 1) / kFaultAhead * kFaultAhead;
  const uint32_t until = std::min(std::max(wanted, size), slab.size);
  (void)Populate(slab.data + slab.faulted,
                 until - slab.faulted);  // if not now, when they are touched
  slab.faulted = until;
}

void Arena::EndOutside(Slab* slab) {
  if (slab->kind == Slab::Kind::kWithdrawn) return;  // its region's
  if (slab->kind == Slab::Kind::kKept) delete[] slab->data;
  delete slab;
}

void Arena::Release(Slab* slab) {
  MutexLock lock(mutex_);
  slab->next_free = free_;
  free_ = slab;
  in_use_.store(in_use_.load(std::memory_order_relaxed) - slab_size_, std::memory_order_relaxed);
  // With the lock held: the arena may be destroyed as soon as its last slab is back.
  freed_.NotifyOne();
}

bool Arena::GrowAhead() {
  MutexLock lock(mutex_);
  if (mapping_) return false;
  const bool little = in_use() <= kSmallestStep || in_use() * 2 <= mapped_;
  if (little && mapped_ >= expected_.load(std::memory_order_relaxed)) return false;
  return Grow(true);
}

void Arena::LockForFork() {
  mutex_.lock();
  while (mapping_) freed_.Wait(mutex_);  // the child would not have the thread that maps
  fork_parent_ = getpid();
}

void Arena::UnlockAfterFork() {
  // The child's copy may count waiters that exist only in the parent, and a notification could wait
  // for them.
  if (getpid() != fork_parent_) {
    new (&freed_) Condition;
    if (memory_.at_fork() == SlabMemory::AtFork::kWithdrawn) Withdraw();
  }
  mutex_.unlock();
}

void Arena::Withdraw() {
  for (Region* region = regions_; region != nullptr; region = region->next) {
    if (region->base == nullptr) continue;  // a grandchild's parent has lost it already
    for (size_t i = 0; i < region->size / slab_size_; ++i) {
      Slab& slab = region->slabs[i];
      slab.data = nullptr;
      slab.size = slab.faulted = 0;
      slab.kind = Slab::Kind::kWithdrawn;
    }
    region->base = nullptr;
  }
  free_ = nullptr;
  mapped_ = 0;
  in_use_.store(0, std::memory_order_relaxed);
  memory_.BeginChild();
}

}  // namespace tidelane
