#include "ranks/shared_blocks.h"

#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <climits>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <linux/futex.h>
#include <optional>
#include <utility>

#include "base/activity.h"
#include "extent/test_hooks.h"

namespace tidelane {
namespace {

constexpr uint64_t kMagic = 0x3173'6b63'6f6c'4254;  // "TBlocks1"; another layout is another number
constexpr uint64_t kWays = 4;                       // slots that a block may lie in
constexpr uint64_t kSets = SharedBlocks::kSlots / kWays;
constexpr int kRounds = 64;  // looks at slots that change all the time
constexpr unsigned kMostDoubts = 8;
constexpr long kLookAgainNs = 1'000'000;  // whether who reads a block still lives

constexpr char kFolder[] = "/dev/shm/";

// MPI's own memory is there, too, and in containers there is little of it: half of it is left to others.
bool Roomy() {
  struct statvfs found;
  return statvfs(kFolder, &found) == 0 && found.f_bavail > found.f_blocks / 2;
}

// The user's, in a folder that is memory.
std::string Prefix() {
  char text[64];
  std::snprintf(text, sizeof text, "%stidelane-%u-blocks-", kFolder,
                static_cast<unsigned>(geteuid()));
  return text;
}

// Blocks at equal distances do not meet in few sets.
uint64_t FirstSlot(uint64_t block) { return (block * 0x9e3779b97f4a7c15 >> 32) % kSets * kWays; }

// Words of memory that others may write to meanwhile. The order is one with that of an entry's sequence.
void CopyOut(std::byte* from, uint64_t begin, uint64_t size, void* to) {
  auto* out = static_cast<std::byte*>(to);
  const uint64_t end = begin + size;
  while (begin < end) {
    const uint64_t in_word = begin % sizeof(uint64_t);
    const uint64_t part = std::min(sizeof(uint64_t) - in_word, end - begin);
    std::atomic_ref<uint64_t> shared(*reinterpret_cast<uint64_t*>(from + (begin - in_word)));
    const uint64_t word = shared.load(std::memory_order_acquire);
    std::memcpy(out, reinterpret_cast<const std::byte*>(&word) + in_word, part);
    out += part;
    begin += part;
  }
}

void CopyIn(const std::byte* from, uint64_t size, std::byte* to) {
  for (uint64_t at = 0; at < size; at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, from + at, std::min(sizeof word, size - at));
    std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(to + at))
        .store(word, std::memory_order_release);
  }
}

}  // namespace

// All zero: nobody has used it, and there may be no memory for its block.
struct alignas(64) SharedBlocks::Entry {
  std::atomic<uint32_t> sequence;  // odd: somebody reads the block, or was killed while it did
  std::atomic<uint32_t> waiting;
  std::atomic<uint64_t> tag;  // the block's number and one; 0: none
  std::atomic<uint64_t> size;
  std::atomic<uint64_t> modified_ns;
  std::atomic<uint64_t> changed_ns;
  std::atomic<uint64_t> valid;  // bytes of the block

  bool Is(uint64_t block, const FileVersion& version) const {
    if (tag.load() != block + 1) return false;
    if (MutationEnabled("node_version")) return true;
    return FileVersion{size.load(), modified_ns.load(), changed_ns.load()} == version;
  }
  void Wake() {
    if (waiting.load() != 0)
      syscall(SYS_futex, &sequence, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }
};

struct SharedBlocks::Common {
  alignas(64) std::atomic<uint64_t> read_ns;  // what a block takes on this storage
  Entry entries[kSlots];
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);
static_assert(std::atomic<uint32_t>::is_always_lock_free);

struct SharedBlocks::Found {
  enum class Is { kHere, kRead, kNowhere, kNoRoom } is = Is::kNoRoom;
  uint64_t slot = 0;
  uint32_t sequence = 0;
};

SharedBlocks::SharedBlocks(std::unique_ptr<TableFile> file) : file_(std::move(file)) {}
SharedBlocks::~SharedBlocks() = default;

SharedBlocks::Common& SharedBlocks::common() const {
  return *reinterpret_cast<Common*>(file_->common());
}
SharedBlocks::Entry& SharedBlocks::entry(uint64_t slot) const { return common().entries[slot]; }

// Ranks in whose containers the same name is another file's have other numbers of it.
std::string SharedBlocks::PathOf(const FileIdentity& file, const Job& job) {
  char text[80];
  std::snprintf(text, sizeof text, "%016" PRIx64 "-%" PRIx64 "-%" PRIx64, job.id, file.device,
                file.inode);
  return Prefix() + text;
}

std::unique_ptr<SharedBlocks> SharedBlocks::Join(const FileIdentity& file, const Job& job) {
  const TableFile::Shape shape = {.magic = kMagic,
                                  .part_bytes = kBlock,
                                  .parts = kSlots,
                                  .common_bytes = sizeof(Common),
                                  .apart = true};
  auto found = TableFile::Open(PathOf(file, job), shape, TableFile::Missing::kMake);
  if (found == nullptr) return nullptr;
  const uint32_t before = found->head().joined.fetch_add(1);
  if (before == 0) TableFile::RemoveUnused(Prefix(), kMagic);
  if (before + 1 == job.processes) found->TakeNameAway();
  return std::unique_ptr<SharedBlocks>(new SharedBlocks(std::move(found)));
}

bool SharedBlocks::Read(uint64_t block, const FileVersion& version, uint64_t from, uint64_t size,
                        void* to) const {
  if (size > kBlock || from > kBlock - size || !file_->ours()) return false;
  const uint64_t first = FirstSlot(block);
  for (uint64_t slot = first; slot < first + kWays; ++slot) {
    const Entry& known = entry(slot);
    const uint32_t before = known.sequence.load();
    if (before == 0 || before % 2 != 0 || !known.Is(block, version)) continue;
    if (from + size > known.valid.load()) continue;
    CopyOut(bytes(slot), from, size, to);
    if (known.sequence.load() == before) return true;
  }
  return false;
}

// Where it is; or else the slot for it: one that nobody has used, or whose block is of another version, or in turn.
SharedBlocks::Found SharedBlocks::Find(uint64_t block, const FileVersion& version) const {
  using Is = Found::Is;
  const uint64_t first = FirstSlot(block);
  const uint64_t turn = block / kSets % kWays;
  Found room;
  int best = 0;
  for (uint64_t i = 0; i < kWays; ++i) {
    const uint64_t slot = first + (turn + i) % kWays;
    const Entry& known = entry(slot);
    const uint32_t sequence = known.sequence.load();
    const bool read = sequence % 2 != 0;
    if (known.Is(block, version)) return {read ? Is::kRead : Is::kHere, slot, sequence};
    if (read && file_->Claimed(slot)) continue;
    const bool old = known.size.load() != version.size ||
                     known.modified_ns.load() != version.modified_ns ||
                     known.changed_ns.load() != version.changed_ns;
    const int worth = read || known.tag.load() == 0 ? 3 : old ? 2 : 1;
    if (worth <= best) continue;
    best = worth;
    room = {Is::kNowhere, slot, sequence};
  }
  return room;
}

SharedBlocks::Claimed SharedBlocks::Claim(const Found& found, uint64_t block,
                                          const FileVersion& version) {
  Entry& known = entry(found.slot);
  const bool fresh = found.sequence == 0;
  const bool room = !fresh || ((own_ + 1) * kBlock <= BlockMemory::Most() && Roomy());
  const TableFile::Claiming claiming =
      room ? file_->TryClaim(found.slot) : TableFile::Claiming::kNoMemory;
  if (claiming == TableFile::Claiming::kTaken) return Claimed::kByOther;
  if (claiming == TableFile::Claiming::kNoMemory) {
    full_.store(true, std::memory_order_relaxed);
    return Claimed::kNever;
  }
  if (known.sequence.load() != found.sequence) {
    file_->Release(found.slot);
    return Claimed::kByOther;
  }
  if (fresh) ++own_;
  taken_ = found.slot;
  known.sequence.store(found.sequence + (found.sequence % 2 == 0 ? 1 : 2));
  known.tag.store(block + 1);
  known.size.store(version.size);
  known.modified_ns.store(version.modified_ns);
  known.changed_ns.store(version.changed_ns);
  known.valid.store(0);
  begun_ = Clock::now();
  return Claimed::kYes;
}

SharedBlocks::Clock::duration SharedBlocks::Patience() const {
  const std::chrono::nanoseconds most = kMostPatience, least = kLeastPatience;
  const uint64_t read_ns = std::min(common().read_ns.load(), static_cast<uint64_t>(most.count()));
  const std::chrono::nanoseconds twice(2 * static_cast<int64_t>(read_ns));
  return std::clamp(twice, least, most) / (1 << doubts_);
}

// Until the slot has changed, or is nobody's. False: not by then.
bool SharedBlocks::Await(const Found& found, Clock::time_point deadline) const {
  Entry& known = entry(found.slot);
  bool in_time = true;
  known.waiting.fetch_add(1);
  while (known.sequence.load() == found.sequence && file_->Claimed(found.slot)) {
    const Clock::duration left = deadline - Clock::now();
    in_time = left > Clock::duration::zero() || MutationEnabled("node_patience");
    if (!in_time) break;
    const auto left_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
    const timespec until{0, left_ns > 0 ? std::min<long>(left_ns, kLookAgainNs) : kLookAgainNs};
    syscall(SYS_futex, &known.sequence, FUTEX_WAIT, found.sequence, &until, nullptr, 0);
  }
  known.waiting.fetch_sub(1);
  return in_time;
}

SharedBlocks::Turn SharedBlocks::Take(uint64_t block, const FileVersion& version) {
  if (!file_->ours() || busy_.exchange(true)) return Turn::kAlone;
  const Turn turn = TakeFrom(block, version);
  if (turn != Turn::kMine) busy_.store(false);
  return turn;
}

// Somebody reads it: it will be here, or he has ended or is too slow. Or his claim is not to be seen yet, or of another block.
SharedBlocks::Turn SharedBlocks::TakeFrom(uint64_t block, const FileVersion& version) {
  std::optional<Waiting> waiting;
  Clock::time_point deadline;
  for (int round = 0; round < kRounds; ++round) {
    const Found found = Find(block, version);
    if (found.is == Found::Is::kHere) {
      if (waiting.has_value()) doubts_ = 0;
      return Turn::kHere;
    }
    if (found.is == Found::Is::kNoRoom) return Turn::kAlone;
    const bool claimable = found.is == Found::Is::kNowhere || !file_->Claimed(found.slot);
    const Claimed claimed = claimable ? Claim(found, block, version) : Claimed::kByOther;
    if (claimed == Claimed::kYes) return Turn::kMine;
    if (claimed == Claimed::kNever) return Turn::kAlone;
    if (!waiting.has_value()) {
      waiting.emplace(Wait::kRanks);
      deadline = Clock::now() + Patience();
    }
    if (!Await(found, deadline)) {
      doubts_ = std::min(doubts_ + 1, kMostDoubts);
      return Turn::kAlone;
    }
  }
  return Turn::kAlone;
}

void SharedBlocks::Put(const std::byte* from, uint64_t size) {
  size = std::min(size, kBlock);
  Entry& known = entry(taken_);
  CopyIn(from, size, bytes(taken_));
  known.valid.store(size);
  const auto took = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begun_);
  const uint64_t average = common().read_ns.load();
  const auto ns = static_cast<uint64_t>(took.count());
  common().read_ns.store(average == 0 ? ns : (average * 3 + ns) / 4);
  End(known.tag.load());
}

void SharedBlocks::GiveUp() { End(0); }

void SharedBlocks::End(uint64_t tag) {
  Entry& known = entry(taken_);
  known.tag.store(tag);
  known.sequence.store(known.sequence.load() + 1);
  known.Wake();
  file_->Release(taken_);
  busy_.store(false);
}

}  // namespace tidelane
