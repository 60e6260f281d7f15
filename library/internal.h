/// \file
/// What the sources of the library share. Not installed.
///
/// Thread safety: as tidelane.h.
#ifndef TIDELANE_INTERNAL_H
#define TIDELANE_INTERNAL_H

#include <stdint.h>

#include <H5VLconnector.h>
#include <hdf5.h>

#define TL_HIDDEN __attribute__((visibility("hidden")))

/* Puts an error on HDF5's stack, from which what earlier calls left is taken, and shows it: as HDF5 would. Returns -1. */
TL_HIDDEN herr_t tl_fail(const char* function, const char* text);

/* Whether a connector of ours is in charge of the object, and the operation's number there. */
TL_HIDDEN int tl_find_operation(hid_t id, H5VL_subclass_t subclass, const char* name, int* number);

#endif
