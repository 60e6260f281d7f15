/// \file
/// The operation that asks a query of a container (h5/protocol.h), for rooms that do not know who answers it: query/ registers itself,
/// vol/ passes it on.
///
/// Invariant: registered once, by the plugin's entry points, before they hand out a class; until then it fails.
/// Thread safety: RegisterQuery from any thread; Query, and a PendingQuery until it is destroyed, inside callbacks, under HDF5's lock.
#pragma once

#include <memory>

#include "base/status.h"
#include "h5/library.h"
#include "h5/protocol.h"

namespace tidelane::h5 {

/// What is left of a query when its call returns.
class PendingQuery {
 public:
  virtual ~PendingQuery() = default;
  /// When all that lanes do for it is done: tells the asker of everything. `file`: an identifier of the file that was asked. `unchanged`: the program has
  /// changed nothing since.
  virtual Status Finish(hid_t file, bool unchanged) = 0;
};

/// Answers it at once; or, if `pending` is given, later: what lanes do for it are parts of the call in progress (CallScope::AddRead).
using QueryFunction = Status (*)(Library& hdf5, const tl_query_args& args,
                                 std::unique_ptr<PendingQuery>* pending);

void RegisterQuery(QueryFunction query);
Status Query(Library& hdf5, const tl_query_args& args, std::unique_ptr<PendingQuery>* pending);

}  // namespace tidelane::h5
