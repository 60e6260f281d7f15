#include "query/filter.h"

#include <cerrno>
#include <string>
#include <utility>

#include "extent/test_hooks.h"
#include "query/columns.h"

namespace tidelane::query {

using predicate::Bits;
using predicate::Comparison;
using predicate::Condition;
using predicate::Matcher;
using predicate::Query;

namespace {

Condition ConditionOf(const Query& query) {
  Condition condition = query.condition();
  if (condition.comparison == Comparison::kLess && MutationEnabled("query_strict"))
    condition.comparison = Comparison::kLessEqual;
  return condition;
}

}  // namespace

Status Filter::Make(const Query& query, const Columns& columns, predicate::Constants constants) {
  return MakeNode(query, columns, constants, root_);
}

Status Filter::MakeNode(const Query& query, const Columns& columns, predicate::Constants constants,
                        Node& node) {
  node.kind = query.kind();
  if (node.kind == Query::Kind::kCondition) {
    if (query.subject() != predicate::Subject::kElement)
      return Status::Failed(EINVAL, "scan elements for what is said of attributes or links");
    node.column = columns.Find(query.name());
    if (node.column == columns.count())
      return Status::Failed(EINVAL, "find a column '" + query.name() + "'");
    std::string why;
    node.matcher = Matcher::Make(ConditionOf(query), columns.at(node.column).type, constants, why);
    if (!node.matcher.has_value())
      return Status::Failed(EINVAL, "compare column '" + query.name() + "': " + why);
    return {};
  }
  Node left;
  if (Status status = MakeNode(*query.left(), columns, constants, left); !status.ok())
    return status;
  node.left = std::make_shared<const Node>(std::move(left));
  if (node.kind == Query::Kind::kNot) return {};
  Node right;
  if (Status status = MakeNode(*query.right(), columns, constants, right); !status.ok())
    return status;
  node.right = std::make_shared<const Node>(std::move(right));
  return {};
}

Status Filter::Run(ElementSource& columns, const Box& box, uint64_t elements, Bits& bits,
                   Scratch& scratch) const {
  return RunNode(root_, columns, box, elements, bits, scratch, 0);
}

Status Filter::Count(ElementSource& columns, const Box& box, uint64_t elements, uint64_t& count,
                     Scratch& scratch) const {
  if (root_.kind == Query::Kind::kCondition && !root_.matcher->never() &&
      !root_.matcher->always()) {
    const std::byte* data = nullptr;
    Status status = columns.Load(root_.column, box, data);
    if (status.ok()) count = root_.matcher->Count(data, elements);
    return status;
  }
  Status status = Run(columns, box, elements, scratch.counted, scratch);
  if (status.ok()) count = scratch.counted.Count();
  return status;
}

Status Filter::RunNode(const Node& node, ElementSource& columns, const Box& box, uint64_t elements,
                       Bits& bits, Scratch& scratch, size_t depth) {
  if (node.kind == Query::Kind::kCondition) {
    if (node.matcher->never() || node.matcher->always()) {
      bits.Reset(elements);
      if (node.matcher->always()) bits.SetAll();
      return {};
    }
    const std::byte* data = nullptr;
    Status status = columns.Load(node.column, box, data);
    if (status.ok()) node.matcher->Run(data, elements, bits);
    return status;
  }
  if (Status status = RunNode(*node.left, columns, box, elements, bits, scratch, depth + 1);
      !status.ok())
    return status;
  if (node.kind == Query::Kind::kNot) {
    bits.Flip();
    return {};
  }
  const bool decided = node.kind == Query::Kind::kAnd ? bits.None() : bits.Count() == bits.size();
  if (decided) return {};
  while (scratch.right.size() <= depth) scratch.right.emplace_back();
  Bits& other = scratch.right[depth];
  if (Status status = RunNode(*node.right, columns, box, elements, other, scratch, depth + 1);
      !status.ok())
    return status;
  node.kind == Query::Kind::kAnd ? bits.And(other) : bits.Or(other);
  return {};
}

std::vector<bool> Filter::Used(size_t columns) const {
  std::vector<bool> used(columns);
  Mark(root_, used);
  return used;
}

void Filter::Mark(const Node& node, std::vector<bool>& used) {
  if (node.kind == Query::Kind::kCondition) used[node.column] = true;
  if (node.left != nullptr) Mark(*node.left, used);
  if (node.right != nullptr) Mark(*node.right, used);
}

}  // namespace tidelane::query
