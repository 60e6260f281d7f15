#include "engine/agreement_backoff.h"

#include <gtest/gtest.h>

namespace tidelane {
namespace {

constexpr uint64_t kRows = 7;
constexpr uint64_t kPlanes = 8;

unsigned LeftInARow(AgreementBackoff& backoff, uint64_t kind) {
  unsigned left = 0;
  while (left < 100 && backoff.LeftAgain(kind)) ++left;
  return left;
}

TEST(AgreementBackoffTest, AsksFirst) {
  AgreementBackoff backoff;
  EXPECT_FALSE(backoff.LeftAgain(kRows));
  EXPECT_FALSE(backoff.LeftAgain(0));
}

TEST(AgreementBackoffTest, AsksLessOftenTheMoreOftenTheAnswerIsTheSame) {
  AgreementBackoff backoff;
  for (const unsigned left : {1u, 3u, 7u, 15u, 31u, 31u}) {
    backoff.Note(kRows, true);
    EXPECT_EQ(LeftInARow(backoff, kRows), left);
  }
}

TEST(AgreementBackoffTest, AsksAboutEveryWriteThatMayBeCaptured) {
  AgreementBackoff backoff;
  backoff.Note(kRows, true);
  backoff.Note(kRows, true);
  backoff.Note(kRows, false);
  EXPECT_FALSE(backoff.LeftAgain(kRows));
  backoff.Note(kRows, true);
  EXPECT_EQ(LeftInARow(backoff, kRows), 1u);
}

TEST(AgreementBackoffTest, AsksAboutAnotherKind) {
  AgreementBackoff backoff;
  backoff.Note(kRows, true);
  EXPECT_FALSE(backoff.LeftAgain(kPlanes));
  backoff.Note(kPlanes, false);
  EXPECT_FALSE(backoff.LeftAgain(kRows)) << "what was captured since is pending";
  backoff.Note(kRows, true);
  EXPECT_EQ(LeftInARow(backoff, kRows), 1u);
}

}  // namespace
}  // namespace tidelane
