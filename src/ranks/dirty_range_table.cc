#include "ranks/dirty_range_table.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <ctime>
#include <limits>
#include <linux/futex.h>
#include <utility>

#include "extent/test_hooks.h"
#include "ranks/bell.h"

namespace tidelane {
namespace {

constexpr long kLookAgainNs = 1'000'000;  // in case a wake is missed

constexpr auto kSweepEvery = std::chrono::seconds(1);  // a look at all files in /dev/shm

constexpr unsigned kLooksForLife = 16;  // so many, before a look whether it lives

constexpr uint64_t kMagic =
    0x3364'7261'6f42'6c54;  // "TlBoard3"; another layout of parts is another number

// The user's tables, in a folder that is memory.
std::string Prefix() {
  char text[64];
  std::snprintf(text, sizeof text, "/dev/shm/tidelane-%u-", static_cast<unsigned>(geteuid()));
  return text;
}

void WaitForChange(std::atomic<uint32_t>& word, uint32_t seen) {
  timespec until{0, kLookAgainNs};
  syscall(SYS_futex, &word, FUTEX_WAIT, seen, &until, nullptr, 0);
}

}  // namespace

// All zero: nothing is held. Both lists are filled from the front and cleared from the back: the first empty one ends them.
struct DirtyRangeTable::Part {
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
  std::atomic<uint64_t> group;
  std::atomic<uint32_t> cleared;  // how often
  std::atomic<uint32_t> waiting;  // how many wait for it to be cleared
  std::atomic<uint32_t> awaited;  // whether anybody ever has
  std::atomic<uint64_t> bell;     // the process's

  void Reset();
  void Ring() {
    awaited.store(1);
    Bell::Ring(bell.load());
  }
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);
static_assert(std::atomic<uint32_t>::is_always_lock_free);

// Who had it before may have been killed while it held something. `cleared` and `waiting` go on: others may be looking at them.
void DirtyRangeTable::Part::Reset() {
  for (Rows& one : rows) one.count.store(0);
  for (Range& range : ranges) range.end.store(0);
  group.store(0);
  awaited.store(0);
  bell.store(0);
}

DirtyRangeTable::DirtyRangeTable(std::unique_ptr<TableFile> file, std::optional<uint64_t> own)
    : file_(std::move(file)), own_(own) {}

DirtyRangeTable::~DirtyRangeTable() {
  if (file_->ours()) Clear();
}

bool DirtyRangeTable::awaited() const {
  return own_.has_value() && part(*own_).awaited.load(std::memory_order_relaxed) != 0;
}

DirtyRangeTable::Part& DirtyRangeTable::part(uint64_t number) const {
  return *reinterpret_cast<Part*>(file_->part(number));
}

// Other processes of the user can write there what they like.
uint64_t DirtyRangeTable::used() const {
  return std::min<uint64_t>(file_->head().used.load(), kParts);
}

std::string DirtyRangeTable::PathOf(const FileIdentity& file) {
  char text[64];
  std::snprintf(text, sizeof text, "%" PRIx64 "-%" PRIx64, file.device, file.inode);
  return Prefix() + text;
}

std::unique_ptr<TableFile> DirtyRangeTable::FileOf(const FileIdentity& file,
                                                   TableFile::Missing missing) {
  auto found = TableFile::Open(PathOf(file), {kMagic, sizeof(Part), kParts}, missing);
  if (found == nullptr || found->head().used.load() != 0) return found;
  static std::atomic<Clock::rep> swept{0};
  const Clock::rep now = Clock::now().time_since_epoch().count();
  const Clock::rep before = swept.load();
  if (before != 0 && now - before < Clock::duration(kSweepEvery).count()) return found;
  swept.store(now);
  TableFile::RemoveUnused(Prefix(), kMagic);
  return found;
}

std::unique_ptr<DirtyRangeTable> DirtyRangeTable::Watch(const FileIdentity& file,
                                                        TableFile::Missing missing) {
  std::unique_ptr<TableFile> found = FileOf(file, missing);
  if (found == nullptr) return nullptr;
  return std::unique_ptr<DirtyRangeTable>(new DirtyRangeTable(std::move(found), std::nullopt));
}

std::unique_ptr<DirtyRangeTable> DirtyRangeTable::Join(const FileIdentity& file, int wanted_part) {
  std::unique_ptr<TableFile> found = FileOf(file, TableFile::Missing::kMake);
  if (found == nullptr) return nullptr;
  // All look at each part that was ever used: few, where few of the ranks are on this machine.
  const uint64_t first = std::min<uint64_t>(static_cast<uint64_t>(wanted_part), found->head().used);
  std::optional<uint64_t> own;
  for (uint64_t i = 0; i < kParts && !own.has_value(); ++i) {
    const uint64_t number = (first + i) % kParts;
    if (found->Claim(number)) own = number;
  }
  if (!own.has_value()) return nullptr;
  std::unique_ptr<DirtyRangeTable> table(new DirtyRangeTable(std::move(found), own));
  table->part(*own).Reset();
  std::atomic<uint32_t>& used = table->file_->head().used;
  const auto least = static_cast<uint32_t>(*own + 1);
  for (uint32_t seen = used.load(); seen < least && !used.compare_exchange_weak(seen, least);) {
  }
  table->file_->head().joined.fetch_add(1);
  return table;
}

void DirtyRangeTable::SetGroup(const Group& group) {
  group_ = group;
  if (!own_.has_value()) return;
  part(*own_).bell.store(Bell::Get().number());
  part(*own_).group.store(group.id);
}

void DirtyRangeTable::Extend(uint64_t begin, uint64_t end) {
  if (used_rows_ == 0) Bell::Get().Hold();
  if (used_ == 0 && AddToRows(begin, end - begin)) return;
  AddToRanges(begin, end);
}

// Rows of a block follow one another at a distance. Readers in other processes may look at any moment: rows only get longer, or more,
// until all are cleared.
bool DirtyRangeTable::AddToRows(uint64_t begin, uint64_t size) {
  Part& mine = part(*own_);
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

void DirtyRangeTable::AddToRanges(uint64_t begin, uint64_t end) {
  Part& mine = part(*own_);
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

void DirtyRangeTable::Clear() {
  if (used_rows_ == 0) return;
  Part& mine = part(*own_);
  for (; used_rows_ > 0; --used_rows_) mine.rows[used_rows_ - 1].count.store(0);
  for (; used_ > 0; --used_) mine.ranges[used_ - 1].end.store(0);
  Bell::Get().LetGo();
  mine.cleared.fetch_add(1);
  if (mine.waiting.load() != 0)
    syscall(SYS_futex, &mine.cleared, FUTEX_WAKE, std::numeric_limits<int>::max());
}

void DirtyRangeTable::Leave() const {
  if (own_.has_value() && file_->ours()) file_->Release(*own_);
}

bool DirtyRangeTable::Holds(const Part& part, uint64_t begin, uint64_t end) {
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

// Parts of processes that were killed stay in use: somebody may have looked at them before.
bool DirtyRangeTable::Concerns(uint64_t number, Whose whose) const {
  if (number == own_) return false;
  if (whose == Whose::kOthers && !MutationEnabled("ranks_outside")) return true;
  const bool outside = group_.id == 0 || part(number).group.load() != group_.id;
  return outside == (whose == Whose::kOutsiders) && !(outside && MutationEnabled("ranks_outside"));
}

bool DirtyRangeTable::Written() const {
  const uint64_t parts = used();
  for (uint64_t number = 0; number < parts; ++number) {
    if (number != own_ && file_->Claimed(number)) return true;
  }
  return false;
}

bool DirtyRangeTable::OthersHold(uint64_t begin, uint64_t end, Whose whose) const {
  const uint64_t parts = used();
  for (uint64_t number = 0; number < parts; ++number) {
    if (Concerns(number, whose) && Holds(part(number), begin, end)) return true;
  }
  return false;
}

bool DirtyRangeTable::AwaitOthers(uint64_t begin, uint64_t end, Whose whose,
                                  Clock::time_point deadline) {
  const uint64_t parts = used();
  for (uint64_t number = 0; number < parts; ++number) {
    if (Concerns(number, whose) && Holds(part(number), begin, end)) part(number).Ring();
  }
  for (uint64_t number = 0; number < parts; ++number) {
    if (Concerns(number, whose) && !AwaitPart(number, begin, end, deadline)) return false;
  }
  return true;
}

// Nobody waits for it again.
bool DirtyRangeTable::VoidIfFree(uint64_t number) {
  if (file_->Claimed(number)) return false;
  MutexLock lock(voiding_);  // another thread of this process would claim it, too
  if (!file_->Claim(number)) return false;
  if (Holds(part(number), 0, UINT64_MAX)) ++lost_;
  part(number).Reset();
  file_->Release(number);
  return true;
}

// What it takes hold of after we have looked, it wrote at the same time: natively, too, either may come first. So one time that it
// has stored everything is enough.
bool DirtyRangeTable::AwaitPart(uint64_t number, uint64_t begin, uint64_t end,
                                Clock::time_point deadline) {
  Part& other = part(number);
  const uint32_t seen = other.cleared.load();
  for (unsigned looks = 1; other.cleared.load() == seen && Holds(other, begin, end); ++looks) {
    // What a process held that was killed is lost, as ends.md says: nobody will store it.
    if (looks % kLooksForLife == 0 && VoidIfFree(number)) return true;
    if (deadline != Clock::time_point::max() && Clock::now() >= deadline) return false;
    other.waiting.fetch_add(1);
    WaitForChange(other.cleared, seen);
    other.waiting.fetch_sub(1);
  }
  return true;
}

}  // namespace tidelane
