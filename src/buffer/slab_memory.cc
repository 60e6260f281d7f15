#include "buffer/slab_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "base/control_groups.h"
#include "base/memory_limit.h"
#include "base/trace.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace tidelane {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr uint64_t kBelievedNs = 100'000'000;

// Anonymous memory, aligned as regions are, huge pages where the system gives them; nullptr when it refuses.
std::byte* Map(size_t size) {
  const size_t slack = size >= kHugePage ? kHugePage : 0;
  void* mapped =
      mmap(nullptr, size + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* base = static_cast<std::byte*>(mapped);
  if (slack == 0) return base;
  const size_t head = (kHugePage - reinterpret_cast<uintptr_t>(base) % kHugePage) % kHugePage;
  if (head != 0) munmap(base, head);
  base += head;
  munmap(base + size, slack - head);
  (void)madvise(base, size, MADV_HUGEPAGE);  // without huge pages it works too, only slower
  return base;
}

// Puts that part of a file in the place of what is mapped at `base`, for this process alone.
bool MapOver(std::byte* base, size_t size, int descriptor, uint64_t offset) {
  return mmap(base, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor,
              static_cast<off_t>(offset)) != MAP_FAILED &&
         madvise(base, size, MADV_DONTFORK) == 0;
}

bool TakePages(int descriptor, uint64_t offset, size_t size) {
  int result;
  do {
    result = fallocate(descriptor, 0, static_cast<off_t>(offset), static_cast<off_t>(size));
  } while (result != 0 && errno == EINTR);
  return result == 0;
}

void GiveBackPages(int descriptor, uint64_t offset, size_t size) {
  (void)fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  static_cast<off_t>(offset), static_cast<off_t>(size));
}

}  // namespace

// While it lasts the program cannot map memory, nor can its heap grow: it is done a huge page at a time.
// Kernels before 5.14 do not know MADV_POPULATE_WRITE: there each page is touched.
bool Populate(std::byte* base, size_t size) {
  for (size_t done = 0; done < size;) {
    const size_t piece = std::min(size - done, kHugePage);
    if (madvise(base + done, piece, MADV_POPULATE_WRITE) == 0) {
      done += piece;
    } else if (errno == EINVAL) {
      const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
      for (; done < size; done += page)
        *static_cast<volatile std::byte*>(base + done) = std::byte{0};
    } else if (errno != EINTR && errno != EAGAIN) {
      return false;
    }
  }
  return true;
}

PrivateMemory& PrivateMemory::Get() {
  static constinit PrivateMemory memory;
  return memory;
}

std::byte* PrivateMemory::Acquire(size_t size, bool& faulted) {
  if (!MayTakeAddressSpace(size) || size > MemoryGroupLeft()) return nullptr;
  std::byte* const base = Map(size);
  if (base == nullptr || !faulted || Populate(base, size)) return base;
  Release(base, size);
  return nullptr;
}

void PrivateMemory::Release(std::byte* base, size_t size) { munmap(base, size); }

// In a control group the program, and others in it, are killed for what we keep. Lanes ask whenever they have nothing to do, and a
// look reads a file for each level of the group: an answer is believed for a while.
bool PrivateMemory::scarce() {
  static constinit std::atomic<uint64_t> looked_ns{0};
  static constinit std::atomic<bool> bound{false};
  const uint64_t now_ns = NowNs();
  const uint64_t before_ns = looked_ns.load(std::memory_order_acquire);
  if (before_ns == 0 || now_ns - before_ns > kBelievedNs) {
    bound.store(MemoryGroupLeft() != UINT64_MAX, std::memory_order_relaxed);
    looked_ns.store(now_ns, std::memory_order_release);
  }
  return bound.load(std::memory_order_relaxed);
}

bool PrivateMemory::Discard(std::byte* base, size_t size) {
  return madvise(base, size, MADV_DONTNEED) == 0;
}

SharedMemory::~SharedMemory() { Forget(); }

bool SharedMemory::Open() {
  if (descriptor_ < 0) descriptor_ = memfd_create("tidelane slabs", MFD_CLOEXEC);
  return descriptor_ >= 0;
}

void SharedMemory::Forget() {
  Region* region = regions_.exchange(nullptr, std::memory_order_relaxed);
  while (region != nullptr) delete std::exchange(region, region->next);
  if (descriptor_ >= 0) close(std::exchange(descriptor_, -1));
  end_ = 0;
}

std::byte* SharedMemory::Acquire(size_t size, bool& faulted) {
  if (!Open()) return nullptr;
  const uint64_t alignment = size >= kHugePage ? kHugePage : 1;
  const uint64_t offset = (end_ + alignment - 1) / alignment * alignment;
  Region* const region = new (std::nothrow) Region;
  std::byte* const base = region == nullptr ? nullptr : Map(size);
  if (base == nullptr || !TakePages(descriptor_, offset, size)) {
    if (base != nullptr) munmap(base, size);
    delete region;
    return nullptr;
  }
  if (!MapOver(base, size, descriptor_, offset) || (faulted && !Populate(base, size))) {
    munmap(base, size);
    GiveBackPages(descriptor_, offset, size);
    delete region;
    return nullptr;
  }
  end_ = offset + size;
  *region = {base, size, offset, regions_.load(std::memory_order_relaxed)};
  regions_.store(region, std::memory_order_release);
  return base;
}

void SharedMemory::Release(std::byte* base, size_t size) {
  const uint64_t offset = OffsetOf(base);
  munmap(base, size);
  GiveBackPages(descriptor_, offset, size);
}

void SharedMemory::BeginChild() { Forget(); }

uint64_t SharedMemory::OffsetOf(const std::byte* data) const {
  const Region* region = regions_.load(std::memory_order_acquire);
  while (data < region->base || data >= region->base + region->size) region = region->next;
  return region->offset + static_cast<uint64_t>(data - region->base);
}

}  // namespace tidelane
