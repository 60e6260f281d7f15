/// \file
/// A query as bytes: what H5Qencode gives, and what the library for programs hands to the plugin.
///
/// Version 1, little endian, no padding:
///
///     "H5Q1"  u32 number of nodes, then the nodes in prefix order:
///     u8 kind: 1 condition, 2 and, 3 or, 4 not        after 2 and 3 come two nodes, after 4 one
///     a condition goes on:
///       u8 subject  u8 comparison                     (query.h, value.h)
///       u16 length, bytes: name
///       u8 number of constants, each: u8 tag, and
///           1 int64 | 2 uint64 | 3 double | 4 two doubles, whose sum it is | 5 u32 length, bytes: string
///       u32 length, bytes: H5Tencode of the constants' type, or nothing
///
/// A number has the first tag that holds it (number_form.h), and NaN is 0x7ff8000000000000, so that equal queries have equal bytes.
///
/// Invariant: a version is read for ever; what was encoded decodes to the same query. Thread safety: any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "predicate/query.h"

namespace tidelane::predicate {

std::string Encode(const Query& query);
/// nullptr, with the reason in `why`: bytes that Encode did not make. Any bytes may be given.
QueryPtr Decode(std::span<const std::byte> bytes, std::string& why);

}  // namespace tidelane::predicate
