/// \file
/// A query on a container: which elements, objects and attributes below a place in a file it finds.
///
/// What a query finds is of the most particular kind that it speaks of: elements (a region of a dataset), else attributes, else
/// objects. A condition on names or attributes that stands beside one on elements says in which objects to look: "elements equal to 17 in datasets
/// whose link is called Pressure". Of an OR whose sides are of different kinds each side finds its own.
///
/// An element condition without a name is about every dataset with elements that its constant can be compared with; with a name about
/// the field of that name of compound elements, or the elements of a dataset that is linked by that name.
///
/// Names of several datasets of one group, of one shape, are about elements at the same place: "Energy > 1.9 and x < 3" finds places, and tells
/// the same region of each of them. Such datasets are not looked at alone then.
///
/// Invariant: the file is only read. Each object is looked at by each of its hard links, and told once for each of them; of those in groups that have
/// several, by the links that HDF5 walks through, which enters each group once.
/// Thread safety: under HDF5's lock.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "h5/library.h"
#include "predicate/query.h"

namespace tidelane::query {

class LateSearch;

/// When elements are looked at: within the call; or after it by lanes, where they can, as parts of the call in progress.
enum class When { kNow, kLater };

struct Found {
  enum class Kind { kRegion, kObject, kAttribute };
  Kind kind = Kind::kRegion;
  hid_t object = h5::kNoId;  ///< open as long as it is told of
  std::string path;          ///< from the place on; "." is the place itself
  std::string attribute;     ///< kAttribute
  hid_t space = h5::kNoId;   ///< kRegion: the dataset's, with what was found selected
  std::shared_ptr<LateSearch>
      search;  ///< kRegion with When::kLater: gives `space`, if there is anything; nullptr: it is there
};

/// Tells of everything that is found, in the order of names. The first failure, of `tell` or of its own, ends it.
Status Apply(h5::Library& hdf5, hid_t place, const predicate::QueryPtr& query, When when,
             const std::function<Status(const Found&)>& tell);

}  // namespace tidelane::query
