/// \file
/// A query: conditions on elements, attributes and names, combined by AND, OR and NOT.
///
/// Invariant: a query never changes, so that others may have it as a part. At most kMostDepth deep, kMostNodes large (a part that occurs
/// twice counts twice), and at most kMostEncoded bytes when encoded: each query has bytes.
/// Thread safety: const, may be used from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "predicate/value.h"

namespace tidelane::predicate {

inline constexpr size_t kMostDepth = 256;
inline constexpr size_t kMostNodes = 65536;
inline constexpr size_t kMostEncoded = 16u << 20;  // bytes (encoding.h)
inline constexpr size_t kMostName = 65535;         // bytes

/// What a condition is about. The numbers are those of the encoding, for ever.
enum class Subject : uint8_t {
  kElement = 0,
  kAttributeValue = 1,
  kAttributeName = 2,
  kLinkName = 3,
};

class Query;
using QueryPtr = std::shared_ptr<const Query>;

class Query {
 public:
  enum class Kind : uint8_t { kCondition = 1, kAnd = 2, kOr = 3, kNot = 4 };

  /// `name`: of a column (kElement), or of an attribute (kAttributeValue); empty: any. `type`: what HDF5 encodes of the type in which the constants were
  /// given, for who asks the query for it; may be empty.
  /// nullptr: not as many constants as the comparison takes, strings and numbers mixed, a number for a name, a name for what has none, a
  /// number that FormOf does not know (number_form.h), too large.
  static QueryPtr Of(Subject subject, std::string name, Condition condition, std::string type = {});
  /// nullptr: it would be too deep or too large.
  static QueryPtr And(QueryPtr left, QueryPtr right);
  static QueryPtr Or(QueryPtr left, QueryPtr right);
  static QueryPtr Not(QueryPtr of);

  Kind kind() const { return kind_; }
  Subject subject() const { return subject_; }  ///< of kCondition, as the next three
  const std::string& name() const { return name_; }
  const Condition& condition() const { return condition_; }
  const std::string& type() const { return type_; }
  const QueryPtr& left() const { return left_; }    ///< of kAnd, kOr; kNot's only one
  const QueryPtr& right() const { return right_; }  ///< of kAnd, kOr
  size_t depth() const { return depth_; }
  size_t nodes() const { return nodes_; }
  size_t encoded_bytes() const { return encoded_bytes_; }  ///< what Encode gives

  /// Names of columns in conditions on elements, ascending, each once; an empty one where a condition names none.
  std::set<std::string> Columns() const;
  /// Which subjects occur: a bit (1 << number) each.
  unsigned Subjects() const;

 private:
  Query() = default;
  static QueryPtr Combine(Kind kind, QueryPtr left, QueryPtr right);

  Kind kind_ = Kind::kCondition;
  Subject subject_ = Subject::kElement;
  std::string name_;
  Condition condition_;
  std::string type_;
  QueryPtr left_;
  QueryPtr right_;
  size_t depth_ = 1;
  size_t nodes_ = 1;
  size_t encoded_bytes_ = 0;
};

}  // namespace tidelane::predicate
