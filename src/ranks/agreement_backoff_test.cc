#include "ranks/agreement_backoff.h"

#include <gtest/gtest.h>

namespace tidelane {
namespace {

unsigned LeftInARow(AgreementBackoff& backoff) {
  unsigned left = 0;
  while (left < 100 && backoff.LeftAgain()) ++left;
  return left;
}

// One less than what it takes.
void Almost(AgreementBackoff& backoff) {
  for (unsigned i = 1; i < AgreementBackoff::kInTurn; ++i) {
    backoff.Note(true);
    EXPECT_FALSE(backoff.LeftAgain());
  }
}

TEST(AgreementBackoffTest, AsksFirst) {
  AgreementBackoff backoff;
  EXPECT_FALSE(backoff.LeftAgain());
  Almost(backoff);
}

TEST(AgreementBackoffTest, AsksLessOftenTheMoreOftenTheAnswerIsTheSame) {
  AgreementBackoff backoff;
  Almost(backoff);
  for (const unsigned left : {1u, 3u, 7u, 15u}) {
    backoff.Note(true);
    EXPECT_EQ(LeftInARow(backoff), left);
  }
  for (int i = 0; i < 100; ++i) {
    backoff.Note(true);
    const unsigned left = LeftInARow(backoff);
    EXPECT_GT(left, AgreementBackoff::kMost / 2);
    EXPECT_LE(left, AgreementBackoff::kMost);
  }
}

TEST(AgreementBackoffTest, AWriteThatIsCapturedEndsIt) {
  AgreementBackoff backoff;
  Almost(backoff);
  backoff.Note(true);
  backoff.Note(true);
  backoff.Note(false);
  EXPECT_FALSE(backoff.LeftAgain());
  Almost(backoff);
  for (unsigned i = 0; i < AgreementBackoff::kInTurn; ++i) {
    backoff.Note(true);
    EXPECT_FALSE(backoff.LeftAgain()) << "it had begun too early";
  }
  backoff.Note(true);
  EXPECT_EQ(LeftInARow(backoff), 1u);
}

// One large write among so many small ones is asked about again and again, whatever their number.
TEST(AgreementBackoffTest, NoPatternHidesWhatMayBeCaptured) {
  for (unsigned period = 2; period < 40; ++period) {
    AgreementBackoff backoff;
    unsigned captured = 0;
    for (unsigned write = 0; write < 1000 * period; ++write) {
      const bool small = write % period != 0;
      if (backoff.LeftAgain()) continue;
      backoff.Note(small);
      captured += small ? 0 : 1;
    }
    EXPECT_GT(captured, 700u) << "one of " << period;
  }
}

}  // namespace
}  // namespace tidelane
