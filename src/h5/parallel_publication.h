/// \file
/// A file that the ranks of an MPI program create together with publish=atomic (publish/publication.h): one rank makes the hidden
/// file, tells all others where it is, and gives it its name when all have closed it.
///
///   1. Before the native create rank 0 of the file's communicator decides, in one exchange; in a second one all say whether they
///      have found what it made. So all open the hidden file, or none does.
///   2. Every opening by HDF5's mpio driver is counted, on each rank for itself (ParallelOpening, vfd/mpio_published.cc).
///   3. After the native close of the last one that all ranks had, all say whether they have stored everything. Rank 0 publishes if
///      so, and tells what that came to.
///
/// Invariants:
///  1. A rank never leaves out an exchange that others make: a failure is told by it.
///  2. Only rank 0's process holds the claim to the hidden file, from the first exchange to the last one. If it dies, nothing is
///     published.
/// Thread safety: used inside calls of HDF5, under its lock.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/status.h"
#include "extent/ranges.h"
#include "h5/library.h"
#include "publish/publication.h"

namespace tidelane::h5 {

class ParallelPublication;

/// What HDF5's driver has to know of one opening (vfd/mpio_published.cc). Made before HDF5 opens the file: later there may be no
/// memory, and the others would wait for this rank.
struct ParallelOpening {
  H5FD_class_t driver{};  // first
  const H5FD_class_t* native = nullptr;
  Library* library = nullptr;
  H5FD_t* pub = nullptr;
  std::shared_ptr<ParallelPublication> publication;
  std::string name;      ///< as the program gave it
  bool together = true;  ///< all ranks that made the file have this opening
  bool writable = true;
  bool spoiled = false;      ///< something was refused of which nobody knows where it was
  bool cut_refused = false;  ///< its last change of length
  Ranges refused;            ///< what storage did not take, and nobody has written since
  ParallelOpening* next = nullptr;
};

/// A communicator of our own.
class OwnCommunicator {
 public:
  OwnCommunicator() = default;
  /// Collective. A copy of the one in a list for MPI's driver.
  OwnCommunicator(Library& library, hid_t fapl);
  ~OwnCommunicator();
  OwnCommunicator(OwnCommunicator&& other) noexcept
      : mpi_(std::exchange(other.mpi_, nullptr)), handle_(other.handle_) {}
  OwnCommunicator& operator=(OwnCommunicator&& other) noexcept {
    std::swap(mpi_, other.mpi_);
    std::swap(handle_, other.handle_);
    return *this;
  }

  bool valid() const { return mpi_ != nullptr; }
  bool Place(int& rank, int& ranks) const { return mpi_->Place(handle_, rank, ranks); }
  /// Collective; false: MPI failed, or is over.
  bool Max(const uint64_t* values, uint64_t* greatest, int count) const {
    return mpi_->running() && mpi_->Max(handle_, values, greatest, count);
  }

 private:
  const Mpi* mpi_ = nullptr;
  MpiHandle handle_;
};

class ParallelPublication {
 public:
  /// `hidden` is the hidden file's path.
  ParallelPublication(std::string name, std::string hidden,
                      std::shared_ptr<Publication> publication);
  /// Collective, before the native create of `name`, with a list for MPI's driver. `may_hide`: as far as this rank knows there can be
  /// a hidden file. Nothing in `opening`: the file is created as natively, on all ranks; why it cannot be hidden is counted by each.
  /// A failure is one on every rank; it is from "lock" where another program writes the file.
  static Status Create(Library& library, hid_t fapl, const char* name, bool only_new, bool may_hide,
                       std::unique_ptr<ParallelOpening>& opening);
  /// Before the native open of `name`, which is not published yet and was created by the ranks of this program. Nothing in
  /// `opening`: it is none of these.
  static void Open(Library& library, const char* name, bool writable,
                   std::unique_ptr<ParallelOpening>& opening);

  ~ParallelPublication();
  ParallelPublication(const ParallelPublication&) = delete;
  ParallelPublication& operator=(const ParallelPublication&) = delete;

  const std::string& path() const { return path_; }
  int ranks() const { return ranks_; }

  /// The driver has it open.
  void Join(const ParallelOpening& opening);
  /// Collective if that is so for the opening: its driver has closed it, and could do so or not.
  Status Leave(const ParallelOpening& opening, bool closed);

 private:
  enum class State : uint64_t;

  State Now() const;
  Status Publish();
  Status WhyNot(State worst, State here, bool told) const;
  void End(bool useless);

  const std::string name_;
  const std::string path_;
  const std::shared_ptr<Publication> publication_;
  OwnCommunicator communicator_;
  int rank_ = 0;
  int ranks_ = 0;
  bool opened_ = false;
  bool ended_ = false;
  unsigned open_together_ = 0;
  unsigned writing_alone_ = 0;
  bool failed_ = false;
};

}  // namespace tidelane::h5
