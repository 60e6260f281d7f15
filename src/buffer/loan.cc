#include "buffer/loan.h"

#include <cstring>
#include <new>

namespace tidelane {
namespace {

Slab* Make(Slab::Kind kind, std::byte* data) {
  Slab* slab = new (std::nothrow) Slab;
  if (slab == nullptr) return nullptr;
  slab->kind = kind;
  slab->data = data;
  slab->references.store(1, std::memory_order_relaxed);
  return slab;
}

}  // namespace

Slab* Lend() { return Make(Slab::Kind::kLent, nullptr); }

Slab* KeepCopy(const std::byte* bytes, uint64_t size) {
  auto* copy = new (std::nothrow) std::byte[size];
  if (copy == nullptr) return nullptr;
  std::memcpy(copy, bytes, size);
  Slab* slab = Make(Slab::Kind::kKept, copy);
  if (slab == nullptr) delete[] copy;
  return slab;
}

}  // namespace tidelane
