#include "extent/pending_map.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "buffer/loan.h"
#include "extent/test_hooks.h"

namespace tidelane {
namespace {

constexpr uint64_t kWorthSplitting =
    uint64_t{64} * 1024;  // smaller extents are written whole, across a boundary if need be

bool MayFill(const Extent& before, const Extent& behind, const RunLimits& limits) {
  return before.end() >= limits.unknown_to_others ||
         (before.place != 0 && before.place == behind.place);
}

}  // namespace

PendingMap::~PendingMap() {
  for (auto& [address, extent] : queued_) Arena::Unref(extent.slab);
}

PendingMap::Map::iterator PendingMap::Erase(Map::iterator it) {
  queued_bytes_ -= it->second.size;
  if (it->second.failed) --failed_;
  Arena::Unref(it->second.slab);
  epochs_.Remove(it->second.epoch);
  return EraseNode(it);
}

PendingMap::Map::iterator PendingMap::EraseNode(Map::iterator it) {
  if (it == newest_) newest_ = queued_.end();
  return queued_.erase(it);
}

// The first extent at or above `address`. A write of many runs comes in ascending order, so it is looked for behind the
// run before: a search from the root misses the cache at every level of a large map.
PendingMap::Map::iterator PendingMap::FirstFrom(uint64_t address) {
  if (newest_ != queued_.end() && newest_->first < address) {
    const auto next = std::next(newest_);
    if (next == queued_.end() || address <= next->first) return next;
  }
  return queued_.lower_bound(address);
}

void PendingMap::Cut(uint64_t begin, uint64_t end, uint64_t newer_epoch) {
  auto it = queued_.upper_bound(begin);
  if (it != queued_.begin() && std::prev(it)->second.end() > begin) --it;
  while (it != queued_.end() && it->second.address < end) {
    Extent& old = it->second;
    if (newer_epoch != 0) epochs_.Supersede(old.epoch, newer_epoch);
    const uint64_t old_end = old.end();
    if (old_end > end) {  // the part behind the cut stays, under its new address
      Extent tail = old;
      tail.address = end;
      tail.size = old_end - end;
      tail.data = old.data + (end - old.address);
      queued_.emplace_hint(std::next(it), end, tail);  // first: there may be no memory
      Arena::Ref(tail.slab);
      epochs_.Add(tail.epoch);
      queued_bytes_ += tail.size;
      if (tail.failed) ++failed_;
    }
    if (newer_epoch != 0) replaced_bytes_ += std::min(old_end, end) - std::max(old.address, begin);
    if (old.address < begin) {  // so does the part before it
      queued_bytes_ -= old_end - begin;
      old.size = begin - old.address;
      ++it;
    } else {
      it = Erase(it);
    }
  }
}

// A stream of neighbouring writes fills its slab without gaps: one extent grows, and no node is made per write.
bool PendingMap::Extend(Map::iterator it, const Extent& extent) {
  Extent& before = it->second;
  if (before.end() != extent.address || before.data + before.size != extent.data ||
      before.slab != extent.slab || before.epoch != extent.epoch || before.failed ||
      before.place != extent.place || IsSuperblock(before) != IsSuperblock(extent)) {
    return false;
  }
  before.size += extent.size;
  queued_bytes_ += extent.size;
  Arena::Unref(extent.slab);
  newest_ = it;
  return true;
}

void PendingMap::Insert(const Extent& extent) {
  if (newest_ != queued_.end()) {
    const auto behind = std::next(newest_);
    if ((behind == queued_.end() || extent.end() <= behind->first) && Extend(newest_, extent))
      return;
  }
  try {
    epochs_.Add(extent.epoch);
  } catch (const std::bad_alloc&) {
    Arena::Unref(extent.slab);
    throw;
  }
  try {
    InsertCounted(extent);
  } catch (const std::bad_alloc&) {
    Arena::Unref(extent.slab);
    epochs_.Remove(extent.epoch);
    throw;
  }
}

void PendingMap::InsertCounted(const Extent& extent) {
  auto next = FirstFrom(extent.address);
  const bool covers_next = next != queued_.end() && next->first < extent.end();
  if (covers_next || (next != queued_.begin() && std::prev(next)->second.end() > extent.address)) {
    Cut(extent.address, extent.end(), extent.epoch);
    next = queued_.lower_bound(extent.address);
  }
  if (next != queued_.begin() && Extend(std::prev(next), extent)) {
    epochs_.Remove(extent.epoch);
    return;
  }
  newest_ = queued_.emplace_hint(next, extent.address, extent);
  queued_bytes_ += extent.size;
}

void PendingMap::SetSuperblock(uint64_t begin, uint64_t end) {
  SplitQueued(begin);
  SplitQueued(end);
  superblock_begin_ = begin;
  superblock_end_ = end;
}

void PendingMap::SplitQueued(uint64_t at) {
  const auto next = queued_.lower_bound(at);
  if (next == queued_.begin()) return;
  Extent& before = std::prev(next)->second;
  if (before.end() <= at) return;
  Extent rest = before;
  rest.address = at;
  rest.size = before.end() - at;
  rest.data = before.data + (at - before.address);
  queued_.emplace_hint(next, at, rest);  // first: there may be no memory
  before.size = at - before.address;
  Arena::Ref(rest.slab);
  epochs_.Add(rest.epoch);
  if (rest.failed) ++failed_;
}

void PendingMap::OverlayFlight(uint64_t begin, uint64_t end, std::vector<Piece>& pieces) const {
  // Runs in flight are few (one a lane) and disjoint; collect what they have, then fill the rest from storage.
  std::vector<Piece> found;
  for (const Run* run : in_flight_) {
    if (!run->Overlaps(begin, end)) continue;
    for (const Extent& extent : run->extents) {
      const uint64_t from = std::max(begin, extent.address);
      const uint64_t to = std::min(end, extent.end());
      if (from >= to) continue;
      found.push_back({from, to - from, extent.data + (from - extent.address), extent.slab});
    }
  }
  std::sort(found.begin(), found.end(),
            [](const Piece& a, const Piece& b) { return a.address < b.address; });
  uint64_t at = begin;
  for (const Piece& piece : found) {
    if (piece.address > at) pieces.push_back({at, piece.address - at, nullptr, nullptr});
    pieces.push_back(piece);
    Arena::Ref(piece.slab);
    at = std::max(at, piece.address + piece.size);
  }
  if (at < end) pieces.push_back({at, end - at, nullptr, nullptr});
}

void PendingMap::Overlay(uint64_t address, uint64_t size, std::vector<Piece>& pieces) const {
  const uint64_t end = address + size;
  if (MutationEnabled("overlay")) {
    pieces.push_back({address, size, nullptr, nullptr});
    return;
  }
  uint64_t at = address;
  auto it = queued_.upper_bound(address);
  if (it != queued_.begin() && std::prev(it)->second.end() > address) --it;
  for (; it != queued_.end() && it->second.address < end; ++it) {
    const Extent& extent = it->second;
    const uint64_t from = std::max(at, extent.address);
    const uint64_t to = std::min(end, extent.end());
    if (from > at) OverlayFlight(at, from, pieces);
    pieces.push_back({from, to - from, extent.data + (from - extent.address), extent.slab});
    Arena::Ref(extent.slab);
    at = to;
  }
  if (at < end) OverlayFlight(at, end, pieces);
}

bool PendingMap::InFlight(uint64_t begin, uint64_t end) const {
  return std::any_of(in_flight_.begin(), in_flight_.end(),
                     [&](const Run* run) { return run->Overlaps(begin, end); });
}

bool PendingMap::Queued(uint64_t begin, uint64_t end) const {
  auto it = queued_.upper_bound(begin);
  if (it != queued_.begin() && std::prev(it)->second.end() > begin) --it;
  return it != queued_.end() && it->second.address < end;
}

bool PendingMap::SuperblockPending() const {
  return Queued(superblock_begin_, superblock_end_) || InFlight(superblock_begin_, superblock_end_);
}

size_t PendingMap::SuperblockQueued() const {
  // Extents are split at the range's ends (SetSuperblock and the file do that), so none begins before it.
  size_t count = 0;
  for (auto it = queued_.lower_bound(superblock_begin_);
       it != queued_.end() && it->first < superblock_end_; ++it) {
    if (!it->second.failed) ++count;
  }
  return count;
}

bool PendingMap::stuck(Order order) const {
  if (!in_flight_.empty() || failed_ == 0) return false;
  return ordinary() == 0 || (order == Order::kSuperblockFirst && SuperblockPending());
}

bool PendingMap::Takeable(const Extent& extent, Order order, bool rest_is_done) const {
  if (extent.failed) return false;
  if (IsSuperblock(extent) && order == Order::kSuperblockLast && !rest_is_done) return false;
  return MutationEnabled("order") || !InFlight(extent.address, extent.end());
}

void PendingMap::Grow(Map::iterator it, const RunLimits& limits, Order order, bool rest_is_done,
                      Run& run) {
  const bool first_is_held = IsSuperblock(it->second);
  const uint64_t boundary = (run.begin / limits.bytes + 1) * limits.bytes;
  size_t groups = 1;
  size_t extents_of_first_group = 0;
  uint64_t end_of_first_group = 0;
  for (; it != queued_.end(); ++it) {
    const Extent& extent = it->second;
    if (!run.extents.empty()) {
      const uint64_t gap = extent.address - run.end;
      if (IsSuperblock(extent) != first_is_held || extent.address >= boundary) break;
      if (extent.end() > boundary && extent.size < kWorthSplitting) break;
      if (!Takeable(extent, order, rest_is_done)) break;
      if (gap != 0) {
        if (gap > limits.gap || !MayFill(run.extents.back(), extent, limits) ||
            (run.end - run.begin) / groups >= limits.long_piece ||
            InFlight(run.end, extent.address)) {
          break;
        }
        if (++groups == 2)
          extents_of_first_group = run.extents.size(), end_of_first_group = run.end;
        run.gap_bytes += gap;
      }
    }
    run.extents.push_back(extent);
    run.end = extent.end();
  }
  // A gap is worth filling when it saves requests: one read and one write against three writes or more.
  if (groups == 2) {
    run.extents.resize(extents_of_first_group);
    run.end = end_of_first_group;
    run.gap_bytes = 0;
  }
  if (run.end > boundary && run.extents.back().size >= kWorthSplitting) Split(boundary, run);
}

void PendingMap::Split(uint64_t at, Run& run) {
  Extent& last = run.extents.back();
  Extent rest = last;
  rest.address = at;
  rest.size = last.end() - at;
  rest.data = last.data + (at - last.address);
  queued_.emplace(at, rest);  // first: there may be no memory
  Arena::Ref(rest.slab);
  epochs_.Add(rest.epoch);
  last.size = at - last.address;
  run.end = at;
  queued_.at(last.address).size = last.size;  // erased by the caller with the rest of the run
}

bool PendingMap::TakeRun(const RunLimits& limits, Order order, bool rest_is_done, Run& run) {
  if (order == Order::kSuperblockFirst && superblock_end_ != 0 && SuperblockPending()) {
    // Nothing else may be stored before the superblock's range is: take that, or wait until it has landed.
    const auto superblock = queued_.lower_bound(superblock_begin_);
    if (superblock == queued_.end() || !IsSuperblock(superblock->second) ||
        !Takeable(superblock->second, order, true))
      return false;
    cursor_ = superblock_begin_;
  }
  if (queued_.size() == failed_) return false;
  auto it = queued_.lower_bound(cursor_);
  for (size_t looked = 0; looked < queued_.size(); ++looked, ++it) {
    if (it == queued_.end()) it = queued_.begin();
    if (Takeable(it->second, order, rest_is_done)) break;
  }
  if (it == queued_.end()) it = queued_.begin();
  if (!Takeable(it->second, order, rest_is_done)) return false;

  run.begin = it->second.address;
  run.end = run.begin;
  run.gap_bytes = 0;
  run.extents.clear();
  run.nodes.clear();
  in_flight_.reserve(in_flight_.size() + 1);
  Grow(it, limits, order, rest_is_done, run);
  run.nodes.reserve(run.extents.size());
  for (const Extent& extent : run.extents) {  // neighbours in the queue, too
    queued_bytes_ -= extent.size;
    if (it == newest_) newest_ = queued_.end();
    run.nodes.push_back(queued_.extract(it++));
  }
  replaced_bytes_ -= std::min(replaced_bytes_, run.size());
  cursor_ = run.end;
  in_flight_.push_back(&run);
  return true;
}

void PendingMap::Complete(const Run& run) {
  in_flight_.erase(std::find(in_flight_.begin(), in_flight_.end(), &run));
  for (const Extent& extent : run.extents) {
    Arena::Unref(extent.slab);
    epochs_.Remove(extent.epoch);
  }
}

// In one of the nodes that the run's extents were queued in, as long as there are any.
bool PendingMap::Return(Run& run, const Extent& piece) {
  if (!run.nodes.empty()) {
    Map::node_type node = std::move(run.nodes.back());
    run.nodes.pop_back();
    node.key() = piece.address;
    node.mapped() = piece;
    queued_.insert(std::move(node));
  } else {
    try {
      queued_.emplace(piece.address, piece);
    } catch (const std::bad_alloc&) {
      return false;
    }
  }
  Arena::Ref(piece.slab);
  epochs_.Add(piece.epoch);  // it has an entry: the extent that this is a piece of counts in it
  queued_bytes_ += piece.size;
  ++failed_;
  return true;
}

uint64_t PendingMap::Fail(Run& run, const Status& status) {
  in_flight_.erase(std::find(in_flight_.begin(), in_flight_.end(), &run));
  uint64_t lost = 0;
  for (const Extent& whole : run.extents) {
    const auto give_back = [&](uint64_t from, uint64_t to) {
      Extent rest = whole;
      rest.address = from;
      rest.size = to - from;
      rest.data = whole.data + (from - whole.address);
      rest.failed = true;
      if (!Return(run, rest)) lost += rest.size;
    };
    // What is queued now was written later: only the bytes between return. If there are none, nothing is lost.
    uint64_t at = whole.address;
    bool any = false;
    auto it = queued_.upper_bound(at);
    if (it != queued_.begin() && std::prev(it)->second.end() > at) --it;
    for (; it != queued_.end() && it->second.address < whole.end(); ++it) {
      try {
        epochs_.Supersede(whole.epoch, it->second.epoch);
      } catch (const std::bad_alloc&) {
        any = true;  // it cannot wait for the newer one, and must not look done before that is
      }
      if (it->second.address > at) give_back(at, it->second.address), any = true;
      at = it->second.end();
    }
    if (at < whole.end()) give_back(at, whole.end()), any = true;
    if (any) epochs_.Fail(whole.epoch, status);
    Arena::Unref(whole.slab);
    epochs_.Remove(whole.epoch);
  }
  return lost;
}

void PendingMap::FailQueued(const Status& status) {
  for (auto& [address, extent] : queued_) {
    extent.failed = true;
    epochs_.Fail(extent.epoch, status);
  }
  failed_ = queued_.size();
}

uint64_t PendingMap::Keep(Slab::Kind kind, const Status& status) {
  uint64_t lost = 0;
  for (auto it = queued_.begin(); it != queued_.end();) {
    Extent& extent = it->second;
    if (extent.slab->kind != kind) {
      ++it;
      continue;
    }
    if (Slab* kept = KeepCopy(extent.data, extent.size); kept != nullptr) {
      Arena::Unref(extent.slab);
      extent.slab = kept;
      extent.data = kept->data;
      ++it;
    } else {
      lost += extent.size;
      epochs_.Fail(extent.epoch, status);
      it = Erase(it);
    }
  }
  return lost;
}

uint64_t PendingMap::MoveTogether(const std::function<Place(uint64_t, uint64_t)>& place) {
  uint64_t moved = 0;
  for (auto& [address, extent] : queued_) {
    if (extent.slab->kind != Slab::Kind::kArena && extent.slab->kind != Slab::Kind::kPart) continue;
    const Place to = place(extent.size, address);
    if (to.data == nullptr) break;
    std::memcpy(to.data, extent.data, extent.size);
    Arena::Unref(extent.slab);
    extent.slab = to.slab;
    extent.data = to.data;
    moved += extent.size;
  }
  return moved;
}

bool PendingMap::LentInFlight() const {
  return std::any_of(in_flight_.begin(), in_flight_.end(), [](const Run* run) {
    return std::any_of(run->extents.begin(), run->extents.end(),
                       [](const Extent& extent) { return IsLent(extent.slab); });
  });
}

void PendingMap::RetryFailed() {
  epochs_.ForgetFailures();  // also those whose failed bytes were replaced meanwhile
  if (failed_ == 0) return;
  for (auto& [address, extent] : queued_) extent.failed = false;
  failed_ = 0;
}

}  // namespace tidelane
