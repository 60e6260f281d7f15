// How often a lane is asked to look at a log.
#include "log/checkpointer.h"

#include <chrono>

#include <gtest/gtest.h>

namespace tidelane::log {
namespace {

using namespace std::chrono_literals;

TEST(CheckpointerTest, ThousandCommitsAskALaneOnce) {
  Lanes lanes(0);
  unsigned looks = 0;
  const auto checkpointer = std::make_shared<Checkpointer>(&lanes, [&] {
    ++looks;
    return Checkpointer::Delay();
  });
  for (unsigned round = 1; round <= 3; ++round) {
    for (unsigned commit = 0; commit < 1000; ++commit) checkpointer->Come(1s);
    unsigned tasks = 0;
    while (lanes.RunQueued()) ++tasks;
    EXPECT_EQ(tasks, 1u);
    EXPECT_EQ(looks, round);
  }
  checkpointer->Detach();
}

TEST(CheckpointerTest, WhatIsDueComesBesideWhatIsAwaited) {
  Lanes lanes(0);
  unsigned looks = 0;
  const auto checkpointer = std::make_shared<Checkpointer>(
      &lanes, [&] { return ++looks < 5 ? Checkpointer::Delay(1s) : std::nullopt; });
  checkpointer->Come(1s);
  checkpointer->Come(0s);
  while (lanes.RunQueued()) {
  }
  EXPECT_EQ(looks, 5u);
  checkpointer->Detach();
}

}  // namespace
}  // namespace tidelane::log
