#include "file/slab_writer.h"

#include <algorithm>

#include "base/counters.h"
#include "extent/pending_map.h"

namespace tidelane {
namespace {

// Moving takes the file's mutex for as long as a copy of that takes: some milliseconds.
constexpr uint64_t kMostMoved = uint64_t{32} << 20;
// While all files together hold less, each keeps the parts that it has filled.
constexpr uint64_t kKeptByAll = uint64_t{32} << 20;

}  // namespace

Slab* SlabWriter::Pin(Slab* slab) {
  pinned_->fetch_add(slab->size, std::memory_order_relaxed);
  slab->pinned_by = pinned_;
  acquired_ = true;
  return slab;
}

Slab* SlabWriter::Acquire(uint64_t wanted) {
  const bool first = parts_ == 0 && wanted <= arena_.crumbs().part_size();
  const bool little = parts_ < kFirstParts && wanted <= arena_.parts().part_size();
  Slab* slab = first    ? arena_.crumbs().TryAcquire()
               : little ? arena_.parts().TryAcquire()
                        : nullptr;
  if (slab != nullptr) ++parts_;
  if (slab == nullptr) slab = arena_.TryAcquire();
  if (slab == nullptr) slab = arena_.parts().TryAcquire();  // another file's may have room
  return slab == nullptr ? nullptr : Pin(slab);
}

bool SlabWriter::Begin(Filling& filling, Slab* slab) {
  if (filling.slab != nullptr) Arena::Unref(filling.slab);
  filling = {slab, 0};
  return slab != nullptr;
}

void SlabWriter::DropAll() {
  Drop(small_);
  Drop(large_);
}

bool SlabWriter::Use(Slab* slab, uint64_t wanted) {
  return slab != nullptr && Begin(FillingFor(wanted), Pin(slab));
}

SlabWriter::Space SlabWriter::TakeAnew(uint64_t wanted, uint64_t address) {
  Filling& filling = FillingFor(wanted);
  if (filling.full() && !Begin(filling, Acquire(wanted))) return {};
  if (wanted >= kLarge) {
    const auto shift = static_cast<uint32_t>((address - filling.used) % kPage);
    if (filling.used + shift >= filling.slab->size) {
      if (!Begin(filling, Acquire(wanted))) return {};
      filling.used = static_cast<uint32_t>(address % kPage);
    } else {
      filling.used += shift;
    }
  }
  return TakeFrom(filling, wanted);
}

void SlabWriter::Recycle(bool give_back) {
  // Of many files each would keep memory that others need.
  const bool many = arena_.in_use() >= kKeptByAll;
  for (Filling* filling : {&small_, &large_}) {
    if (filling->slab == nullptr || filling->slab->references.load(std::memory_order_acquire) != 1)
      continue;
    filling->used = 0;
    if (give_back || many || filling->slab->kind != Slab::Kind::kPart) Drop(*filling);
  }
  if (pinned_bytes() <= arena_.parts().part_size()) parts_ = small_.slab == nullptr ? 0 : 1;
}

bool SlabWriter::MoveTogether(PendingMap& pending) {
  const uint64_t queued = pending.queued_bytes();
  const uint64_t most = kMostPinned * queued + kFreelyPinned;
  if (pinned_bytes() <= most) return true;
  if (queued > kMostMoved) return false;
  const uint64_t moved = pending.MoveTogether([this](uint64_t size, uint64_t address) {
    // Whole or not at all: what is cut into pieces would need memory.
    Filling& filling = FillingFor(size);
    if (!filling.full() && filling.slab->size - filling.used < size + kPage) Drop(filling);
    Space space = Take(size, address);
    if (space.data != nullptr && space.size < size) {
      Arena::Unref(space.slab);
      space = {};
    }
    return PendingMap::Place{space.data, space.slab};
  });
  Count(Counter::kBytesMoved, moved);
  return pinned_bytes() <= most;
}

}  // namespace tidelane
