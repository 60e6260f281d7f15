#include "engine/memory_of_runs.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "model/history.h"
#include "model/history_key.h"

namespace tidelane {
namespace {

constexpr uint64_t kMib = 1u << 20;
constexpr uint64_t kMs = 1'000'000;
// Copying is much quicker than the storage told of here, also where a sanitizer does it.
const model::CostModel::Times kTimes{
    .calibrate = [](model::CopyCost& cost) { cost.Add(kMib, kMib, 1e-7); }};

class MemoryOfRunsTest : public ::testing::Test {
 protected:
  MemoryOfRunsTest() {
    std::string path = std::filesystem::temp_directory_path() / "tidelane-runs-XXXXXX";
    EXPECT_NE(mkdtemp(path.data()), nullptr);
    folder_ = path;
    config_.history = folder_ + "/history";
    struct stat found;
    EXPECT_EQ(stat(folder_.c_str(), &found), 0);
    device_ = found.st_dev;
  }
  ~MemoryOfRunsTest() override { std::filesystem::remove_all(folder_); }

  // A program that computes between its steps, on storage as quick as memory; what its first write was allowed.
  uint64_t Run(int epochs) {
    model::CostModel cost_model(kTimes);
    MemoryOfRuns runs(config_, cost_model);
    cost_model.Opened(device_, true);
    runs.Recall(device_);
    uint64_t now = kMs, first = 0;
    for (int i = 0; i < epochs; ++i, now += 108 * kMs) {
      const auto allowed = cost_model.Begin(now, {.device = device_, .file = file_}, 16 * kMib);
      if (i == 0) first = allowed.bytes;
      cost_model.End(device_, {.begin_ns = now, .end_ns = now + 8 * kMs});
    }
    cost_model.End(now);
    runs.Keep();
    return first;
  }
  std::string HistoryFile() const {
    const model::HistoryKey key{model::FileSystemName(device_), model::ProgramName()};
    return config_.history + "/" + model::HistoryFileName(key);
  }

  Config config_;
  std::string folder_;
  const std::string file_ = "run.h5";
  dev_t device_ = 0;
};

TEST_F(MemoryOfRunsTest, TheNextRunKnowsFromTheFirstWriteOn) {
  EXPECT_EQ(Run(6), 0u) << "nobody knew it";
  EXPECT_GT(Run(6), 16 * kMib);
  EXPECT_TRUE(std::filesystem::exists(HistoryFile()));
}

TEST_F(MemoryOfRunsTest, OneEpochIsNotWorthKeeping) {
  Run(1);
  EXPECT_FALSE(std::filesystem::exists(config_.history));
}

TEST_F(MemoryOfRunsTest, WhatAReaderLearnedIsKeptBesideWhatAWriterDid) {
  Run(6);
  model::CostModel cost_model(kTimes);
  MemoryOfRuns runs(config_, cost_model);
  for (uint64_t now = kMs; now < 600 * kMs; now += 108 * kMs) {
    cost_model.reads().Begin(now);
    cost_model.reads().Answered(device_, model::ReadPhases::For::kProgram,
                                {.begin_ns = now, .end_ns = now + 8 * kMs, .bytes = 16 * kMib});
    cost_model.reads().End(device_, {.end_ns = now + 8 * kMs, .bytes = 16 * kMib});
  }
  cost_model.End(700 * kMs);
  runs.Keep();
  model::HistoryEntry entry;
  const model::HistoryKey key{model::FileSystemName(device_), model::ProgramName()};
  ASSERT_TRUE(model::LoadHistory(config_.history, key, entry).ok());
  EXPECT_EQ(entry.runs, 2u);
  EXPECT_EQ(entry.learned.epochs, 6u);
  EXPECT_EQ(entry.learned.reads.epochs, 6u);
  EXPECT_NEAR(entry.learned.reads.sync.Predict(16 * kMib, 1)->seconds, 0.008, 1e-6);
}

TEST_F(MemoryOfRunsTest, WithoutAFolderNothingIsKept) {
  config_.history = "";
  Run(6);
  EXPECT_EQ(Run(6), 0u);
}

TEST_F(MemoryOfRunsTest, OnlyTheFirstRankKeepsSomething) {
  setenv("PMI_RANK", "3", 1);
  Run(6);
  unsetenv("PMI_RANK");
  EXPECT_FALSE(std::filesystem::exists(config_.history));
}

TEST_F(MemoryOfRunsTest, ADamagedFileIsOneLineAndTheRunAsIfThereWereNone) {
  Run(6);
  std::ofstream(HistoryFile()) << "{\"format\": \"tidelane-hist";
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Run(6), 0u);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("cannot understand the history"), std::string::npos) << said;
  EXPECT_EQ(said.find('\n'), said.size() - 1) << said;
  ::testing::internal::CaptureStderr();
  EXPECT_GT(Run(6), 0u) << "it was written anew";
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST_F(MemoryOfRunsTest, ANewerFileIsOneLineAndLeftAlone) {
  std::filesystem::create_directories(config_.history);
  std::ofstream(HistoryFile()) << R"({"format": "tidelane-history", "version": 999})";
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Run(6), 0u);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("newer"), std::string::npos) << said;
  EXPECT_EQ(said.find('\n'), said.size() - 1) << said;
  EXPECT_LT(std::filesystem::file_size(HistoryFile()), 100u);
}

TEST_F(MemoryOfRunsTest, AFolderThatWasAskedForAndCannotBeWrittenIsOneLine) {
  std::ofstream(folder_ + "/file") << "no folder";
  config_.history = folder_ + "/file/history";
  ::testing::internal::CaptureStderr();
  Run(6);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("TIDELANE_HISTORY"), std::string::npos) << said;
  EXPECT_EQ(said.find('\n'), said.size() - 1) << said;
}

TEST_F(MemoryOfRunsTest, TheUsualFolderThatCannotBeWrittenIsNothing) {
  const char* before = std::getenv("XDG_STATE_HOME");
  const std::string kept = before == nullptr ? "" : before;
  setenv("XDG_STATE_HOME", "/dev/null", 1);
  config_.history = "auto";
  ::testing::internal::CaptureStderr();
  Run(6);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  kept.empty() ? unsetenv("XDG_STATE_HOME") : setenv("XDG_STATE_HOME", kept.c_str(), 1);
}

}  // namespace
}  // namespace tidelane
