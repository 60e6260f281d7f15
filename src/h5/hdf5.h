/// \file
/// The one place that includes HDF5's headers, or what stands in for them (h5/declarations.h).
///
/// We are not linked to libhdf5: every function is resolved at run time (h5/library.h). HDF5's
/// macros hide two things that such a plugin must not have: calls (H5F_ACC_* checks the version and
/// opens the library) and data symbols (H5P_FILE_ACCESS is a variable, and a program that
/// copy-relocates it may show us -1 for ever).
///
/// Invariant: after this header H5F_ACC_* are plain constants, and a macro that names a data symbol
/// does not link. Thread safety: declarations only.
#pragma once

#ifdef TIDELANE_OWN_DECLARATIONS
#include "h5/declarations.h"
#else
#include <H5FDdevelop.h>
#include <H5PLextern.h>
#include <H5VLconnector.h>
#include <H5VLconnector_passthru.h>
#include <H5VLnative.h>
#include <hdf5.h>
#endif

#undef H5CHECK
#define H5CHECK
#undef H5OPEN
#define H5OPEN
