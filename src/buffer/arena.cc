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
#include <utility>

#include "base/counters.h"
#include "base/trace.h"

namespace tidelane {
namespace {

// A program that writes little should pay little: the first step is one slab, the second a few, and both are faulted in as they
// fill. And since somebody may be waiting for a step (16 MiB take about 1 ms, 10 ms where a hypervisor must find the memory
// first), none is larger than it takes to fault at full speed.
constexpr uint64_t kSmallestStep = uint64_t{2} << 20;
constexpr uint64_t kLargestStep = uint64_t{16} << 20;
// Ready beyond what is in use: so much is filled in the time in which a lane gets as much more ready.
constexpr uint64_t kMostAhead = uint64_t{32} << 20;
constexpr uint32_t kFaultAhead = uint32_t{64}
                                 << 10;  // of what fills: a page at a time takes four times as long

constexpr uint64_t kShortestKeptNs = 10'000'000'000;
constexpr uint64_t kLongestKeptNs = 60'000'000'000;
constexpr uint64_t kPeriodsKept = 4;
constexpr uint64_t kScarceKeptNs = 200'000'000;
constexpr auto kNever = std::chrono::nanoseconds::max();
constexpr uint64_t kWorthTrimming = uint64_t{4} << 20;  // less is not worth a lane that stays

uint32_t SlabSizeFor(uint64_t cap) {
  const uint64_t wanted = std::clamp(cap / 32, uint64_t{64} << 10, uint64_t{1} << 20);
  return static_cast<uint32_t>(std::bit_floor(wanted));
}

uint64_t WholeSlabs(uint64_t cap, uint32_t slab_size) {
  return cap < slab_size ? uint64_t{4} * slab_size : cap / slab_size * slab_size;
}

}  // namespace

Arena::Arena(uint64_t cap, SlabMemory& memory)
    : cap_(WholeSlabs(cap, SlabSizeFor(cap))),
      slab_size_(SlabSizeFor(cap)),
      memory_(memory),
      kept_ns_(kShortestKeptNs),
      parts_(
          slab_size_, [this] { return TryAcquire(); }, &Arena::Unref),
      crumbs_(parts_.part_size(), [this] { return parts_.TryAcquire(); }, &Arena::Unref) {
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
    faulted ? free_.Push(&slab, NowNs()) : free_.PushCold(&slab);
  }
}

void Arena::BeginMapping() {
  mapping_ = true;
  mutex_.unlock();
}

void Arena::EndMapping() {
  mutex_.lock();
  mapping_ = false;
  freed_.NotifyAll();
}

bool Arena::Grow(bool ahead) {
  uint64_t step = mapped_ == 0 ? slab_size_ : std::clamp(mapped_, kSmallestStep, kLargestStep);
  step = std::min(step, cap_ - mapped_);
  if (step < slab_size_) return false;
  bool faulted = ahead || step > kSmallestStep;
  BeginMapping();
  Region* region = MakeRegion(step / slab_size_ * slab_size_, faulted);
  while (region == nullptr && step / 2 >= slab_size_) {  // little is better than nothing
    step /= 2;
    region = MakeRegion(step / slab_size_ * slab_size_, faulted);
  }
  EndMapping();
  if (region != nullptr) AddRegion(region, faulted);
  return region != nullptr;
}

// What went back to the system should have been kept for longer.
void Arena::NoteNeeded(Slab* slab, uint64_t now_ns) {
  if (slab->faulted != 0 || slab->freed_ns == 0) return;
  kept_ns_ = std::clamp(kPeriodsKept * (now_ns - slab->freed_ns), kept_ns_, kLongestKeptNs);
  slab->freed_ns = 0;
}

bool Arena::WarmSome() {
  Slab* some = nullptr;
  for (uint64_t bytes = 0; bytes < kLargestStep && free_.cold_bytes() != 0; bytes += slab_size_) {
    Slab* const slab = free_.PopCold();
    NoteNeeded(slab, NowNs());
    slab->next_free = std::exchange(some, slab);
  }
  if (some == nullptr) return false;
  BeginMapping();
  for (Slab* slab = some; slab != nullptr; slab = slab->next_free) FaultMore(*slab, slab->size);
  EndMapping();
  while (some != nullptr) free_.Push(std::exchange(some, some->next_free), NowNs());
  return true;
}

std::chrono::nanoseconds Arena::Trim(uint64_t now_ns) {
  MutexLock lock(mutex_);
  if (mapping_ || free_.hot_bytes() < kWorthTrimming) return kNever;
  const uint64_t kept_ns = memory_.scarce() ? kScarceKeptNs : kept_ns_;
  Slab* aged = now_ns < kept_ns ? nullptr : free_.TakeAged(now_ns - kept_ns);
  bool discarded = true;
  if (aged != nullptr) {
    expected_.store(0, std::memory_order_relaxed);
    BeginMapping();
    for (Slab* slab = aged; slab != nullptr && discarded; slab = slab->next_free) {
      discarded = memory_.Discard(slab->data, slab->size);
      if (discarded) slab->faulted = 0;
    }
    EndMapping();
  }
  while (aged != nullptr) {
    Slab* const slab = std::exchange(aged, aged->next_free);
    slab->faulted == 0 ? free_.PushCold(slab) : free_.Push(slab, now_ns);
  }
  if (!discarded || free_.hot_bytes() < kWorthTrimming) return kNever;
  const uint64_t due = free_.OldestNs() + kept_ns;
  return std::chrono::nanoseconds(due - std::min(now_ns, due - 1));
}

Slab* Arena::Pop() {
  Slab* const slab = free_.Pop();
  if (slab == nullptr) return nullptr;
  if (slab->faulted == 0) NoteNeeded(slab, NowNs());
  taken_ = true;
  slab->references.store(1, std::memory_order_relaxed);
  const uint64_t now_used = in_use_.load(std::memory_order_relaxed) + slab_size_;
  in_use_.store(now_used, std::memory_order_relaxed);
  CountMax(Counter::kArenaPeakBytes, now_used);
  return slab;
}

Slab* Arena::PopOrGrow() {
  while (free_.empty()) {
    if (mapping_) {
      freed_.Wait(mutex_);
    } else if (!Grow(false) && free_.empty()) {
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
  Unpin(*slab);
  if (slab->kind == Slab::Kind::kArena) {
    slab->arena->Release(slab);
  } else if (slab->kind == Slab::Kind::kPart) {
    SlabParts::Release(slab);
  } else {
    EndOutside(slab);
  }
}

void Arena::FaultMore(Slab& slab, uint32_t size) {
  const uint32_t wanted = (size + kFaultAhead - 1) / kFaultAhead * kFaultAhead;
  const uint32_t until = std::min(std::max(wanted, size), slab.size);
  (void)Populate(slab.data + slab.faulted,
                 until - slab.faulted);  // if not now, when they are touched
  slab.faulted = until;
}

void Arena::EndOutside(Slab* slab) {
  if (slab->owner != nullptr) return slab->owner->Release(slab);
  if (slab->kind == Slab::Kind::kWithdrawn) return;  // its region's
  if (slab->kind == Slab::Kind::kKept) delete[] slab->data;
  delete slab;
}

void Arena::Release(Slab* slab) {
  MutexLock lock(mutex_);
  free_.Push(slab, NowNs());
  in_use_.store(in_use_.load(std::memory_order_relaxed) - slab_size_, std::memory_order_relaxed);
  // With the lock held: the arena may be destroyed as soon as its last slab is back.
  freed_.NotifyOne();
}

bool Arena::GrowAhead() {
  MutexLock lock(mutex_);
  if (mapping_) return false;
  // What nobody has needed is given back after a while (Trim), and is not got ready again for nothing.
  const uint64_t warm = mapped_ - free_.cold_bytes();
  const bool little =
      !taken_ || in_use() <= kSmallestStep || in_use() + std::min(in_use(), kMostAhead) <= warm;
  if (little && warm >= expected_.load(std::memory_order_relaxed)) {
    taken_ = false;
    return false;
  }
  return WarmSome() || Grow(true);
}

void Arena::LockForFork() {
  crumbs_.LockForFork();
  parts_.LockForFork();
  mutex_.lock();
  while (mapping_) freed_.Wait(mutex_);  // the child would not have the thread that maps
  fork_parent_ = getpid();
}

void Arena::UnlockAfterFork() {
  // The child's copy may count waiters that exist only in the parent, and a notification could wait
  // for them.
  if (getpid() != fork_parent_) {
    new (&freed_) Condition;
    if (memory_.at_fork() == SlabMemory::AtFork::kWithdrawn) {
      Withdraw();
      parts_.Withdraw();
      crumbs_.Withdraw();
    }
  }
  mutex_.unlock();
  parts_.UnlockAfterFork();
  crumbs_.UnlockAfterFork();
}

void Arena::Withdraw() {
  for (Region* region = regions_; region != nullptr; region = region->next) {
    if (region->base == nullptr) continue;  // a grandchild's parent has lost it already
    for (size_t i = 0; i < region->size / slab_size_; ++i) {
      Slab& slab = region->slabs[i];
      Unpin(slab);
      slab.data = nullptr;
      slab.size = slab.faulted = 0;
      slab.kind = Slab::Kind::kWithdrawn;
    }
    region->base = nullptr;
  }
  free_.Forget();
  mapped_ = 0;
  in_use_.store(0, std::memory_order_relaxed);
  memory_.BeginChild();
}

}  // namespace tidelane
