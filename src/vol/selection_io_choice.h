/// \file
/// Sieve or not: who gathers the small runs of a write, HDF5's sieve buffer or our lanes.
///
/// Our driver takes many runs in one call (selection I/O), and HDF5 then skips its sieve: nothing
/// is copied twice, storage is not read on the program's thread, and lanes merge neighbours. But
/// every run costs about 0.3 µs here and as much on a lane. The sieve pays per window of 64 KiB
/// instead, so it is cheaper where many runs share a window, that is, where they lie close
/// together: measured on tmpfs, runs 32 bytes apart cost 0.02 µs with it, 256 bytes 0.03, 1 KiB
/// 0.09, 4 KiB 0.7, whatever their length. On slow storage a window may also cost a read. So dense
/// writes are left to the sieve; on storage as quick as memory, where reading and rewriting a window
/// costs little more than a copy, also those that are less dense, and small ones that follow or replace each
/// other. Of a file that we have no lock on nothing is kept for reads, and no gap is filled between writes: there the sieve
/// is what native HDF5 has, so that it makes no more requests than natively. Small reads that follow each other of a file that is locked and only read,
/// on storage that does not make reads wait, are the sieve's, too (vol/following_reads.h): natively nothing costs less. With mode=sync a file's transfers are
/// native's altogether.
///
/// It is done by showing HDF5 a driver that takes one piece a call, while the transfer lasts (h5/driver.h): HDF5
/// keeps both ways coherent, and stays with the sieve for a dataset that has one.
///
/// Where elements that are written lie in one piece, the driver is told (file/element_places.h): gaps between such writes may
/// be filled, as the sieve does. Of a chunked dataset that is asked for writes of many runs into chunks that HDF5 does not cache.
///
/// Cost: some tenths of a microsecond for each of a dataset's first writes, then for one in seventeen; nothing once the
/// sieve has it. Reads ask nothing as long as every file is locked and written; once a file is open that is only read, two of 65 are looked at, and a
/// dataset is asked about when its second read follows its first.
///
/// Thread safety: used inside callbacks, under HDF5's lock.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "file/element_places.h"
#include "h5/driver.h"
#include "vol/dataset_catalogue.h"
#include "vol/element_storage.h"
#include "vol/following_reads.h"
#include "vol/library_state.h"
#include "vol/transfer_outcome.h"

namespace tidelane::vol {

/// Mean distance from the start of one run to the start of the next, in bytes, up to which the
/// sieve gathers; and how many runs a write must have for the choice to matter.
inline constexpr uint64_t kSieveSpacing = 512;
inline constexpr uint64_t kSieveSpacingQuick = 4096;
inline constexpr uint64_t kSieveSpacingUnlocked = 32 * 1024;  ///< a window has two such runs
inline constexpr uint64_t kSieveFromRuns = 16;
/// A single run of fewer bytes the sieve may gather with those that follow; a longer one is written
/// by itself as quickly.
inline constexpr uint64_t kSieveRun = 16 * 1024;
/// What is written again and again in one place it stores once, if it has room for it.
inline constexpr uint64_t kSieveWindow = 64 * 1024;
/// After so many writes in a row that were not for the sieve, as many more to that dataset are taken for such without a
/// look at their selection: looking takes four calls of HDF5, a third of what a small write costs otherwise.
inline constexpr unsigned kHabit = 16;
/// After so few a dataset is looked at, if it was not.
inline constexpr unsigned kFewWrites = 4;

/// How a dataset's transfers go.
struct RunPattern final : DatasetState {
  static constexpr Kind kKind = kSieve;

  /// A sieve buffer of a closed dataset may live on, in another opening of it.
  void Forgotten(LibraryState& library) override { library.sieve_buffers.unknown |= buffered; }

  // What each small read asks for lies together: where many datasets are read in turn, none of it is in the processor's caches.
  const DatasetFacts* facts = nullptr;  ///< nullptr: not looked at
  H5FD_t* open = nullptr;    ///< as they say; nullptr also where it is in none of our files
  std::weak_ptr<File> file;  ///< likewise
  FollowingReads reads;      ///< in a file that is only read
  bool contiguous = false;   ///< as the facts say
  bool natively = false;     ///< in a file with mode=sync
  bool only_read =
      false;  ///< in one that is locked, and not written, on storage that did not make reads wait

  bool stores_soon =
      false;  ///< in one whose settings do not ask for bytes to be kept, or stored at once
  bool sieved = false;  ///< it was left to the sieve, and goes on with the buffer that it then has
  bool asked = false;   ///< after single pieces, whether it has a sieve buffer
  bool buffered = false;   ///< it may have a sieve buffer, which may hold what nothing else has yet
  ElementStorage storage;  ///< where its gaps are
  uint64_t next = UINT64_MAX;  ///< the element behind the last write of one run
  unsigned same = 0;           ///< how many writes in a row were not for the sieve
  unsigned repeat = 0;         ///< and how many more are taken for such without a look

  bool has_layout(H5D_layout_t layout) const { return facts != nullptr && facts->layout == layout; }
};

/// Around a native transfer: while it lasts HDF5 gives the driver single pieces, or as many as it likes, and the driver knows
/// where they lie.
class [[nodiscard]] Gathering {
 public:
  explicit Gathering(const ElementPlaces* places = nullptr) : places_(places) {}
  /// `singly`: nullptr of a file that is not ours.
  explicit Gathering(H5FD_t* singly, const ElementPlaces* places = nullptr)
      : places_(places),
        open_(singly),
        before_(singly != nullptr && h5::Driver().take_singly(singly, true)) {}
  ~Gathering() {
    if (open_ != nullptr) h5::Driver().take_singly(open_, before_);
  }
  Gathering(const Gathering&) = delete;
  Gathering& operator=(const Gathering&) = delete;
  explicit operator bool() const { return open_ != nullptr; }

 private:
  const ElementsIn places_;
  H5FD_t* const open_ = nullptr;
  const bool before_ = false;
};

/// Whether a write leaves a request, which is to say when its bytes are stored: in a sieve they wait
/// for calls to come, so that only what is dense goes there.
enum class Leaves : bool { kNothing, kRequest };

/// To be held while these are written.
Gathering GatherWrites(LibraryState& library, size_t count, void* datasets[],
                       const hid_t memory_types[], const hid_t file_spaces[], hid_t dxpl,
                       Leaves leaves);

/// To be held while these are read.
Gathering GatherReads(LibraryState& library, size_t count, void* datasets[],
                      const hid_t memory_types[], const hid_t file_spaces[], hid_t dxpl);

/// Whether a read that could go on after its call is HDF5's at once, as natively: past the sieve it would find newer bytes than those that
/// the sieve has, to be read later. Not so what is larger than the sieve, which natively goes past it, too.
bool ReadsAtOnce(LibraryState& library, size_t count, void* datasets[], const hid_t memory_types[],
                 const hid_t file_spaces[], hid_t dxpl);

/// Whether HDF5 may have a sieve buffer of a dataset, of which nothing is noted; to be asked with the default list (vol/call_inside.h).
bool MayHaveBuffer(LibraryState& library, void* dataset);
/// Those that are noted as having one.
std::vector<void*> BufferedDatasets(LibraryState& library);
/// What the buffers hold has been handed over but for those of `left`: nothing need be known of them before the next transfer.
void NoteHandedOver(LibraryState& library, const std::vector<void*>& left);
/// HDF5 may have a sieve buffer of these (vol/sieve_store.h).
void NoteBuffers(LibraryState& library, size_t count, void* datasets[], hid_t dxpl);

/// Around a native transfer: whether it may have gone through a sieve buffer, though nobody chose that.
class SieveWatch {
 public:
  explicit SieveWatch(LibraryState& library) : library_(library), pieces_(Pieces()) {}
  /// After a transfer that HDF5 made piece by piece for `causes` (vol/transfer_outcome.h), or was made to.
  void Note(const Gathering& gathering, uint32_t causes, size_t count, void* datasets[],
            hid_t dxpl) const {
    if (gathering || MayHaveSieved(causes, count)) {
      NoteBuffers(library_, count, datasets, dxpl);
    } else if (Pieces() != pieces_) {
      NotePieces(count, datasets, dxpl);
    }
  }

 private:
  uint64_t Pieces() const { return h5::Driver().single_pieces(library_.slot); }
  void NotePieces(size_t count, void* datasets[], hid_t dxpl) const;

  LibraryState& library_;
  const uint64_t pieces_;
};

/// A file of ours was opened.
void NoteSieve(LibraryState& library, const File& file);
/// What the list that a file is opened with says of its sieve (LibraryState::large_sieves).
void NoteSieveSize(LibraryState& library, hid_t fapl);
/// How a selection lies in a file, in elements: contiguous runs, where the first begins (for few runs
/// only), the distance from its first to its last element (of a single run its length), and from the
/// start of one run to the start of the next while they follow closely (the row of a tile to the next
/// row; 0 where that is not known).
struct Spread {
  uint64_t runs = 0;
  uint64_t first = 0;
  uint64_t span = 0;
  uint64_t pitch = 0;
};

/// {0, 0} for selections that are whole, or that it would take long to look at.
Spread SpreadOf(h5::Library& hdf5, hid_t file_space);

/// The contiguous runs of a regular hyperslab in an extent of `rank` dimensions, and their pitch.
Spread RunsOfHyperslab(int rank, const hsize_t* extent, const hsize_t* stride, const hsize_t* count,
                       const hsize_t* block);

}  // namespace tidelane::vol
