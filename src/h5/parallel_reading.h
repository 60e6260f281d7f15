/// \file
/// A file that all ranks of a communicator have opened for reading only, through HDF5's mpio driver: each rank reads its elements by
/// itself, with all that reads of a serial file have (content/read_path.h), and no rank waits for another one to read.
///
/// Nobody has a lock on such a file. So what was read is kept as long as nobody is known to write it, which is asked when a call
/// begins to read: who writes it by HDF5's mpio driver on this machine has joined its table (ranks/dirty_range_table.h); what anybody
/// else has stored shows in the file's times.
///
/// Collective reads in many small pieces, between which other ranks' lie, are MPI-IO's: it reads what lies together and hands it
/// out, where each rank alone would read all of it. A rank knows its own pieces only, and all have to make the same call. So
/// they agree, in the 1st, 2nd, 4th, 8th … collective read, on what it and those up to the next agreement are.
///
/// Invariants:
///  1. Whether a collective read is MPI-IO's is the same on all ranks: it follows from how many there were, and from what was agreed.
///  2. From when somebody else may write the file nothing of it is kept.
/// Thread safety: used inside calls of HDF5, under its lock.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <utility>

#include "file/file.h"
#include "h5/mpi.h"
#include "ranks/dirty_range_table.h"
#include "ranks/shared_blocks.h"

namespace tidelane::h5 {

class ParallelReading {
 public:
  /// `table`: as it was when it said that nobody writes the file, with what it had joined() then; nullptr: there is none.
  ParallelReading(std::shared_ptr<File> file, const Mpi& mpi, MpiHandle communicator,
                  uint64_t base_address, std::unique_ptr<DirtyRangeTable> table, uint32_t joined)
      : file_(std::move(file)),
        mpi_(mpi),
        communicator_(communicator),
        base_address_(base_address),
        table_(std::move(table)),
        joined_(joined) {}

  const std::shared_ptr<File>& file() const { return file_; }
  /// Added to addresses in the file: the size of a user block.
  uint64_t base_address() const { return base_address_; }

  /// A call begins to read: what was kept goes if somebody may have changed it.
  void Look();
  /// Until no other process of this machine holds bytes there that it wrote before.
  void AwaitOthers(uint64_t begin, uint64_t end);

  /// A collective read begins, on each rank. Whether the ranks agree in it.
  bool BeginCollective() { return std::has_single_bit(++collective_reads_); }
  /// Collective. `small`: this rank's part is in small pieces. False: MPI failed.
  bool Agree(bool small);
  /// Whether collective reads are MPI-IO's now.
  bool by_mpi() const { return by_mpi_; }

  Mpi::Waits waits = Mpi::Waits::kTurning;  ///< in exchanges; the same on all ranks
  /// Of this opening, on all its ranks.
  void SetJob(const SharedBlocks::Job& job) { job_ = job; }
  /// Ranks read metadata each for itself: those of one machine share what they read.
  void ReadMetadataApart();
  /// They read it together: none of them may ask HDF5 for it.
  bool metadata_together() const { return metadata_together_; }

 private:
  const std::shared_ptr<File> file_;
  const Mpi& mpi_;
  const MpiHandle communicator_;
  const uint64_t base_address_;
  const std::unique_ptr<DirtyRangeTable> table_;
  const uint32_t joined_;
  uint64_t collective_reads_ = 0;
  bool by_mpi_ = false;
  bool written_ = false;
  bool metadata_together_ = true;
  SharedBlocks::Job job_;
};

}  // namespace tidelane::h5
