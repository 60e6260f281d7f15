#include "vol/chunk_reuse.h"

#include <algorithm>

namespace tidelane::vol {

namespace {

constexpr uint64_t kMostRemembered = 512;

}  // namespace

ChunkReuse::ChunkReuse(uint64_t chunks)
    : room_(static_cast<size_t>(std::min(chunks, kMostRemembered))) {
  last_.reserve(room_);
}

void ChunkReuse::Count(bool came_back) {
  returns_ = std::clamp(returns_ + (came_back ? 1 : -1), 0, kMost);
}

bool ChunkReuse::Has(uint64_t chunk) const {
  return std::ranges::find(last_, chunk) != last_.end();
}

void ChunkReuse::Add(uint64_t chunk) {
  if (last_.size() < room_) {
    last_.push_back(chunk);
    return;
  }
  last_[next_] = chunk;
  next_ = (next_ + 1) % room_;
}

void ChunkReuse::Follow(uint64_t flushes) {
  if (flushes == flushes_) return;
  flushes_ = flushes;
  last_.clear();
  next_ = 0;
}

void ChunkReuse::NoteWrite(const TouchedChunks& touched, uint64_t flushes) {
  if (room_ == 0) return;
  Follow(flushes);
  uint64_t found = 0;
  // Of more than there is room for, those that come last stay; the first ones were never all there.
  const uint64_t from = touched.count() - std::min<uint64_t>(touched.count(), room_);
  for (uint64_t i = from; i < touched.count(); ++i) {
    const uint64_t chunk = touched.At(i).chunk;
    if (Has(chunk)) {
      ++found;
    } else {
      Add(chunk);
    }
  }
  Count(touched.count() <= room_ && found > touched.count() / 2);
}

void ChunkReuse::NoteUse(uint64_t flushes) {
  Follow(flushes);
  if (!last_.empty()) Count(true);
}

}  // namespace tidelane::vol
