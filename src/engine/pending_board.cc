#include "engine/pending_board.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <limits>
#include <linux/futex.h>
#include <utility>

#include "base/fresh_file.h"

namespace tidelane {
namespace {

constexpr long kLookAgainNs = 1'000'000;  // in case a wake is missed

constexpr unsigned kLooksForLife = 16;  // so many, before a look whether it lives

constexpr uint64_t kMagic =
    0x3164'7261'6f42'6c54;  // "TlBoard1"; another layout of parts is another number

// Of nobody else, who could cut it short later: that would be a signal here.
bool IsOurs(int descriptor, size_t size) {
  struct stat found;
  return fstat(descriptor, &found) == 0 && S_ISREG(found.st_mode) && found.st_uid == geteuid() &&
         (found.st_mode & 0077) == 0 && static_cast<uint64_t>(found.st_size) == size;
}

void WaitForChange(std::atomic<uint32_t>& word, uint32_t seen) {
  timespec until{0, kLookAgainNs};
  syscall(SYS_futex, &word, FUTEX_WAIT, seen, &until, nullptr, 0);
}

}  // namespace

// A process of this machine, told from a later one of the same number.
struct PendingBoard::Process {
  std::atomic<uint64_t> space;  // its numbers are of this namespace; 0: not known
  std::atomic<uint64_t> number;
  std::atomic<uint64_t> started;

  static bool Ask(uint64_t number, uint64_t& started);
  void SetSelf();
  bool Gone() const;
};

// When it was started; false: it runs no more.
bool PendingBoard::Process::Ask(uint64_t number, uint64_t& started) {
  char path[64], text[1024];
  std::snprintf(path, sizeof path, "/proc/%" PRIu64 "/stat", number);
  const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return false;
  const ssize_t size = read(descriptor, text, sizeof text - 1);
  close(descriptor);
  if (size <= 0) return false;
  text[size] = '\0';
  const char* at = std::strrchr(text, ')');  // its name may have anything in it
  char state = 'X';
  started = 0;
  const int found =
      at == nullptr
          ? 0
          : std::sscanf(at + 1,
                        " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
                        "%*d %*d %" SCNu64,
                        &state, &started);
  return found == 2 && state != 'Z' && state != 'X';
}

void PendingBoard::Process::SetSelf() {
  struct stat numbers;
  uint64_t when = 0;
  const auto self = static_cast<uint64_t>(getpid());
  if (stat("/proc/self/ns/pid", &numbers) != 0 || !Ask(self, when)) return;
  number.store(self);
  started.store(when);
  space.store(numbers.st_ino);
}

// For certain only: of a process whose number means nothing here nobody knows.
bool PendingBoard::Process::Gone() const {
  struct stat numbers;
  const uint64_t known = space.load();
  if (known == 0 || stat("/proc/self/ns/pid", &numbers) != 0 || numbers.st_ino != known)
    return false;
  uint64_t when = 0;
  return !Ask(number.load(), when) || when != started.load();
}

// What is made sets `magic` last.
struct PendingBoard::Head {
  alignas(64) std::atomic<uint64_t> magic;
  uint64_t first;
  uint64_t second;
  uint64_t ranks;
};

// All zero: nothing is held. Both lists are filled from the front and cleared from the back: the first empty one ends them.
struct PendingBoard::Part {
  struct Rows {
    std::atomic<uint64_t> begin;
    std::atomic<uint64_t> length;
    std::atomic<uint64_t> stride;  // above the length; of no meaning before there are two
    std::atomic<uint64_t> count;   // set last: what it says is there, is there
  };
  struct Range {
    std::atomic<uint64_t> begin;
    std::atomic<uint64_t> end;  // above begin where it holds something
  };
  alignas(64) Rows rows[kRows];
  Range ranges[kRanges];
  std::atomic<uint32_t> cleared;  // how often
  std::atomic<uint32_t> waiting;  // how many wait for it to be cleared
  std::atomic<uint32_t> awaited;  // whether anybody ever has
  Process owner;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);
static_assert(std::atomic<uint32_t>::is_always_lock_free);

PendingBoard::PendingBoard(void* memory, size_t size, int ranks, int rank)
    : memory_(memory), size_(size), ranks_(ranks), rank_(rank) {}

bool PendingBoard::awaited() const {
  return part(rank_).awaited.load(std::memory_order_relaxed) != 0;
}

PendingBoard::~PendingBoard() {
  Clear();
  munmap(memory_, size_);
}

PendingBoard::Head& PendingBoard::head() const { return *static_cast<Head*>(memory_); }

PendingBoard::Part& PendingBoard::part(int rank) const {
  return reinterpret_cast<Part*>(static_cast<std::byte*>(memory_) + sizeof(Head))[rank];
}

// Below 2^63, so that the name can go through Mpi::Max.
PendingBoard::Name PendingBoard::Name::New() {
  return {(RandomBits() >> 1) | 1, RandomBits() >> 1};
}

std::string PendingBoard::Name::Path() const {
  char path[64];
  std::snprintf(path, sizeof path, "/dev/shm/tidelane-%016" PRIx64 "%016" PRIx64, first, second);
  return path;
}

size_t PendingBoard::SizeFor(int ranks) {
  return sizeof(Head) + sizeof(Part) * static_cast<size_t>(ranks);
}

std::unique_ptr<PendingBoard> PendingBoard::Map(int descriptor, int ranks, int rank) {
  const size_t size = SizeFor(ranks);
  void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  close(descriptor);
  if (memory == MAP_FAILED) return nullptr;
  return std::unique_ptr<PendingBoard>(new PendingBoard(memory, size, ranks, rank));
}

std::unique_ptr<PendingBoard> PendingBoard::Create(const Name& name, int ranks, int rank) {
  const int descriptor =
      open(name.Path().c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor < 0) return nullptr;
  // Space now: a store to a full /dev/shm would be a signal.
  if (posix_fallocate(descriptor, 0, static_cast<off_t>(SizeFor(ranks))) != 0) {
    close(descriptor);
    Forget(name);
    return nullptr;
  }
  std::unique_ptr<PendingBoard> board = Map(descriptor, ranks, rank);
  if (board == nullptr) {
    Forget(name);
    return nullptr;
  }
  Head& head = board->head();
  head.first = name.first;
  head.second = name.second;
  head.ranks = static_cast<uint64_t>(ranks);
  head.magic.store(kMagic);
  board->part(rank).owner.SetSelf();
  return board;
}

std::unique_ptr<PendingBoard> PendingBoard::Find(const Name& name, int ranks, int rank) {
  // Not blocking: what has the name may be a pipe.
  const int descriptor =
      open(name.Path().c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) return nullptr;
  if (!IsOurs(descriptor, SizeFor(ranks))) {
    close(descriptor);
    return nullptr;
  }
  std::unique_ptr<PendingBoard> board = Map(descriptor, ranks, rank);
  if (board == nullptr) return nullptr;
  const Head& head = board->head();
  const bool this_one = head.magic.load() == kMagic && head.first == name.first &&
                        head.second == name.second && head.ranks == static_cast<uint64_t>(ranks);
  if (!this_one) return nullptr;
  board->part(rank).owner.SetSelf();
  return board;
}

void PendingBoard::Forget(const Name& name) { unlink(name.Path().c_str()); }

void PendingBoard::Extend(uint64_t begin, uint64_t end) {
  if (used_ == 0 && AddToRows(begin, end - begin)) return;
  Join(begin, end);
}

// Rows of a block follow one another at a distance. Readers in other processes may look at any moment: rows only get longer, or more,
// until all are cleared.
bool PendingBoard::AddToRows(uint64_t begin, uint64_t size) {
  Part& mine = part(rank_);
  if (used_rows_ > 0) {
    Part::Rows& last = mine.rows[used_rows_ - 1];
    const uint64_t first = last.begin.load(std::memory_order_relaxed);
    const uint64_t length = last.length.load(std::memory_order_relaxed);
    const uint64_t count = last.count.load(std::memory_order_relaxed);
    if (count == 1 && begin == first + length) {
      last.length.store(length + size);
      return true;
    }
    if (count == 1 && size == length && begin > first + length) last.stride.store(begin - first);
    if (size == length && begin == first + count * last.stride.load(std::memory_order_relaxed)) {
      last.count.store(count + 1);
      return true;
    }
  }
  if (used_rows_ == kRows) return false;
  Part::Rows& next = mine.rows[used_rows_++];
  next.begin.store(begin);
  next.length.store(size);
  next.stride.store(0);
  next.count.store(1);
  return true;
}

void PendingBoard::Join(uint64_t begin, uint64_t end) {
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
  if (used_rows_ == 0) return;
  Part& mine = part(rank_);
  for (; used_rows_ > 0; --used_rows_) mine.rows[used_rows_ - 1].count.store(0);
  for (; used_ > 0; --used_) mine.ranges[used_ - 1].end.store(0);
  mine.cleared.fetch_add(1);
  if (mine.waiting.load() != 0)
    syscall(SYS_futex, &mine.cleared, FUTEX_WAKE, std::numeric_limits<int>::max());
}

bool PendingBoard::Holds(const Part& part, uint64_t begin, uint64_t end) const {
  for (const Part::Rows& rows : part.rows) {
    const uint64_t count = rows.count.load();
    if (count == 0) break;
    const uint64_t first = rows.begin.load();
    const uint64_t length = rows.length.load();
    const uint64_t stride = rows.stride.load();
    if (begin < first) {
      if (first < end) return true;
      continue;
    }
    const uint64_t row =
        count == 1 || stride == 0 ? 0 : std::min((begin - first) / stride, count - 1);
    const uint64_t at = first + row * stride;
    if (begin < at + length || (row + 1 < count && at + stride < end)) return true;
  }
  for (const Part::Range& range : part.ranges) {
    const uint64_t to = range.end.load();
    if (to == 0) break;
    if (begin < to && range.begin.load() < end) return true;
  }
  return false;
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
    unsigned looks = 0;
    for (uint32_t seen = other.cleared.load(); Holds(other, begin, end);
         seen = other.cleared.load()) {
      // What a process held that was killed is lost, as ends.md says: nobody will store it.
      if (++looks % kLooksForLife == 0 && other.owner.Gone()) break;
      other.awaited.store(1, std::memory_order_relaxed);
      other.waiting.fetch_add(1);
      WaitForChange(other.cleared, seen);
      other.waiting.fetch_sub(1);
    }
  }
}

}  // namespace tidelane
