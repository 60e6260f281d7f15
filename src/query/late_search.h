/// \file
/// What of a query is answered after its call: one scan, made by lanes, and the selection that comes of it.
///
/// Where lanes have failed HDF5 looks once more, if nothing has been changed since: it may understand what we do not, and else says why.
///
/// Thread safety: under HDF5's lock, also to be destroyed.
#pragma once

#include <memory>
#include <utility>

#include "base/status.h"
#include "h5/owned_id.h"
#include "query/late_scan.h"
#include "query/scan.h"

namespace tidelane::query {

class LateSearch {
 public:
  /// Lanes begin, as a part of the call in progress (CallScope::AddRead). nullptr: it has to be gone through at once, and `scan` still is the caller's.
  static std::shared_ptr<LateSearch> Begin(std::unique_ptr<Scan>& scan);

  LateSearch(std::unique_ptr<Scan> scan, std::shared_ptr<LateScan> lanes, h5::OwnedId space)
      : scan_(std::move(scan)), lanes_(std::move(lanes)), space_(std::move(space)) {}

  /// When the call's completion is done: the columns' dataspace, as it was then, with what was found selected; kNoId: nothing. `unchanged`: what the file has is
  /// still what it had.
  Status Finish(bool unchanged, hid_t& space);

 private:
  Status Select(bool unchanged);

  std::unique_ptr<Scan> scan_;
  std::shared_ptr<LateScan> lanes_;  // nullptr: finished
  h5::OwnedId space_;
  Status status_;
};

/// Goes through all of a scan at once: `space` gets its columns' dataspace with what was found selected, and stays as it is if that is nothing.
Status Search(Scan& scan, h5::OwnedId& space);

}  // namespace tidelane::query
