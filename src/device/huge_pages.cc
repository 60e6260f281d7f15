#include "device/huge_pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "base/memory_limit.h"
#include "base/trace.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace tidelane {
namespace {

constexpr uint64_t kSmallPage = 4096;
constexpr uint64_t kLeastRoom = uint64_t{64} << 20;
constexpr int kTries = 3;  // somebody else may hold a page at the moment
// Small pages of 2 MiB take a millisecond. A huge one takes a tenth of that, but five times as much where a hypervisor must find the memory
// first, and any time where the system must move others for it: then small ones are better for a while, and for longer if it is so again.
constexpr uint64_t kTooLongNs = 700'000;
constexpr uint64_t kShortestPauseNs = 250'000'000;
constexpr uint64_t kLongestPauseNs = 16'000'000'000;
constinit std::atomic<uint64_t> not_before_ns{0};
constinit std::atomic<uint64_t> pause_ns{kShortestPauseNs};
constinit std::atomic<bool> never{false};  // the system does not keep what is stored there

// Of this thread: that others have the processor says nothing.
uint64_t ProcessorNs() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

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

// The file gets as long, but never shorter, and the huge page has a small one that it can be made of. That one is touched, too: where the
// mount has huge pages by itself it is one already, and as long as nobody has touched it the system takes it for empty, whatever
// is stored there through a mapping that MADV_COLLAPSE has made (Linux 6.18).
bool HasPage(int fd, uint64_t offset, std::byte* mapped) {
  int result = 0;
  do {
    result = fallocate(fd, 0, static_cast<off_t>(offset), kSmallPage);
  } while (result != 0 && errno == EINTR);
  if (result != 0) return false;
  do {
    result = madvise(mapped, kSmallPage, MADV_POPULATE_WRITE);
  } while (result != 0 && (errno == EINTR || errno == EAGAIN));
  return result == 0;
}

// What is stored in the mapping is what the file has: nothing is trusted to a system where it is not. The bytes are the caller's.
bool IsTheFile(int fd, uint64_t offset, std::byte* mapped, uint64_t size) {
  constexpr std::array<unsigned char, 8> kPattern{0x74, 0x69, 0x64, 0x65, 0x6c, 0x61, 0x6e, 0x65};
  const size_t n = std::min<uint64_t>(size, kPattern.size());
  std::memcpy(mapped, kPattern.data(), n);
  std::array<unsigned char, 8> read{};
  return pread(fd, read.data(), n, static_cast<off_t>(offset)) == static_cast<ssize_t>(n) &&
         std::equal(kPattern.begin(), kPattern.begin() + n, read.begin());
}

bool CollapseOne(std::byte* begin) {
  for (int i = 0; i < kTries; ++i) {
    if (madvise(begin, HugePages::kPage, MADV_COLLAPSE) == 0) return true;
    if (errno != EAGAIN && errno != EINTR) return false;
  }
  return false;
}

// `quick`: new small ones would not have been there sooner.
bool Collapse(std::byte* begin, bool& quick) {
  const uint64_t begin_ns = ProcessorNs();
  const bool done = CollapseOne(begin);
  quick = done && ProcessorNs() - begin_ns <= kTooLongNs;
  return done;
}

bool Pauses() { return NowNs() < not_before_ns.load(std::memory_order_relaxed); }

void PauseUnless(bool quick) {
  const uint64_t pause = pause_ns.load(std::memory_order_relaxed);
  if (!quick) not_before_ns.store(NowNs() + pause, std::memory_order_relaxed);
  pause_ns.store(quick ? kShortestPauseNs : std::min(2 * pause, kLongestPauseNs),
                 std::memory_order_relaxed);
}

// The last huge page of each file may be mostly empty: that must not be what fills a small file system. One without a size is not small.
bool HasRoom(int fd) {
  struct statfs found{};
  return fstatfs(fd, &found) == 0 &&
         (found.f_blocks == 0 ||
          static_cast<uint64_t>(found.f_bavail) * static_cast<uint64_t>(found.f_bsize) >=
              kLeastRoom);
}

bool IsShorter(int fd, uint64_t size) {
  struct stat found{};
  return fstat(fd, &found) != 0 || static_cast<uint64_t>(found.st_size) < size;
}

}  // namespace

FileWindow::~FileWindow() {
  if (mapped_ != nullptr) munmap(mapped_, size_);
}

FileWindow HugePages::Open(int fd, uint64_t offset, uint64_t size) {
  if (offset + size <= kFrom || never.load(std::memory_order_relaxed)) return {};
  const uint64_t first = offset / kPage;
  const uint64_t last = (offset + size - 1) / kPage + 1;
  bool huge = false;
  {
    MutexLock lock(mutex_);
    huge = AreHuge(first, last);
  }
  if (huge ? size < kWorthWindow : !MayMake(IsShorter(fd, last * kPage))) return {};
  const Mapping mapping = Map(fd, first * kPage, (last - first) * kPage);
  if (mapping.all == nullptr) return {};
  FileWindow window(mapping.all, mapping.size, mapping.begin + (offset - first * kPage));
  if (huge || MakeHuge(fd, mapping.begin, offset, size)) return window;
  return {};
}

void HugePages::MakeAll(int fd, uint64_t size) {
  for (uint64_t begin = 0; begin + kPage <= size; begin += kPage) {
    const Mapping mapping = Map(fd, begin, kPage);
    if (mapping.all == nullptr) return;
    const FileWindow window(mapping.all, mapping.size, mapping.begin);
    const bool done = HasPage(fd, begin + kPage - kSmallPage, mapping.begin + kPage - kSmallPage) &&
                      CollapseOne(mapping.begin);
    if (!done) return;
  }
}

// What has been there may be huge already (a spare segment), and then takes no time.
bool HugePages::MayMake(bool is_new) const {
  return is_new ? !Pauses() : !slow_.load(std::memory_order_relaxed);
}

bool HugePages::AreHuge(uint64_t first, uint64_t last) {
  if (last > huge_.size()) return false;
  const auto begin = huge_.begin();
  const auto end = begin + static_cast<ptrdiff_t>(last);
  return std::find(begin + static_cast<ptrdiff_t>(first), end, false) == end;
}

bool HugePages::MakeHuge(int fd, std::byte* mapped, uint64_t offset, uint64_t size) {
  const uint64_t end = offset + size;
  const uint64_t first = offset / kPage;
  const uint64_t last = (end - 1) / kPage + 1;
  MutexLock lock(mutex_);
  if (huge_.size() < last) huge_.resize(last);
  for (uint64_t page = first; page < last; ++page, mapped += kPage) {
    if (huge_[page]) continue;
    const uint64_t begin = page * kPage;
    const bool is_new = IsShorter(fd, begin + kPage);
    if (!MayMake(is_new) || (is_new && !HasRoom(fd))) return false;
    // No room: what is to be written may still find some.
    if (!HasPage(fd, begin + kPage - kSmallPage, mapped + kPage - kSmallPage)) return false;
    bool quick = false;
    const bool done = Collapse(mapped, quick);
    if (is_new) {
      PauseUnless(quick);
    } else if (!quick) {
      slow_.store(true, std::memory_order_relaxed);
    }
    if (!done) return false;
    const uint64_t own = std::max(offset, begin);
    if (!IsTheFile(fd, own, mapped + (own - begin), std::min(end, begin + kPage) - own)) {
      never.store(true, std::memory_order_relaxed);
      return false;
    }
    huge_[page] = true;
  }
  return true;
}

}  // namespace tidelane
