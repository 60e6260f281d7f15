#include "vol/commit.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "h5/error.h"
#include "vol/find_file.h"

namespace tidelane::vol {

namespace {

constinit thread_local unsigned scopes = 0;

herr_t Told(LibraryState& library, const Status& status) {
  if (status.ok()) return 0;
  h5::PushError(library.hdf5(), status);
  return -1;
}

// All that the program has of the file, but for `flushed`.
bool FlushOthers(LibraryState& library, const File& file, const void* flushed, hid_t dxpl) {
  if (library.open_files == nullptr) return true;
  H5VL_file_specific_args_t flush{};
  flush.op_type = H5VL_FILE_FLUSH;
  flush.args.flush.obj_type = H5I_FILE;
  flush.args.flush.scope = H5F_SCOPE_LOCAL;
  return std::ranges::all_of(*library.open_files, [&](void* other) {
    return other == flushed || FileOf(library, other, H5I_FILE).get() != &file ||
           library.hdf5().native().file_cls.specific(other, &flush, dxpl, nullptr) >= 0;
  });
}

}  // namespace

void CommitScope::Begin() { ++scopes; }
void CommitScope::End() { --scopes; }
bool CommitScope::active() { return scopes != 0; }

herr_t CommitFlushed(LibraryState& library, CallScope& call, void* object, H5I_type_t type,
                     hid_t dxpl) {
  std::vector<std::shared_ptr<File>> files = call.TakeFlushed();
  std::shared_ptr<File> own = FileOf(library, object, type);
  // HDF5 has not flushed one that this handle only reads.
  if (own != nullptr && own->writes().commits().enabled() && std::ranges::count(files, own) == 0)
    files.push_back(std::move(own));
  const Committing when = CommitScope::active() ? Committing::kNow : Committing::kIfDue;
  herr_t result = 0;
  // As HDF5 flushes them: what fails does not stop the others.
  for (const std::shared_ptr<File>& file : files) {
    if (!FlushOthers(library, *file, object, dxpl) ||
        Told(library, file->writes().commits().Commit(when)) < 0)
      result = -1;
  }
  return result;
}

herr_t CommitForOutsiders(LibraryState& library, void* object, H5I_type_t type, hid_t dxpl) {
  const std::shared_ptr<File> file = FileOf(library, object, type);
  if (file == nullptr || !file->writes().commits().enabled()) return 0;
  if (!FlushOthers(library, *file, nullptr, dxpl)) return -1;
  Count(Fallback::kJournalAddress);
  return Told(library, file->writes().commits().Commit(Committing::kIntoFile));
}

}  // namespace tidelane::vol
