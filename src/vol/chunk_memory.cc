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
  if (charged_ + charge > most || !MayTakeAddressSpace(charge)) return false;
  if (charged_ + charge + spare_bytes_ > most) DropSpare();
  return true;
}

void ChunkMemory::Release(uint64_t charge, std::vector<std::byte> bytes) {
  charged_ -= charge;
  if (spare_.size() == kMostSpare || bytes.empty()) return;
  spare_bytes_ += bytes.size();
  spare_.push_back(std::move(bytes));
}

std::vector<std::byte> ChunkMemory::Buffer(size_t size) {
  std::vector<std::byte> bytes = Spare(size);
  bytes.resize(size);
  return bytes;
}

std::vector<std::byte> ChunkMemory::Spare(size_t size) {
  const auto spare = std::find_if(spare_.rbegin(), spare_.rend(),
                                  [size](const auto& bytes) { return bytes.size() == size; });
  if (spare == spare_.rend()) return {};
  std::swap(*spare, spare_.back());
  std::vector<std::byte> bytes = std::move(spare_.back());
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
