/// \file
/// Attributes of an object, compared with the conditions of a query.
///
/// Thread safety: under HDF5's lock.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "h5/owned_id.h"
#include "predicate/query.h"

namespace tidelane::query {

/// Names in HDF5's order; EIO.
Status NamesOfAttributes(h5::Library& hdf5, hid_t object, std::vector<std::string>& names);

/// Whether the attribute fulfils a condition on attributes' names or values. Of an array one element that does is enough. A value that
/// cannot be compared with the constant does not; what cannot be read is a failure.
Status AttributeMatches(h5::Library& hdf5, hid_t object, const std::string& name,
                        const predicate::Query& condition, bool& matches);

/// As for values of elements; a name is a string.
bool NameMatches(const std::string& name, const predicate::Condition& condition);

}  // namespace tidelane::query
