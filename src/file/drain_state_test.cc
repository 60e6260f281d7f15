/// \file
/// The drain's steps: by hand, and as the trace shows them of a file.
#include "file/drain_state.h"

#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "file/file_fixture.h"

namespace tidelane {
namespace {

using Order = PendingMap::Order;

class DrainStateTest : public ::testing::Test {
 public:
  using Run = tidelane::Run;  // not testing::Test::Run

 protected:
  void Put(uint64_t address) {
    Slab* const slab = arena_.TryAcquire();
    pending_.Insert({.address = address, .size = 8, .data = slab->data, .slab = slab, .epoch = 1});
  }
  DrainStep Step(Order order = Order::kSuperblockLast, bool too_short = false,
                 bool failed = false) {
    return drain_.StepOf({pending_, order, too_short, failed});
  }
  void Take(Run& run, Order order = Order::kSuperblockLast, bool rest_is_done = false) {
    ASSERT_TRUE(pending_.TakeRun({}, order, rest_is_done, run));
  }

  Arena arena_{1u << 20};
  PendingMap pending_;
  DrainState drain_;
};

TEST_F(DrainStateTest, TheStepsComeInTheirOrder) {
  pending_.SetSuperblock(0, 8);
  EXPECT_EQ(Step(), DrainStep::kDrained);
  Put(0);
  Put(100);
  EXPECT_EQ(Step(Order::kSuperblockFirst), DrainStep::kMark);
  Run run;
  Take(run, Order::kSuperblockFirst);
  EXPECT_EQ(run.begin, 0u);
  EXPECT_EQ(Step(Order::kSuperblockFirst), DrainStep::kMark) << "until it is stored";
  pending_.Complete(run);
  Put(0);
  EXPECT_EQ(Step(), DrainStep::kExtents);
  Take(run);
  EXPECT_EQ(run.begin, 100u);
  EXPECT_EQ(Step(), DrainStep::kExtents);
  pending_.Complete(run);
  EXPECT_EQ(Step(Order::kSuperblockLast, true), DrainStep::kSize);
  drain_.SetResizing(true);
  EXPECT_EQ(Step(), DrainStep::kSize) << "while it is being changed";
  drain_.SetResizing(false);
  EXPECT_EQ(Step(), DrainStep::kSuperblock);
  Take(run, Order::kSuperblockLast, true);
  EXPECT_EQ(Step(), DrainStep::kSuperblock);
  pending_.Complete(run);
  EXPECT_EQ(Step(), DrainStep::kDrained);
}

TEST_F(DrainStateTest, FromAnyStepItMayBeStuckUntilARetry) {
  Put(100);
  Run run;
  Take(run);
  pending_.Fail(run, Status::Failed(EIO, "write"));
  EXPECT_EQ(Step(), DrainStep::kStuck);
  pending_.RetryFailed();
  EXPECT_EQ(Step(), DrainStep::kExtents);
  Take(run);
  pending_.Complete(run);
  EXPECT_EQ(Step(Order::kSuperblockLast, true, true), DrainStep::kStuck)
      << "it could not be made longer";
  EXPECT_EQ(Step(Order::kSuperblockLast, true, false), DrainStep::kSize);
}

TEST_F(DrainStateTest, SizeAndSuperblockComeOnlyWhenSomebodyWantsThem) {
  const DrainState::Facts too_short{pending_, Order::kSuperblockLast, true, false};
  const DrainState::Facts long_enough{pending_, Order::kSuperblockLast, false, false};
  EXPECT_FALSE(drain_.MayResize(too_short));
  EXPECT_FALSE(drain_.MayTakeSuperblock(long_enough));
  drain_.Want();
  EXPECT_TRUE(drain_.MayResize(too_short));
  EXPECT_FALSE(drain_.MayTakeSuperblock(too_short));
  EXPECT_TRUE(drain_.MayTakeSuperblock(long_enough));
  Put(100);
  EXPECT_FALSE(drain_.MayResize(too_short)) << "extents come first";
  EXPECT_FALSE(drain_.CameTo(long_enough));
  EXPECT_TRUE(drain_.wanted());
  pending_.CutRange(0, 1000);
  EXPECT_TRUE(drain_.CameTo(long_enough));
  EXPECT_FALSE(drain_.wanted()) << "they have what they wanted";
}

// In a process of its own, which traces.
TEST(DrainTraceTest, ShowsTheStepsOfAFile) {
  const std::string path = ::testing::TempDir() + "drain_trace." + std::to_string(getpid());
  const auto drain_one = [&] {
    EnableTrace(1024);
    FileBench bench;
    bench.Open();
    bool whole = bench.file_->Lock(true).ok() && bench.Write(0, Superblock('s', 4096)).ok() &&
                 bench.Write(1000, "elements").ok() && bench.file_->Truncate(4096).ok();
    bool failing = true;
    bench.plan_ = [&](FaultPoint point, uint64_t, uint64_t) {
      return failing && point == FaultPoint::kTruncate ? Fault{EIO, 0} : Fault{};
    };
    whole = whole && !bench.file_->Flush().ok();
    failing = false;
    whole = whole && bench.file_->Flush().ok() && WriteTrace(path).ok();
    std::_Exit(whole ? 0 : 1);
  };
  EXPECT_EXIT(drain_one(), ::testing::ExitedWithCode(0), "");
  std::ostringstream trace;
  trace << std::ifstream(path).rdbuf();
  const std::string text = trace.str();
  size_t at = 0;
  for (const char* step : {"drain: size", "drain: stuck", "drain: superblock", "drained"}) {
    at = text.find('"' + std::string(step) + '"', at);
    EXPECT_NE(at, std::string::npos) << step << " in " << text;
  }
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace tidelane
