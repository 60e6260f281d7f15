#include "vol/late_errors.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <new>

#include "base/incidents.h"
#include "h5/error.h"

namespace tidelane::vol {

void LateErrors::Note(const std::shared_ptr<File>& file, const char* what) noexcept {
  try {
    errors_.push_back({file, Status::Failed(EIO, what).At(file->path(), 0, 0)});
  } catch (const std::bad_alloc&) {
    NoteNotStored(file->path());
  }
}

bool LateErrors::Tell(h5::Library& hdf5, const File& file) {
  const auto of_file = [&](const Error& error) { return error.file.get() == &file; };
  const auto first = std::ranges::find_if(errors_, of_file);
  if (first == errors_.end()) return false;
  h5::PushError(hdf5, first->status);
  std::erase_if(errors_, of_file);
  return true;
}

void LateErrors::TellAtExit() {
  for (const Error& error : errors_) {
    std::fprintf(stderr, "tidelane: at exit: %s\n", error.status.Message().c_str());
    NoteError(error.status);
    NoteNotStored(error.file->path());
  }
  errors_.clear();
}

}  // namespace tidelane::vol
