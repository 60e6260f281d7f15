/// \file
/// Ranks of a launcher's variables against the processors that the test may use.
#include "base/processors.h"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

namespace tidelane {
namespace {

TEST(ProcessorsTest, MoreRanksThanProcessors) {
  const unsigned processors = ProcessorsForRanks();
  ASSERT_GE(processors, 1u);
  unsetenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  setenv("MPI_LOCALNRANKS", std::to_string(processors).c_str(), 1);
  EXPECT_FALSE(HasMoreRanksThanProcessors());
  setenv("MPI_LOCALNRANKS", std::to_string(processors + 1).c_str(), 1);
  EXPECT_TRUE(HasMoreRanksThanProcessors());
  unsetenv("MPI_LOCALNRANKS");
  EXPECT_FALSE(HasMoreRanksThanProcessors());
}

TEST(ProcessorsTest, LanesOfANodesRanksShareThem) {
  unsetenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  unsetenv("MPI_LOCALNRANKS");
  const unsigned alone = ProcessorsForLanes();
  EXPECT_GE(alone, 1u);
  EXPECT_LE(alone, ProcessorsForRanks());
  setenv("MPI_LOCALNRANKS", "2", 1);
  EXPECT_EQ(ProcessorsForLanes(), std::max(alone / 2, 1u));
  setenv("MPI_LOCALNRANKS", "100000", 1);
  EXPECT_EQ(ProcessorsForLanes(), 1u);
  unsetenv("MPI_LOCALNRANKS");
}

TEST(ProcessorsTest, ARankThatIsBoundToOneKnowsNothingOfTheOthers) {
  const unsigned before = ProcessorsForRanks();
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int i = 0; CPU_COUNT(&one) == 0; ++i) {
    if (CPU_ISSET(i, &all)) CPU_SET(i, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_GE(ProcessorsForRanks(), before);
  EXPECT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
}

}  // namespace
}  // namespace tidelane
