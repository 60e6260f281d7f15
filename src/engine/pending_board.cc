#include "engine/pending_board.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <limits>
#include <linux/futex.h>

namespace tidelane {
namespace {

constexpr long kLookAgainNs = 1'000'000;  // in case a wake is missed

std::string PathOf(const std::string& name) { return "/dev/shm/" + name; }

void WaitForChange(std::atomic<uint32_t>& word, uint32_t seen) {
  timespec until{0, kLookAgainNs};
  syscall(SYS_futex, &word, FUTEX_WAIT, seen, &until, nullptr, 0);
}

}  // namespace

// All zero: nothing is held.
struct PendingBoard::Part {
  struct Range {
    std::atomic<uint64_t> begin;
    std::atomic<uint64_t> end;  // above begin where it holds something
  };
  alignas(64) Range ranges[kRanges];
  std::atomic<uint32_t> cleared;  // how often
  std::atomic<uint32_t> waiting;  // how many wait for it to be cleared
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);
static_assert(std::atomic<uint32_t>::is_always_lock_free);

PendingBoard::PendingBoard(void* memory, size_t size, int ranks, int rank)
    : memory_(memory), size_(size), ranks_(ranks), rank_(rank) {}

PendingBoard::~PendingBoard() {
  Clear();
  munmap(memory_, size_);
}

PendingBoard::Part& PendingBoard::part(int rank) const { return static_cast<Part*>(memory_)[rank]; }

std::unique_ptr<PendingBoard> PendingBoard::Map(int descriptor, int ranks, int rank) {
  const size_t size = sizeof(Part) * static_cast<size_t>(ranks);
  void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  close(descriptor);
  if (memory == MAP_FAILED) return nullptr;
  return std::unique_ptr<PendingBoard>(new PendingBoard(memory, size, ranks, rank));
}

std::unique_ptr<PendingBoard> PendingBoard::Create(const std::string& name, int ranks, int rank) {
  const int descriptor =
      open(PathOf(name).c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor < 0) return nullptr;
  const auto size = static_cast<off_t>(sizeof(Part) * static_cast<size_t>(ranks));
  // Space now: a store to a full /dev/shm would be a signal.
  if (posix_fallocate(descriptor, 0, size) == 0) return Map(descriptor, ranks, rank);
  close(descriptor);
  Forget(name);
  return nullptr;
}

std::unique_ptr<PendingBoard> PendingBoard::Find(const std::string& name, int ranks, int rank) {
  const int descriptor = open(PathOf(name).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  return descriptor < 0 ? nullptr : Map(descriptor, ranks, rank);
}

void PendingBoard::Forget(const std::string& name) { unlink(PathOf(name).c_str()); }

// Readers in other processes may look at any moment: a range only grows until all are cleared.
void PendingBoard::Extend(uint64_t begin, uint64_t end) {
  Part& mine = part(rank_);
  int nearest = -1;
  uint64_t nearest_distance = std::numeric_limits<uint64_t>::max();
  for (int i = 0; i < used_; ++i) {
    const uint64_t from = mine.ranges[i].begin.load(std::memory_order_relaxed);
    const uint64_t to = mine.ranges[i].end.load(std::memory_order_relaxed);
    const uint64_t distance = begin > to ? begin - to : from > end ? from - end : 0;
    if (distance >= nearest_distance) continue;
    nearest = i;
    nearest_distance = distance;
  }
  if (nearest_distance != 0 && used_ < kRanges) {
    mine.ranges[used_].begin.store(begin);
    mine.ranges[used_++].end.store(end);
    return;
  }
  Part::Range& range = mine.ranges[nearest];
  if (begin < range.begin.load(std::memory_order_relaxed)) range.begin.store(begin);
  if (end > range.end.load(std::memory_order_relaxed)) range.end.store(end);
}

void PendingBoard::Clear() {
  if (used_ == 0) return;
  Part& mine = part(rank_);
  for (; used_ > 0; --used_) mine.ranges[used_ - 1].end.store(0);
  mine.cleared.fetch_add(1);
  if (mine.waiting.load() != 0)
    syscall(SYS_futex, &mine.cleared, FUTEX_WAKE, std::numeric_limits<int>::max());
}

bool PendingBoard::Holds(const Part& part, uint64_t begin, uint64_t end) const {
  return std::any_of(std::begin(part.ranges), std::end(part.ranges), [&](const auto& range) {
    return begin < range.end.load() && range.begin.load() < end;
  });
}

bool PendingBoard::OthersHold(uint64_t begin, uint64_t end) const {
  for (int rank = 0; rank < ranks_; ++rank) {
    if (rank != rank_ && Holds(part(rank), begin, end)) return true;
  }
  return false;
}

void PendingBoard::AwaitOthers(uint64_t begin, uint64_t end) {
  for (int rank = 0; rank < ranks_; ++rank) {
    if (rank == rank_) continue;
    Part& other = part(rank);
    // What it takes hold of after we have looked, it wrote at the same time: natively, too, either may come first.
    for (uint32_t seen = other.cleared.load(); Holds(other, begin, end);
         seen = other.cleared.load()) {
      other.waiting.fetch_add(1);
      WaitForChange(other.cleared, seen);
      other.waiting.fetch_sub(1);
    }
  }
}

}  // namespace tidelane
