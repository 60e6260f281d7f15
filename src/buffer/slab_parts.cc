#include "buffer/slab_parts.h"

#include <algorithm>
#include <new>
#include <utility>

namespace tidelane {

bool SlabParts::DivideOne() {
  Slab* const whole = acquire_();
  if (whole == nullptr) return false;
  try {
    divided_.emplace_front();
  } catch (const std::bad_alloc&) {
    unref_(whole);
    return false;
  }
  Divided& divided = divided_.front();
  divided.owner = this;
  divided.whole = whole;
  divided.place = divided_.begin();
  const uint32_t size = part_size_;
  for (size_t i = kParts; i-- > 0;) {  // the lowest one comes to the front
    Part& part = divided.parts[i];
    const auto begin = static_cast<uint32_t>(i) * size;
    part.data = whole->data + begin;
    part.size = size;
    part.faulted = std::min(whole->faulted - std::min(whole->faulted, begin), size);
    part.kind = Slab::Kind::kPart;
    part.arena = whole->arena;
    part.of = &divided;
    part.next_free = std::exchange(divided.free, &part);
  }
  return true;
}

Slab* SlabParts::TryAcquire() {
  MutexLock lock(mutex_);
  if ((divided_.empty() || divided_.front().free == nullptr) && !DivideOne()) return nullptr;
  Divided& divided = divided_.front();
  Slab* const part = divided.free;
  divided.free = std::exchange(part->next_free, nullptr);
  ++divided.used;
  if (divided.free == nullptr) divided_.splice(divided_.end(), divided_, divided.place);
  part->references.store(1, std::memory_order_relaxed);
  return part;
}

void SlabParts::Release(Slab* part) {
  auto& own = static_cast<Part&>(*part);
  own.of->owner->Return(own);
}

void SlabParts::Return(Part& part) {
  MutexLock lock(mutex_);
  Divided& divided = *part.of;
  if (divided.free == nullptr) divided_.splice(divided_.begin(), divided_, divided.place);
  part.next_free = std::exchange(divided.free, &part);
  if (--divided.used != 0) return;
  // The pages are there as far as the last part that has any.
  for (const Part& one : divided.parts) {
    const auto begin = static_cast<uint32_t>(one.data - divided.whole->data);
    if (one.faulted != 0)
      divided.whole->faulted = std::max(divided.whole->faulted, begin + one.faulted);
  }
  Slab* const whole = divided.whole;
  divided_.erase(divided.place);
  unref_(whole);
}

void SlabParts::Withdraw() {
  for (Divided& divided : divided_) {
    for (Part& part : divided.parts) {
      Unpin(part);
      part.data = nullptr;
      part.size = part.faulted = 0;
      part.kind = Slab::Kind::kWithdrawn;
    }
  }
  withdrawn_.splice(withdrawn_.end(), divided_);
}

}  // namespace tidelane
