#include "buffer/free_slabs.h"

#include <utility>

namespace tidelane {
namespace {

void PushOn(Slab*& list, uint64_t& bytes, Slab* slab) {
  slab->next_free = std::exchange(list, slab);
  bytes += slab->size;
}

Slab* PopFrom(Slab*& list, uint64_t& bytes) {
  Slab* const slab = list;
  if (slab == nullptr) return nullptr;
  list = std::exchange(slab->next_free, nullptr);
  bytes -= slab->size;
  return slab;
}

}  // namespace

void FreeSlabs::Push(Slab* slab, uint64_t now_ns) {
  slab->freed_ns = now_ns;
  PushOn(hot_, hot_bytes_, slab);
}

void FreeSlabs::PushCold(Slab* slab) { PushOn(cold_, cold_bytes_, slab); }

Slab* FreeSlabs::Pop() {
  Slab* const slab = PopFrom(hot_, hot_bytes_);
  return slab != nullptr ? slab : PopCold();
}

Slab* FreeSlabs::PopCold() { return PopFrom(cold_, cold_bytes_); }

Slab* FreeSlabs::TakeAged(uint64_t ns) {
  Slab** link = &hot_;
  while (*link != nullptr && (*link)->freed_ns >= ns) link = &(*link)->next_free;
  Slab* const aged = std::exchange(*link, nullptr);
  for (const Slab* slab = aged; slab != nullptr; slab = slab->next_free) hot_bytes_ -= slab->size;
  return aged;
}

uint64_t FreeSlabs::OldestNs() const {
  uint64_t oldest = UINT64_MAX;
  for (const Slab* slab = hot_; slab != nullptr; slab = slab->next_free) oldest = slab->freed_ns;
  return oldest;
}

}  // namespace tidelane
