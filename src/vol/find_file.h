/// \file
/// Which of our files a VOL object is in, and what such a file has to say before it is changed.
///
/// VOL objects are the native connector's, which know their file by HDF5's serial number; our driver
/// knows the file that has it. (The native connector would also give an object's file itself, but
/// then takes it for one with an open id, and never closes it.)
///
/// Invariant: the error stack stays as it is, but for what MayChange pushes.
/// Cost: MayChange is one relaxed load while nothing has failed; FileOf some tenths of a microsecond, and
/// a look at the object's header where HDF5 does not let us ask otherwise (h5::Library::FileSerial).
///
/// Thread safety: used inside callbacks, under HDF5's lock.
#pragma once

#include <memory>

#include "file/file.h"
#include "vol/library_state.h"

namespace tidelane::vol {

/// The file of ours that `object`, of HDF5's kind `type`, is in; nullptr: in none.
std::shared_ptr<File> FileOf(LibraryState& library, void* object, H5I_type_t type);

/// The serial number of the file that an object, or a file, is in.
bool SerialOf(LibraryState& library, void* object, H5I_type_t type, unsigned long& serial);

/// Tries a failed background write to this object's file again; false, with the failure on the error
/// stack, if it fails again.
bool RetryAndReport(LibraryState& library, void* object, H5I_type_t type);

/// Whether a call without a request may go on to change the file that `object` is in: not when a
/// background write to it failed and no blocking call has said so yet.
inline bool MayChange(LibraryState& library, void* object, H5I_type_t type) {
  return !FailureState::AnyUnreported() || RetryAndReport(library, object, type);
}

}  // namespace tidelane::vol
