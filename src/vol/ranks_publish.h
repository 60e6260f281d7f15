/// \file
/// Which file the ranks of an MPI program open by a name: with publish=atomic one that they create is hidden until it is published
/// (h5/parallel_publication.h).
///
/// Cost: nothing is asked of other ranks unless a file is created whose settings say atomic.
/// Thread safety: used inside callbacks, under HDF5's lock.
#pragma once

#include <memory>
#include <string>

#include "base/config.h"
#include "h5/parallel_publication.h"
#include "vol/library_state.h"

namespace tidelane::vol {

/// What is done with a file.
struct Opening {
  bool writable;
  bool creates = false;
  bool only_new = false;  ///< fails where there is one
};

struct NameForRanks {
  const char* name;                              ///< as the program gives it
  std::unique_ptr<h5::ParallelOpening> opening;  ///< nullptr: the file is opened as natively

  const char* path() const {
    return opening == nullptr ? name : opening->publication->path().c_str();
  }
};

/// Before a file is opened with MPI's driver; collective where one is created. False, with the failure on the error stack: it is not
/// opened, by no rank.
bool FindNameForRanks(LibraryState& library, hid_t fapl, const FileSettings& settings,
                      const Opening& how, NameForRanks& found);

/// The path of the hidden file that is not published yet under that name; empty: there is none.
std::string HiddenPathOf(const char* name);
/// It has been deleted by that path.
void NoteHiddenDeleted(const char* name);

/// Where a file is open under another path than the program gave, HDF5's answer to what it is called becomes that name.
void CorrectName(LibraryState& library, void* object, H5VL_file_get_args_t& args);

}  // namespace tidelane::vol
