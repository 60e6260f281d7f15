/// \file
/// Queries as trees: what is refused, limits, and what they say of themselves.
#include "predicate/query.h"

#include <limits>

#include <gtest/gtest.h>

namespace tidelane::predicate {
namespace {

QueryPtr Number(const char* name, long double value) {
  return Query::Of(Subject::kElement, name, {Comparison::kLess, {Value(value)}});
}

TEST(QueryTest, SaysWhatItIsMadeOf) {
  const QueryPtr left = Number("y", 1);
  const QueryPtr right = Query::Of(Subject::kAttributeName, "", {Comparison::kEqual, {"unit"}});
  const QueryPtr query = Query::Not(Query::And(left, Query::Or(right, Number("a", 2))));
  ASSERT_NE(query, nullptr);
  EXPECT_EQ(query->kind(), Query::Kind::kNot);
  EXPECT_EQ(query->right(), nullptr);
  EXPECT_EQ(query->left()->left(), left);
  EXPECT_EQ(query->depth(), 4u);
  EXPECT_EQ(query->nodes(), 6u);
  EXPECT_EQ(query->Columns(), (std::set<std::string>{"a", "y"}));
  EXPECT_EQ(query->Subjects(), 1u << 0 | 1u << 2);
  EXPECT_EQ(Number("", 1)->Columns(), std::set<std::string>{""});
}

TEST(QueryTest, RefusesConditionsThatMeanNothing) {
  using Values = std::vector<Value>;
  const auto of = [](Subject subject, const char* name, Comparison comparison, Values values) {
    return Query::Of(subject, name, {comparison, std::move(values)});
  };
  EXPECT_EQ(of(Subject::kElement, "x", Comparison::kEqual, {}), nullptr);
  EXPECT_EQ(of(Subject::kElement, "x", Comparison::kEqual, {1.0L, 2.0L}), nullptr);
  EXPECT_EQ(of(Subject::kElement, "x", Comparison::kBetween, {1.0L}), nullptr);
  EXPECT_EQ(of(Subject::kElement, "x", Comparison::kBetween, {1.0L, "b"}), nullptr);
  EXPECT_EQ(of(Subject::kAttributeName, "", Comparison::kEqual, {1.0L}), nullptr);
  EXPECT_EQ(of(Subject::kLinkName, "x", Comparison::kEqual, {"x"}), nullptr);
  EXPECT_NE(of(Subject::kLinkName, "", Comparison::kEqual, {"x"}), nullptr);
  EXPECT_NE(of(Subject::kAttributeValue, "x", Comparison::kBetween, {"a", "b"}), nullptr);
  EXPECT_EQ(of(Subject::kElement, "x", Comparison::kEqual,
               {std::numeric_limits<long double>::denorm_min()}),
            nullptr)
      << "no doubles hold it";
}

TEST(QueryTest, IsAsDeepAsTheLimitAndNoDeeper) {
  QueryPtr query = Number("x", 1);
  for (size_t i = 1; i < kMostDepth; ++i) {
    query = Query::Not(query);
    ASSERT_NE(query, nullptr) << i;
  }
  EXPECT_EQ(query->depth(), kMostDepth);
  EXPECT_EQ(Query::Not(query), nullptr);
  EXPECT_EQ(Query::And(Number("x", 1), query), nullptr);
  EXPECT_EQ(Query::Or(query, Number("x", 1)), nullptr);
}

TEST(QueryTest, CountsASharedPartAsOftenAsItOccurs) {
  QueryPtr query = Number("x", 1);
  size_t nodes = 1;
  while (2 * nodes + 1 <= kMostNodes) {
    query = Query::And(query, query);
    ASSERT_NE(query, nullptr);
    nodes = 2 * nodes + 1;
    EXPECT_EQ(query->nodes(), nodes);
  }
  EXPECT_EQ(Query::And(query, query), nullptr) << "2^17 - 1 nodes";
  EXPECT_NE(Query::Not(query), nullptr);
}

TEST(QueryTest, IsNoLargerThanItsEncodingMayBe) {
  const std::string name(kMostName, 'n');
  const Condition condition{Comparison::kEqual, {Value(std::string(1u << 20, 's'))}};
  QueryPtr query = Query::Of(Subject::kElement, name, condition);
  ASSERT_NE(query, nullptr);
  EXPECT_EQ(Query::Of(Subject::kElement, name + "n", condition), nullptr);
  EXPECT_EQ(Query::Of(Subject::kElement, "",
                      {Comparison::kEqual, {Value(std::string(kMostEncoded, 's'))}}),
            nullptr);
  for (int i = 0; i < 3; ++i) query = Query::Or(query, query);
  ASSERT_NE(query, nullptr);
  EXPECT_GT(query->encoded_bytes(), size_t{8} << 20);
  EXPECT_EQ(Query::Or(query, query), nullptr);
}

TEST(QueryTest, NothingCannotBeAPart) {
  EXPECT_EQ(Query::Not(nullptr), nullptr);
  EXPECT_EQ(Query::And(nullptr, Number("x", 1)), nullptr);
  EXPECT_EQ(Query::Or(Number("x", 1), nullptr), nullptr);
}

}  // namespace
}  // namespace tidelane::predicate
