/// \file
/// A query on elements, made ready for the columns of a scan: which elements of a box match.
///
/// Columns that can no longer change the outcome are not read: none of the right side of an AND whose left side matches nowhere in the box.
///
/// Thread safety: a value; const functions may be called from any thread at once, each with a source and scratch of its own. Make under HDF5's lock, as
/// Columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "base/status.h"
#include "chunk/chunk_grid.h"
#include "predicate/bits.h"
#include "predicate/matcher.h"
#include "predicate/query.h"
#include "query/element_source.h"

namespace tidelane::query {

class Columns;

class Filter {
 public:
  /// What one thread needs, for one box after another.
  struct Scratch {
    std::deque<predicate::Bits> right;  ///< of the tree's right sides, by depth
    predicate::Bits counted;
  };

  /// EINVAL: no such column, a constant that does not fit it, a condition on something else than elements.
  Status Make(const predicate::Query& query, const Columns& columns,
              predicate::Constants constants);

  /// `elements`: of the box. `bits` gets as many.
  Status Run(ElementSource& columns, const Box& box, uint64_t elements, predicate::Bits& bits,
             Scratch& scratch) const;
  /// How many match, without saying which.
  Status Count(ElementSource& columns, const Box& box, uint64_t elements, uint64_t& count,
               Scratch& scratch) const;

  /// Which columns it asks for.
  std::vector<bool> Used(size_t columns) const;

 private:
  struct Node {
    predicate::Query::Kind kind = predicate::Query::Kind::kCondition;
    size_t column = 0;
    std::optional<predicate::Matcher> matcher;
    std::shared_ptr<const Node> left;
    std::shared_ptr<const Node> right;
  };

  static Status MakeNode(const predicate::Query& query, const Columns& columns,
                         predicate::Constants constants, Node& node);
  static Status RunNode(const Node& node, ElementSource& columns, const Box& box, uint64_t elements,
                        predicate::Bits& bits, Scratch& scratch, size_t depth);
  static void Mark(const Node& node, std::vector<bool>& used);

  Node root_;
};

}  // namespace tidelane::query
