/// \file
/// The answer to a query that was asked with an event set: what was found within the call, and what lanes are still looking for, in order.
///
/// Invariant: it keeps no identifier of an object: what was found is told by its name. (It need not be opened for that, which would fail where the program has
/// it open with another prefix of external files.) What has none is opened again by its token. Thread safety: under HDF5's lock, also to be destroyed.
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

/// Tells the asker what `path` leads to from `found.object`; fails where he does not want to go on.
Status TellAsker(h5::Library& hdf5, const tl_query_args& args, const Found& found,
                 const std::string& path);

class LateAnswer final : public h5::PendingQuery {
 public:
  LateAnswer(h5::Library& hdf5, const tl_query_args& args) : hdf5_(hdf5), args_(args) {}

  /// As Apply's `tell`.
  Status Note(const Found& found);
  Status Finish(hid_t file, bool unchanged) override;

 private:
  struct Entry {
    Found found;
    std::string name;  // in its file; "": it has none
    H5O_token_t object;
    h5::OwnedId space;  // of what was found at once
  };

  Status Tell(hid_t file, bool unchanged, Entry& entry);

  h5::Library& hdf5_;
  const tl_query_args args_;
  std::vector<Entry> entries_;
};

}  // namespace tidelane::query
