/// \file
/// Files that the ranks of an MPI program have open together: how they come to be captured, and what ranks do together
/// around the calls that must find every rank's bytes stored (h5/parallel_file.h has the rules). Writes of elements are in
/// vol/ranks_write.h.
///
/// HDF5 wants such calls of all ranks, so there may be exchanges in them; calls that a rank may make alone have none: a
/// rank's own bytes are seen by itself at the driver.
///
/// Cost: a plain load where there never was such a file.
///
/// Thread safety: used inside callbacks, under HDF5's lock.
#pragma once

#include <memory>
#include <optional>

#include "h5/parallel_file.h"
#include "vol/driver_selection.h"
#include "vol/library_state.h"
#include "vol/ranks_publish.h"

namespace tidelane::vol {

namespace internal {
std::shared_ptr<h5::ParallelFile> ParallelOf(LibraryState& library, void* object, H5I_type_t type);
}  // namespace internal

/// The captured MPI file that `object`, of HDF5's kind `type`, is in; nullptr: in none.
inline std::shared_ptr<h5::ParallelFile> ParallelOf(LibraryState& library, void* object,
                                                    H5I_type_t type) {
  return library.parallel_files ? internal::ParallelOf(library, object, type) : nullptr;
}

/// The file of ours that `object` is in, whichever driver it has.
std::shared_ptr<File> CapturedFileOf(LibraryState& library, void* object, H5I_type_t type);

/// After the native open with MPI's driver of the file that `shared` says: captures it, or counts why not. Collective. Where `shared`
/// still has an opening after it, this HDF5's driver cannot have that, and the file must be closed.
void ShareFile(LibraryState& library, void* file, NameForRanks& shared, const AccessList& access,
               bool writable, hid_t dxpl);

/// Around a native call of all ranks, whose filtered chunks are put into the file first where the moment says so. Does nothing
/// for objects in other files.
class CollectiveGuard {
 public:
  CollectiveGuard(LibraryState& library, std::shared_ptr<h5::ParallelFile> file,
                  h5::SyncPoint moment);
  ~CollectiveGuard();
  CollectiveGuard(const CollectiveGuard&) = delete;
  CollectiveGuard& operator=(const CollectiveGuard&) = delete;

  /// Whether the call may be made: not, on any rank, where one could not store its bytes. Then that is on the error stack.
  bool MayGoOn(LibraryState& library) const;

 private:
  const std::shared_ptr<h5::ParallelFile> file_;
  Status status_;
};

// What a call means to other ranks' bytes, where one callback does many things.
template <typename T>
std::optional<h5::SyncPoint> MomentOf(LibraryState&, void*, const T&) {
  return std::nullopt;
}
inline std::optional<h5::SyncPoint> MomentOf(LibraryState&, void*,
                                             H5VL_link_specific_args_t* args) {
  if (args->op_type != H5VL_LINK_DELETE) return std::nullopt;
  return h5::SyncPoint::kFree;
}
inline std::optional<h5::SyncPoint> MomentOf(LibraryState&, void*,
                                             H5VL_object_specific_args_t* args) {
  if (args->op_type != H5VL_OBJECT_CHANGE_REF_COUNT) return std::nullopt;
  return h5::SyncPoint::kFree;
}
inline std::optional<h5::SyncPoint> MomentOf(LibraryState&, void*,
                                             H5VL_group_specific_args_t* args) {
  if (args->op_type != H5VL_GROUP_MOUNT) return std::nullopt;
  return h5::SyncPoint::kMount;
}
std::optional<h5::SyncPoint> MomentOf(LibraryState& library, void* dataset,
                                      H5VL_dataset_specific_args_t* args);

/// A flush by all ranks: all are told if one could not store its bytes.
herr_t FlushTogether(LibraryState& library, h5::ParallelFile& parallel, void* file,
                     H5VL_file_specific_args_t* args, hid_t dxpl, void** request);

/// Before a close by all ranks. False, on all of them, if one could not store its bytes: the file stays open.
bool MayCloseTogether(LibraryState& library, h5::ParallelFile& parallel);

/// Whether a call is about the link that its location names, and not about what that leads to.
template <typename T>
bool IsAboutLink(const T&) {
  return false;
}
inline bool IsAboutLink(H5VL_link_specific_args_t*) { return true; }

/// Before a link of `object` at `location` is deleted, or an object's count of links changed, by all ranks: notes whether a group
/// loses one.
void NoteDeleted(LibraryState& library, h5::ParallelFile& parallel, void* object,
                 const H5VL_loc_params_t& location, bool is_link);
/// One of them (either may be nullptr) is mounted on the other: whose bytes a call is about, by a path through both, nobody
/// would know, so that nothing of either is captured any more.
void StopMounted(h5::ParallelFile* one, h5::ParallelFile* other);
/// The captured MPI file in which a new dataset may get the space of one that was written in a group that was deleted; nullptr:
/// in none. The same on all ranks.
std::shared_ptr<h5::ParallelFile> TakesSpace(LibraryState& library, void* object, H5I_type_t type);

/// Optional operations that change what may be captured. True and the result: it was run.
bool OperateTogether(LibraryState& library, h5::ParallelFile& parallel, void* file,
                     H5VL_optional_args_t* args, hid_t dxpl, void** request, herr_t& result);

/// Whether a transfer list asks for collective transfers. Only where HDF5 was built for MPI.
bool IsCollective(LibraryState& library, hid_t dxpl);

/// A read of elements of a captured file.
herr_t ReadTogether(LibraryState& library, const std::shared_ptr<h5::ParallelFile>& parallel,
                    size_t count, void* datasets[], hid_t memory_types[], hid_t memory_spaces[],
                    hid_t file_spaces[], hid_t dxpl, void* buffers[], void** request);

}  // namespace tidelane::vol
