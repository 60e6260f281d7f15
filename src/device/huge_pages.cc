#include "device/huge_pages.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "base/memory_limit.h"
#include "base/trace.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

namespace tidelane {
namespace {

constexpr uint64_t kSmallPage = 4096;
constexpr int kTries = 3;  // somebody else may hold a page at the moment
// Where memory is in small pieces the system may have to move much to make a huge page: then small ones are better for a while.
constexpr uint64_t kTooLongNs = 20'000'000;
constexpr uint64_t kPauseNs = 10'000'000'000;
constinit std::atomic<uint64_t> not_before_ns{0};

uint64_t RoundUp(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

// Huge pages must lie in the address space as they do in the file.
struct Mapping {
  void* all;
  uint64_t size;
  std::byte* begin;
};

Mapping Map(int fd, uint64_t offset, uint64_t size) {
  const uint64_t all = size + HugePages::kPage;
  if (!MayTakeAddressSpace(all)) return {};
  void* const reserved =
      mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return {};
  auto* const begin = reinterpret_cast<std::byte*>(
      RoundUp(reinterpret_cast<uintptr_t>(reserved), HugePages::kPage));
  // A child that had it would hold the parent's locks of the file.
  if (mmap(begin, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
           static_cast<off_t>(offset)) == MAP_FAILED ||
      madvise(begin, size, MADV_DONTFORK) != 0) {
    munmap(reserved, all);
    return {};
  }
  return {reserved, all, begin};
}

// The file gets as long, but never shorter, and the page has something to be made of.
bool HasPage(int fd, uint64_t offset) {
  int result = 0;
  do {
    result = fallocate(fd, 0, static_cast<off_t>(offset), kSmallPage);
  } while (result != 0 && errno == EINTR);
  return result == 0;
}

bool CollapseOne(std::byte* begin) {
  for (int i = 0; i < kTries; ++i) {
    if (madvise(begin, HugePages::kPage, MADV_COLLAPSE) == 0) return true;
    if (errno != EAGAIN && errno != EINTR) return false;
  }
  return false;
}

bool Collapse(std::byte* begin) {
  const uint64_t begin_ns = NowNs();
  const bool done = CollapseOne(begin);
  const uint64_t end_ns = NowNs();
  if (!done || end_ns - begin_ns > kTooLongNs)
    not_before_ns.store(end_ns + kPauseNs, std::memory_order_relaxed);
  return done;
}

}  // namespace

FileWindow::~FileWindow() {
  if (mapped_ != nullptr) munmap(mapped_, size_);
}

FileWindow HugePages::Open(int fd, uint64_t offset, uint64_t size) {
  if (offset + size <= kFrom) return {};
  const uint64_t first = offset / kPage;
  const uint64_t last = (offset + size - 1) / kPage + 1;
  bool huge = false;
  {
    MutexLock lock(mutex_);
    huge = AreHuge(first, last);
  }
  const bool pauses = !huge && NowNs() < not_before_ns.load(std::memory_order_relaxed);
  if (pauses || (huge && size < kWorthWindow)) return {};
  const Mapping mapping = Map(fd, first * kPage, (last - first) * kPage);
  if (mapping.all == nullptr) return {};
  FileWindow window(mapping.all, mapping.size, mapping.begin + (offset - first * kPage));
  if (huge || MakeHuge(fd, mapping.begin, first, last)) return window;
  return {};
}

bool HugePages::AreHuge(uint64_t first, uint64_t last) {
  if (last > huge_.size()) return false;
  const auto at = [&](uint64_t page) { return huge_.begin() + static_cast<ptrdiff_t>(page); };
  return std::find(at(first), at(last), false) == at(last);
}

bool HugePages::MakeHuge(int fd, std::byte* mapped, uint64_t first, uint64_t last) {
  MutexLock lock(mutex_);
  if (huge_.size() < last) huge_.resize(last);
  for (uint64_t page = first; page < last; ++page) {
    if (huge_[page]) continue;
    // No room: what is to be written may still find some.
    if (!HasPage(fd, (page + 1) * kPage - kSmallPage)) return false;
    if (!Collapse(mapped + (page - first) * kPage)) return false;
    huge_[page] = true;
  }
  return true;
}

}  // namespace tidelane
