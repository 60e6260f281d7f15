/// \file
/// Which small reads follow others: a program may read many datasets in turn, each of them in order.
///
/// Each granule of kReach bytes has at most one last read; a read takes the place of the one that it follows. What is kept is
/// bounded, as in a processor's cache: sets of kWays, of which the one used longest ago makes room.
///
/// Invariant: streams() is the number of last reads that are kept and followed others themselves: of reads at random few do.
/// Thread safety: none; guarded by who has it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tidelane {

class NearReads {
 public:
  static constexpr uint64_t kReach = uint64_t{64} * 1024;
  static constexpr size_t kStreams = 1024;

  /// Notes a read at `address`: whether an earlier one, the last of its stream, was no more than kReach away: as far as from the start of a block, which answers what lies between, to the next.
  bool Note(uint64_t address);
  size_t streams() const { return streams_; }

 private:
  static constexpr size_t kWays = 8;
  struct LastRead {
    uint64_t next = 0;  // the address of the read, and 1; 0: none
    uint64_t used = 0;
    bool follows = false;
  };
  using Set = std::array<LastRead, kWays>;
  Set& SetOf(uint64_t granule);
  bool Leave(uint64_t granule, uint64_t address);

  std::array<Set, kStreams / kWays> sets_{};
  uint64_t clock_ = 0;
  size_t streams_ = 0;
};

}  // namespace tidelane
