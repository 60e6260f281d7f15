/// \file
/// The summary: JSON keys that scripts rely on, and the table.
#include "base/report.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/counters.h"
#include "base/version.h"

namespace tidelane {
namespace {

TEST(ReportTest, JsonCarriesEveryCounterAndFallback) {
  Count(Counter::kBytesDeferred, 123456789012);
  Count(Fallback::kSwmrWrite);
  const std::string folder = testing::TempDir();
  const std::string path = folder + "/tidelane-report-" + std::to_string(getpid()) + ".json";
  const Status status = WriteSummary(folder + "/tidelane-report-%p.json");
  ASSERT_TRUE(status.ok()) << status.Message();
  const auto summary = nlohmann::json::parse(std::ifstream(path));
  std::filesystem::remove(path);
  EXPECT_EQ(summary["tidelane"]["version"], TIDELANE_VERSION);
  EXPECT_EQ(summary["tidelane"]["pid"], getpid());
  EXPECT_EQ(summary["counters"].size(), kCounterCount);
  EXPECT_EQ(summary["counters"]["bytes_deferred"], Read(Counter::kBytesDeferred));
  EXPECT_EQ(summary["counters"]["gap_fill_reads"], Read(Counter::kGapFillReads));
  EXPECT_EQ(summary["fallbacks"].size(), kFallbackCount);
  EXPECT_EQ(summary["fallbacks"]["swmr_write"], Read(Fallback::kSwmrWrite));
}

TEST(ReportTest, TableNamesWhatHappened) {
  Count(Counter::kBytesDeferred, 3u << 20);
  Count(Counter::kWaitFlushNs, 1'250'000'000);
  Count(Fallback::kHandleOut);
  testing::internal::CaptureStderr();
  const Status status = WriteSummary("1");
  const std::string table = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(status.ok());
  EXPECT_TRUE(table.starts_with("tidelane " TIDELANE_VERSION ", process ")) << table;
  EXPECT_NE(table.find("handle_handed_out 1"), std::string::npos) << table;
  EXPECT_NE(table.find("flush 1.250 s"), std::string::npos) << table;
  EXPECT_EQ(table.find("exit "), std::string::npos) << "no time was spent there: " << table;
  EXPECT_EQ(table.back(), '\n');
}

// h5py, netCDF4 and PyTables in one process bring a libhdf5 each, and each says that it ends.
TEST(ReportTest, WhatWasSaidIsNotSaidAgainUntilSomethingHappened) {
  const auto said = [] {
    testing::internal::CaptureStderr();
    EXPECT_TRUE(WriteSummary("1").ok());
    return testing::internal::GetCapturedStderr();
  };
  Count(Counter::kFilesOpened);
  EXPECT_NE(said(), "");
  EXPECT_EQ(said(), "");
  Count(Counter::kFilesOpened);
  EXPECT_NE(said(), "");
}

TEST(ReportTest, NothingIsWrittenUnlessAsked) {
  testing::internal::CaptureStderr();
  EXPECT_TRUE(WriteSummary("").ok());
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(ReportTest, AnUnwritablePathIsAnError) {
  EXPECT_FALSE(WriteSummary("/nonexistent-folder/summary.json").ok());
}

}  // namespace
}  // namespace tidelane
