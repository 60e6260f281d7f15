/// \file
/// The name under which existing programs include what is now in tidelane.h.
///
/// Thread safety: as tidelane.h.
#ifndef TIDELANE_H5_ASYNC_LIB_H
#define TIDELANE_H5_ASYNC_LIB_H

#include "tidelane.h"

#endif
