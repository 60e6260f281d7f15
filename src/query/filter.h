/// \file
/// A query on elements, made ready for the columns of a scan: which elements of a box match.
///
/// Columns that can no longer change the outcome are not read: none of the right side of an AND whose left side matches nowhere in the box.
///
/// Thread safety: under HDF5's lock, as Columns.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/status.h"
#include "predicate/bits.h"
#include "predicate/matcher.h"
#include "predicate/query.h"
#include "query/columns.h"

namespace tidelane::query {

class Filter {
 public:
  /// EINVAL: no such column, a constant that does not fit it, a condition on something else than elements.
  Status Make(const predicate::Query& query, const Columns& columns,
              predicate::Constants constants);

  /// `elements`: of the box. `bits` gets as many.
  Status Run(Columns& columns, const Box& box, uint64_t elements, predicate::Bits& bits);
  /// How many match, without saying which.
  Status Count(Columns& columns, const Box& box, uint64_t elements, uint64_t& count);

  /// Which columns it asks for.
  std::vector<bool> Used(size_t columns) const;

 private:
  struct Node {
    predicate::Query::Kind kind = predicate::Query::Kind::kCondition;
    size_t column = 0;
    std::optional<predicate::Matcher> matcher;
    std::unique_ptr<Node> left;
    std::unique_ptr<Node> right;
    predicate::Bits bits;  // of its right side
  };

  static Status MakeNode(const predicate::Query& query, const Columns& columns,
                         predicate::Constants constants, Node& node);
  static Status RunNode(Node& node, Columns& columns, const Box& box, uint64_t elements,
                        predicate::Bits& bits);
  static void Mark(const Node& node, std::vector<bool>& used);

  Node root_;
  predicate::Bits counted_;
};

}  // namespace tidelane::query
