/// \file
/// The answer to a query that was asked with an event set: what was found within the call, and what lanes are still looking for, in order.
///
/// Invariant: it holds its objects open by references of its own, none of the program's. Thread safety: under HDF5's lock, also to be destroyed.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "h5/owned_id.h"
#include "h5/query_operation.h"
#include "query/apply.h"

namespace tidelane::query {

/// Tells the asker; fails where he does not want to go on.
Status TellAsker(h5::Library& hdf5, const tl_query_args& args, const Found& found);

class LateAnswer final : public h5::PendingQuery {
 public:
  LateAnswer(h5::Library& hdf5, const tl_query_args& args) : hdf5_(hdf5), args_(args) {}

  /// As Apply's `tell`.
  Status Note(const Found& found);
  Status Finish(bool unchanged) override;

 private:
  struct Entry {
    Found found;
    h5::OwnedId object;
    h5::OwnedId space;  // of what was found at once
  };

  h5::Library& hdf5_;
  const tl_query_args args_;
  std::vector<Entry> entries_;
};

}  // namespace tidelane::query
