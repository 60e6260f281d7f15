/// \file
/// Elements as text: numbers so that they read back as the same, strings without their padding.
///
/// Thread safety: plain functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "predicate/element_type.h"
#include "tools/query_hdf5.h"

namespace tidelane::tools {

struct CellType {
  predicate::ElementType element;
  bool truth = false;  ///< an enumeration of FALSE and TRUE
};

/// Of an element that has `size` bytes in memory (query/exports.h).
CellType CellTypeOf(const Hdf5& hdf5, hid_t type, size_t size);

/// A number as text.
void AppendNumber(std::string& out, const CellType& type, const std::byte* element);
/// A fixed string's own characters.
std::string_view TextOf(const CellType& type, const std::byte* element);

/// As RFC 4180 has fields: quoted where it must be.
void AppendField(std::string& out, std::string_view text);
/// For a table: one line, at most `most` characters, control characters and what is no UTF-8 as \xhh.
std::string Shown(std::string_view text, size_t most);
bool IsUtf8(std::string_view text);
/// Columns that a text takes on a terminal, about: characters of UTF-8.
size_t Characters(std::string_view text);

}  // namespace tidelane::tools
