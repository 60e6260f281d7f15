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

Slab* Keep(uint64_t size) {
  auto* bytes = new (std::nothrow) std::byte[size];
  if (bytes == nullptr) return nullptr;
  Slab* slab = Make(Slab::Kind::kKept, bytes);
  if (slab == nullptr) delete[] bytes;
  return slab;
}

Slab* Adopt(RawBytes& bytes) {
  Slab* slab = Make(Slab::Kind::kKept, nullptr);
  if (slab == nullptr) return nullptr;
  slab->size = static_cast<uint32_t>(bytes.size());
  slab->data = bytes.Release();
  return slab;
}

Slab* KeepCopy(const std::byte* bytes, uint64_t size) {
  Slab* slab = Keep(size);
  if (slab != nullptr) std::memcpy(slab->data, bytes, size);
  return slab;
}

}  // namespace tidelane
