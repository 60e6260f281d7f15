/// \file
/// Our failures on HDF5's error stack.
///
/// Invariant: whoever reads the stack (a person, h5py) finds the cause at the bottom: ours is
/// pushed before HDF5 adds what it was doing, and none of our later calls wipes it. Thread safety:
/// used inside callbacks, under HDF5's lock; the stack is the calling thread's.
#pragma once

#include <source_location>
#include <string>

#include "base/status.h"
#include "h5/error_stack.h"
#include "h5/library.h"

namespace tidelane::h5 {

/// Pushes a failure onto the current stack. The text carries "errno = N, error message = '…'" as
/// HDF5's own drivers do: h5py, for one, chooses its exception by it.
void PushError(Library& library, const Status& status,
               std::source_location where = std::source_location::current());
/// A failure that a driver of HDF5 would have had, too, as that one tells it: in the class of HDF5's own errors, with its
/// messages of these names (without H5E_), and in its words. Programs look for them, and show them.
void PushNativeError(Library& library, const std::string& text, const char* major,
                     const char* minor,
                     std::source_location where = std::source_location::current());
/// Pushes a failure that no errno describes: a wrong setting, a connector that we cannot stack on.
void PushError(Library& library, const char* message,
               std::source_location where = std::source_location::current());

/// A new stack id that holds just this failure; the caller owns it. kNoId on failure.
hid_t MakeErrorStack(Library& library, const Status& status,
                     std::source_location where = std::source_location::current());

}  // namespace tidelane::h5
