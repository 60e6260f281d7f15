#include "vol/ranks_publish.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>

#include "h5/error.h"
#include "h5/parallel_driver.h"
#include "publish/unpublished.h"
#include "vol/find_file.h"

namespace tidelane::vol {

bool FindNameForRanks(LibraryState& library, hid_t fapl, const FileSettings& settings,
                      const Opening& how, NameForRanks& found) try {
  h5::Library& hdf5 = library.hdf5();
  if (found.name == nullptr) return true;
  if (!how.creates) {
    h5::ParallelPublication::Open(hdf5, found.name, how.writable, found.opening);
    return true;
  }
  if (!settings.publish_atomic) return true;
  Status status;
  {
    const h5::KeepErrorStack keep(hdf5);
    status =
        h5::ParallelPublication::Create(hdf5, fapl, found.name, how.only_new,
                                        h5::ParallelDriver().may_hide(found.name), found.opening);
  }
  if (status.ok()) return true;
  if (status.operation() == "lock") {  // as the serial driver says it
    const int code = status.code();
    h5::PushNativeError(hdf5,
                        "unable to lock file, errno = " + std::to_string(code) +
                            ", error message = '" + std::generic_category().message(code) + "'",
                        "VFL", "CANTLOCKFILE");
  } else {
    h5::PushError(hdf5, status);
  }
  return false;
} catch (const std::bad_alloc&) {
  h5::PushError(library.hdf5(), Status::Failed(ENOMEM, "open"));
  return false;
}

std::string HiddenPathOf(const char* name) {
  const std::shared_ptr<Publication> hidden = Unpublished::Get().At(name);
  return hidden == nullptr ? std::string() : hidden->HiddenPath();
}

// Natively its first bytes would have been the end of the old file.
void NoteHiddenDeleted(const char* name) {
  if (const std::shared_ptr<Publication> hidden = Unpublished::Get().At(name); hidden != nullptr)
    static_cast<void>(hidden->Discard());
}

void CorrectName(LibraryState& library, void* object, H5VL_file_get_args_t& args) {
  if (args.op_type != H5VL_FILE_GET_NAME || !library.parallel_files) return;
  const h5::KeepErrorStack keep(library.hdf5());
  unsigned long serial = 0;
  if (!SerialOf(library, object, args.args.get_name.type, serial)) return;
  const std::string* const name = h5::ParallelDriver().name_of(library.slot, serial);
  if (name == nullptr) return;
  auto& get = args.args.get_name;
  if (get.file_name_len != nullptr) *get.file_name_len = name->size();
  if (get.buf == nullptr || get.buf_size == 0) return;
  const size_t length = std::min(name->size(), get.buf_size - 1);
  std::memcpy(get.buf, name->data(), length);
  get.buf[length] = '\0';
}

}  // namespace tidelane::vol
