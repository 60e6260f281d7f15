#include "predicate/query.h"

#include <algorithm>
#include <utility>

#include "predicate/number_form.h"

namespace tidelane::predicate {
namespace {

constexpr size_t kHead = 8;  // of encoded bytes: "H5Q1" and the number of nodes

// Of a constant in the encoding; 0: it has none.
size_t EncodedBytes(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return 1 + 4 + text->size();
  switch (FormOf(std::get<Number>(value))) {
    case NumberForm::kNone: return 0;
    case NumberForm::kTwoDoubles: return 1 + 16;
    default: return 1 + 8;
  }
}

bool IsName(Subject subject) {
  return subject == Subject::kAttributeName || subject == Subject::kLinkName;
}

bool Fits(Subject subject, const std::string& name, const Condition& condition) {
  const size_t needed = condition.comparison == Comparison::kBetween ? 2 : 1;
  if (condition.values.size() != needed || name.size() > kMostName) return false;
  const auto is_text = [](const Value& value) {
    return std::holds_alternative<std::string>(value);
  };
  const bool texts = is_text(condition.values.front());
  if (is_text(condition.values.back()) != texts) return false;
  return !IsName(subject) || (texts && name.empty());
}

}  // namespace

QueryPtr Query::Of(Subject subject, std::string name, Condition condition, std::string type) {
  if (!Fits(subject, name, condition)) return nullptr;
  size_t bytes = kHead + 3 + 2 + 1 + 4;  // kind, subject, comparison; lengths; number of constants
  for (const Value& value : condition.values) {
    const size_t constant = EncodedBytes(value);
    if (constant == 0) return nullptr;
    bytes += constant;
  }
  bytes += name.size() + type.size();
  if (bytes > kMostEncoded) return nullptr;
  std::shared_ptr<Query> query(new Query);
  query->subject_ = subject;
  query->name_ = std::move(name);
  query->condition_ = std::move(condition);
  query->type_ = std::move(type);
  query->encoded_bytes_ = bytes;
  return query;
}

QueryPtr Query::Combine(Kind kind, QueryPtr left, QueryPtr right) {
  if (left == nullptr || (right == nullptr && kind != Kind::kNot)) return nullptr;
  size_t depth = left->depth_;
  size_t nodes = 1 + left->nodes_;
  size_t bytes = 1 + left->encoded_bytes_;
  if (right != nullptr) {
    depth = std::max(depth, right->depth_);
    nodes += right->nodes_;
    bytes += right->encoded_bytes_ - kHead;
  }
  if (depth >= kMostDepth || nodes > kMostNodes || bytes > kMostEncoded) return nullptr;
  std::shared_ptr<Query> query(new Query);
  query->kind_ = kind;
  query->left_ = std::move(left);
  query->right_ = std::move(right);
  query->depth_ = depth + 1;
  query->nodes_ = nodes;
  query->encoded_bytes_ = bytes;
  return query;
}

QueryPtr Query::And(QueryPtr left, QueryPtr right) {
  return Combine(Kind::kAnd, std::move(left), std::move(right));
}

QueryPtr Query::Or(QueryPtr left, QueryPtr right) {
  return Combine(Kind::kOr, std::move(left), std::move(right));
}

QueryPtr Query::Not(QueryPtr of) { return Combine(Kind::kNot, std::move(of), nullptr); }

// Recursion is at most kMostDepth deep, here as when the last owner lets a query go.
std::set<std::string> Query::Columns() const {
  std::set<std::string> names;
  if (kind_ == Kind::kCondition) {
    if (subject_ == Subject::kElement) names.insert(name_);
    return names;
  }
  names = left_->Columns();
  if (right_ != nullptr) names.merge(right_->Columns());
  return names;
}

unsigned Query::Subjects() const {
  if (kind_ == Kind::kCondition) return 1u << static_cast<unsigned>(subject_);
  return left_->Subjects() | (right_ != nullptr ? right_->Subjects() : 0);
}

}  // namespace tidelane::predicate
