#include "vol/chunk_memory.h"

#include <algorithm>
#include <utility>

#include "base/memory_limit.h"
#include "engine/engine.h"

namespace tidelane::vol {

namespace {

// Many are small ones, which the system's allocator keeps as well.
constexpr size_t kMostSpare = 256;

}  // namespace

uint64_t ChunkMemory::Most() { return Engine::Get().arena().cap() / 4; }

bool ChunkMemory::HasRoom(uint64_t charge) {
  const uint64_t most = Most();
  if (charge <= most) largest_ = std::max(largest_, charge);
  const uint64_t needed = charged_ + lent() + charge;
  if (needed > most || !MayTakeAddressSpace(charge)) return false;
  if (needed + spare_bytes_ > most) DropSpare();
  return true;
}

bool ChunkMemory::MayLend(uint64_t bytes) const {
  const uint64_t most = Most();
  return lent() + bytes <= std::min(most / 2, most - largest_);
}

void ChunkMemory::Release(uint64_t charge, RawBytes bytes) {
  charged_ -= charge;
  if (spare_.size() == kMostSpare || bytes.empty()) return;
  spare_bytes_ += bytes.size();
  spare_.push_back(std::move(bytes));
}

RawBytes ChunkMemory::Buffer(size_t size) {
  RawBytes bytes = Spare(size);
  return bytes.empty() ? RawBytes(size) : std::move(bytes);
}

RawBytes ChunkMemory::Spare(size_t size) {
  const auto spare = std::find_if(spare_.rbegin(), spare_.rend(),
                                  [size](const auto& bytes) { return bytes.size() == size; });
  if (spare == spare_.rend()) return {};
  std::swap(*spare, spare_.back());
  RawBytes bytes = std::move(spare_.back());
  spare_.pop_back();
  spare_bytes_ -= size;
  return bytes;
}

void ChunkMemory::Reserve() { spare_.reserve(kMostSpare); }

void ChunkMemory::DropSpare() {
  spare_.clear();
  spare_bytes_ = 0;
}

}  // namespace tidelane::vol
