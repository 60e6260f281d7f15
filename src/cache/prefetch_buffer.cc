#include "cache/prefetch_buffer.h"

#include <algorithm>
#include <utility>

#include "base/activity.h"
#include "base/counters.h"

namespace tidelane {
namespace {

constexpr uint64_t kPage = 4096;
constexpr size_t kMostInBatch = 64;

}  // namespace

PrefetchBudget::PrefetchBudget(Arena& arena, uint64_t most)
    : arena_(arena), most_(std::min(most, arena.cap() / 2)) {}

std::shared_ptr<Slab> PrefetchBudget::TakeSlab(const std::shared_ptr<PrefetchBudget>& room) {
  const uint64_t size = room->slab_size();
  if (room->arena_.in_use() + size > room->arena_.cap() / 2) return nullptr;
  const bool fits = room->used_.fetch_add(size, std::memory_order_relaxed) + size <= room->most_;
  Slab* slab = fits ? room->arena_.TryAcquire() : nullptr;
  if (slab == nullptr) {
    room->used_.fetch_sub(size, std::memory_order_relaxed);
    return nullptr;
  }
  Arena::FaultIn(*slab, slab->size);
  return {slab, [room, size](Slab* taken) {
            Arena::Unref(taken);
            room->used_.fetch_sub(size, std::memory_order_relaxed);
          }};
}

PrefetchBuffer::Map::iterator PrefetchBuffer::From(uint64_t address) {
  auto it = pieces_.upper_bound(address);
  if (it != pieces_.begin() && std::prev(it)->second.end > address) --it;
  return it;
}

PrefetchBuffer::Map::iterator PrefetchBuffer::Erase(Map::iterator it) {
  const Piece& piece = it->second;
  const uint64_t size = piece.end - it->first;
  if (piece.state == State::kHere) {
    const uint64_t wasted = size - std::min(size, piece.used);
    score_.wasted += wasted;
    Count(Counter::kAheadBytesWasted, wasted);
  }
  bytes_ -= size;
  it = pieces_.erase(it);
  Resize();
  return it;
}

bool PrefetchBuffer::Want(const std::vector<ByteRange>& ranges, uint64_t most) {
  MutexLock lock(mutex_);
  ++wish_;
  // What lanes have not begun of older wishes: newer ones know better.
  for (const uint64_t begin : std::exchange(wanted_, {})) Erase(pieces_.find(begin));
  for (const ByteRange& range : ranges) WantRange(range);
  if (bytes_ > most) MakeRoom(most);
  return !wanted_.empty();
}

void PrefetchBuffer::WantRange(ByteRange range) {
  uint64_t at = range.begin;
  for (auto it = From(at); at < range.end;) {
    if (it != pieces_.end() && it->first <= at) {
      it->second.wish = wish_;
      at = it->second.end;
      ++it;
      continue;
    }
    uint64_t end = std::min(range.end, at - at % longest_ + longest_);
    if (it != pieces_.end()) end = std::min(end, it->first);
    AddWanted(it, at, end, wish_);
    wanted_.push_back(at);
    at = end;
  }
  Resize();
}

void PrefetchBuffer::AddWanted(Map::iterator before, uint64_t begin, uint64_t end, uint64_t wish) {
  Piece& piece = pieces_.emplace_hint(before, begin, Piece())->second;
  piece.end = end;
  piece.wish = wish;
  bytes_ += end - begin;
}

void PrefetchBuffer::MakeRoom(uint64_t most) {
  for (auto it = pieces_.begin(); it != pieces_.end() && bytes_ > most;) {
    const bool old = it->second.wish != wish_ && it->second.state == State::kHere;
    it = old ? Erase(it) : std::next(it);
  }
  while (bytes_ > most && !wanted_.empty()) {
    Erase(pieces_.find(wanted_.back()));
    wanted_.pop_back();
  }
}

bool PrefetchBuffer::Covers(uint64_t begin, uint64_t end) {
  MutexLock lock(mutex_);
  for (auto it = From(begin); begin < end; ++it) {
    if (it == pieces_.end() || it->first > begin || it->second.dropped) return false;
    begin = it->second.end;
  }
  return true;
}

bool PrefetchBuffer::Touches(uint64_t begin, uint64_t end) {
  MutexLock lock(mutex_);
  const auto it = From(begin);
  return it != pieces_.end() && it->first < end;
}

// The program reads it itself: lanes need not.
void PrefetchBuffer::TakeBack(Map::iterator it, uint64_t begin, uint64_t end) {
  const uint64_t piece_begin = it->first;
  const Piece piece = it->second;
  std::erase(wanted_, piece_begin);
  Erase(it);
  // What is left of it on both sides is wanted still, the first part next.
  for (const auto& [from, to] : {std::pair(end, piece.end), std::pair(piece_begin, begin)}) {
    if (from >= to) continue;
    AddWanted(pieces_.end(), from, to, piece.wish);
    wanted_.push_front(from);
  }
  Resize();
}

PrefetchBuffer::Part PrefetchBuffer::Take(uint64_t begin, uint64_t end) {
  MutexLock lock(mutex_);
  uint64_t waited_ns = 0;
  for (;;) {
    const auto it = From(begin);
    if (it == pieces_.end() || it->first >= end) return {nullptr, end, nullptr, waited_ns};
    if (it->first > begin) return {nullptr, it->first, nullptr, waited_ns};
    Piece& piece = it->second;
    const uint64_t until = std::min(end, piece.end);
    if (piece.state == State::kOnItsWay) {
      Waiting waiting(Wait::kRead, 0, Waiting::kTimed);
      arrived_.Wait(mutex_);
      waited_ns += waiting.Stop();
      continue;
    }
    if (piece.state == State::kWanted) {
      TakeBack(it, begin, until);
      return {nullptr, until, nullptr, waited_ns};
    }
    Part part{piece.data + (begin - it->first), until, piece.slab, waited_ns};
    const uint64_t fresh = std::min(until - begin, piece.end - it->first - piece.used);
    piece.used += fresh;
    score_.used += fresh;
    // Read to its end; a piece of metadata at the end is not all that somebody will want of it.
    if (until == piece.end && 2 * piece.used >= piece.end - it->first) Erase(it);
    return part;
  }
}

void PrefetchBuffer::Drop(uint64_t begin, uint64_t end) {
  if (empty()) return;
  MutexLock lock(mutex_);
  for (auto it = From(begin); it != pieces_.end() && it->first < end;) {
    if (it->second.state == State::kOnItsWay) {
      it->second.dropped = true;
      ++it;
      continue;
    }
    if (it->second.state == State::kWanted) std::erase(wanted_, it->first);
    it = Erase(it);
  }
}

void PrefetchBuffer::AwaitLanes() {
  MutexLock lock(mutex_);
  while (on_their_way_ != 0) arrived_.Wait(mutex_);
}

bool PrefetchBuffer::AnyWanted() {
  MutexLock lock(mutex_);
  return !wanted_.empty();
}

std::vector<PrefetchBuffer::Fetch> PrefetchBuffer::TakeBatch(const std::shared_ptr<Slab>& slab) {
  std::vector<Fetch> batch;
  batch.reserve(kMostInBatch);  // below, nothing may fail half-way
  uint64_t used = 0;
  MutexLock lock(mutex_);
  while (!wanted_.empty() && batch.size() < kMostInBatch) {
    const auto it = pieces_.find(wanted_.front());
    Piece& piece = it->second;
    const uint64_t size = piece.end - it->first;
    // In its pages as it lies in the file, so that a request never touches one page more (FUSE would split it).
    const uint64_t shift = (it->first - used) % kPage;
    if (used + shift + size <= slab->size) used += shift;
    if (used + size > slab->size) break;
    batch.push_back({it->first, size, slab->data + used});
    wanted_.pop_front();
    piece.state = State::kOnItsWay;
    piece.slab = slab;
    piece.data = slab->data + used;
    ++on_their_way_;
    used += size;
  }
  return batch;
}

void PrefetchBuffer::End(const Fetch& fetch, bool fetched) {
  MutexLock lock(mutex_);
  const auto it = pieces_.find(fetch.begin);
  it->second.state = State::kHere;
  if (!fetched) it->second.used = fetch.size;  // nothing came: nothing is wasted
  if (!fetched || it->second.dropped) Erase(it);
  --on_their_way_;
  arrived_.NotifyAll();
}

void PrefetchBuffer::GiveUp() {
  MutexLock lock(mutex_);
  for (const uint64_t begin : std::exchange(wanted_, {})) Erase(pieces_.find(begin));
}

PrefetchBuffer::Score PrefetchBuffer::score() {
  MutexLock lock(mutex_);
  return score_;
}

}  // namespace tidelane
