/// \file
/// What an element of a dataset, or a field of it, is to be in memory so that it can be compared (predicate/element_type.h).
///
/// Whatever the file has in a form that we compare as it is stays as it is: of the whole element HDF5 then only copies bytes. Everything
/// else HDF5 converts to the machine's own type.
///
/// Thread safety: under HDF5's lock, as all that calls it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "h5/owned_id.h"
#include "predicate/element_type.h"

namespace tidelane::query {

/// How a column's elements come out of what is read.
struct Element {
  predicate::ElementType type;
  h5::OwnedId memory_type;    ///< to be read: the whole record, or this field alone
  uint64_t record = 0;        ///< bytes of `memory_type`
  uint64_t offset = 0;        ///< of the field in the record
  bool whole_record = false;  ///< others of this dataset may share what is read
  std::string name;           ///< of its type, in words
};

/// "a.b" in its parts; a dot that belongs to a name has a backslash before it.
std::vector<std::string> FieldPath(std::string_view field);

/// Of a type as a dataset has it. EINVAL: there is no such field, or its elements cannot be compared.
Status FindElement(h5::Library& hdf5, hid_t type, std::string_view field, Element& found);

}  // namespace tidelane::query
