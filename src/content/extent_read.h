/// \file
/// Pieces of a file, each with a place in memory, read as a shared read: a large piece in several
/// parts, small neighbours in one request.
///
/// Small pieces that lie close to one another (rows of a hyperslab) are read with what is between
/// them, and copied to where they go.
///
/// Invariant: pieces are added by the program's thread, before Seal.
/// Thread safety: as parallel_read.h.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "content/parallel_read.h"

namespace tidelane {

class ExtentRead final : public ParallelRead {
 public:
  ExtentRead(std::shared_ptr<ParallelReadSource> source, Lanes& lanes, unsigned helpers)
      : ParallelRead(std::move(source), lanes, helpers) {}

  /// False: it has been sealed, or has as many as it takes.
  bool Add(uint64_t address, uint64_t size, std::byte* to) TL_EXCLUDES(pieces_mutex_);
  void Seal() override TL_EXCLUDES(pieces_mutex_);
  bool Touches(uint64_t begin, uint64_t end) const override TL_EXCLUDES(pieces_mutex_);
  bool sealed() const { return sealed_.load(std::memory_order_acquire); }
  uint64_t FileBytes() const override { return bytes_; }
  /// Reads it, with lanes' help, as a blocking read of the program's.
  Status ReadNow();

 private:
  struct Piece {
    uint64_t address = 0;
    uint64_t size = 0;
    std::byte* to = nullptr;
    uint64_t end() const { return address + size; }
  };

  Status ReadPart(Reader reader, uint64_t part, ReadRooms& rooms) override;
  Status ReadSpan(Reader reader, size_t first, size_t last, ReadRooms& rooms);

  mutable Mutex pieces_mutex_;  // until it is sealed; then nothing changes any more
  std::atomic<bool> sealed_{false};
  std::vector<Piece> pieces_;   // by address once sealed
  std::vector<size_t> begins_;  // of each part's pieces, and the end of the last one's
  uint64_t longest_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace tidelane
