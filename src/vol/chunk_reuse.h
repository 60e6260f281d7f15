/// \file
/// Whether a program comes back to chunks while HDF5's chunk cache would still have them.
///
/// HDF5 filters a chunk when it leaves the cache. What is written again before that, or read, or changed in part, costs it
/// a copy; chunks on their way past the cache would be filtered each time, and decoded for each read. Such datasets are
/// HDF5's, as long as that goes on. A flush empties the cache of what is new: what comes back after it is no reason.
///
/// Invariant: what it knows is bounded.
///
/// Thread safety: used inside callbacks, under HDF5's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "chunk/chunk_grid.h"

namespace tidelane::vol {

class ChunkReuse {
 public:
  ChunkReuse() = default;
  /// HDF5's cache has room for so many chunks of the dataset.
  explicit ChunkReuse(uint64_t chunks);

  /// The program writes these chunks, whole. `flushes`: how many there have been in this process.
  void NoteWrite(const TouchedChunks& touched, uint64_t flushes);
  /// It reads some of the dataset, or changes parts of chunks.
  void NoteUse(uint64_t flushes);
  uint64_t room() const { return room_; }
  bool suits_cache() const { return returns_ >= kEnough; }

 private:
  static constexpr int kEnough = 4;  // times that it came back, less those when it did not
  static constexpr int kMost = 8;

  void Count(bool came_back);
  bool Has(uint64_t chunk) const;
  void Add(uint64_t chunk);
  void Follow(uint64_t flushes);

  size_t room_ = 0;
  std::vector<uint64_t> last_;  // chunks that were written last, a ring
  size_t next_ = 0;
  uint64_t flushes_ = 0;
  int returns_ = 0;
};

}  // namespace tidelane::vol
