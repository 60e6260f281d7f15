/// \file
/// Typing mistakes and what was meant.
#include "base/nearest.h"

#include <array>

#include <gtest/gtest.h>

namespace tidelane {
namespace {

constexpr std::array<std::string_view, 4> kWords = {"wait", "deferred", "on", "off"};

TEST(NearestTest, DistanceCountsLettersButNotTheirCase) {
  EXPECT_EQ(EditDistance("", ""), 0u);
  EXPECT_EQ(EditDistance("", "wait"), 4u);
  EXPECT_EQ(EditDistance("wait", ""), 4u);
  EXPECT_EQ(EditDistance("WAIT", "wait"), 0u);
  EXPECT_EQ(EditDistance("defered", "deferred"), 1u);
  EXPECT_EQ(EditDistance("wiat", "wait"), 2u);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3u);
}

TEST(NearestTest, TheNearestIsFoundHoweverFar) {
  EXPECT_EQ(Nearest("defered", kWords), "deferred");
  EXPECT_EQ(Nearest("of", kWords), "on") << "the first of two that are as near";
  EXPECT_EQ(Nearest("something else", kWords), "deferred");
  EXPECT_EQ(Nearest("x", {}), "");
}

TEST(NearestTest, OnlyWhatIsNearWasMeant) {
  EXPECT_EQ(Meant("DEFERED", kWords), "deferred");
  EXPECT_EQ(Meant("wiat", kWords), "wait");
  EXPECT_EQ(Meant("later", kWords), "");
  EXPECT_EQ(Meant("", kWords), "");
  EXPECT_EQ(Meant("x", {}), "");
}

}  // namespace
}  // namespace tidelane
