/// \file
/// What of a query is answered after its call: one scan, made by lanes, and the selection that comes of it.
///
/// Where lanes have failed HDF5 looks once more, if nothing has been changed since: it may understand what we do not, and else says why.
///
/// Invariant: it keeps no identifier of an object. Thread safety: under HDF5's lock, also to be destroyed.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "h5/owned_id.h"
#include "predicate/query.h"
#include "query/late_scan.h"
#include "query/scan.h"

namespace tidelane::query {

class LateSearch {
 public:
  /// Lanes begin, as a part of the call in progress (CallScope::AddRead). nullptr: it has to be gone through at once.
  static std::shared_ptr<LateSearch> Begin(const Scan& scan);

  /// When the call's completion is done: the columns' dataspace, as it was then, with what was found selected; kNoId: nothing. `file`: an identifier of the
  /// columns' file. `unchanged`: what it has is still what it had.
  Status Finish(h5::Library& hdf5, hid_t file, bool unchanged, hid_t& space);

 private:
  // A column, to be looked at once more.
  struct Kept {
    std::string name;
    std::string field;
    H5O_token_t dataset;
  };

  LateSearch(const Scan& scan, std::shared_ptr<LateScan> lanes)
      : layout_(scan.columns().layout()), query_(scan.query_ptr()), lanes_(std::move(lanes)) {}
  bool Keep(const Columns& columns);
  Status Select(h5::Library& hdf5, hid_t file, bool unchanged);
  Status LookAgain(h5::Library& hdf5, hid_t file);

  const Layout layout_;
  const predicate::QueryPtr query_;
  std::vector<Kept> columns_;
  std::vector<hsize_t> most_;        // the dataspace's maximal extent
  std::shared_ptr<LateScan> lanes_;  // nullptr: finished
  h5::OwnedId space_;                // when it is
  Status status_;
};

}  // namespace tidelane::query
