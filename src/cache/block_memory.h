/// \file
/// Memory of blocks: pages of their own, so that they go back to the system with the block, and a bound on what the blocks of all files take
/// together. A program that has a thousand files open reads little of each.
///
/// Invariant: beyond the bound there is one block for each file that has none.
/// Thread safety: all functions may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace tidelane {

struct BlockRelease {
  void operator()(std::byte* bytes) const;
};
using BlockBytes = std::unique_ptr<std::byte[], BlockRelease>;

class BlockMemory {
 public:
  static constexpr uint64_t kBlock = uint64_t{64} * 1024;

  /// kBlock bytes; nullptr when the system refuses.
  static BlockBytes Take();
  /// Whether there may be one more where one could be used again instead.
  static bool Roomy() { return Taken() < Most(); }
  /// Bytes of all blocks, and how many there may be: a sixty-fourth of the memory that this process may use, 64 MiB at most.
  static uint64_t Taken();
  static uint64_t Most();
};

}  // namespace tidelane
