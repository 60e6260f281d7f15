/// \file
/// The operation that asks a query of a container (h5/protocol.h), for rooms that do not know who answers it: query/ registers itself,
/// vol/ passes it on.
///
/// Invariant: registered once, by the plugin's entry points, before they hand out a class; until then it fails.
/// Thread safety: RegisterQuery from any thread; Query inside callbacks, under HDF5's lock.
#pragma once

#include "h5/library.h"
#include "h5/protocol.h"

namespace tidelane::h5 {

using QueryFunction = herr_t (*)(Library& hdf5, const tl_query_args& args);

void RegisterQuery(QueryFunction query);
/// A failure is on the error stack.
herr_t Query(Library& hdf5, const tl_query_args& args);

}  // namespace tidelane::h5
