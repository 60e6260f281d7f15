/// \file
/// Where the summary goes. What it says is in summary_table_test and summary_json_test.
#include "base/report.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/counters.h"
#include "base/version.h"

namespace tidelane {
namespace {

Config To(const std::string& where) {
  Config config;
  config.summary = where;
  return config;
}

std::string SaidTo(const std::string& where) {
  testing::internal::CaptureStderr();
  const Status status = WriteSummary(To(where));
  EXPECT_TRUE(status.ok()) << status.Message();
  return testing::internal::GetCapturedStderr();
}

TEST(ReportTest, APathGetsTheJson) {
  Count(Counter::kBytesDeferred, 123456789012);
  const std::string folder = testing::TempDir();
  const std::string path = folder + "/tidelane-report-" + std::to_string(getpid()) + ".json";
  EXPECT_EQ(SaidTo(folder + "/tidelane-report-%p.json"), "");
  const auto summary = nlohmann::json::parse(std::ifstream(path));
  std::filesystem::remove(path);
  EXPECT_EQ(summary["tidelane"]["version"], TIDELANE_VERSION);
  EXPECT_EQ(summary["tidelane"]["pid"], getpid());
  EXPECT_EQ(summary["counters"]["bytes_deferred"], Read(Counter::kBytesDeferred));
}

TEST(ReportTest, OneGetsTheTable) {
  Count(Fallback::kHandleOut);
  const std::string table = SaidTo("1");
  EXPECT_TRUE(table.starts_with("tidelane " TIDELANE_VERSION ", process ")) << table;
  EXPECT_NE(table.find("(handle_handed_out)\n"), std::string::npos) << table;
  EXPECT_EQ(table.back(), '\n');
}

// h5py, netCDF4 and PyTables in one process bring a libhdf5 each, and each says that it ends.
TEST(ReportTest, WhatWasSaidIsNotSaidAgainUntilSomethingHappened) {
  Count(Counter::kFilesOpened);
  EXPECT_NE(SaidTo("1"), "");
  EXPECT_EQ(SaidTo("1"), "");
  Count(Counter::kFilesOpened);
  EXPECT_NE(SaidTo("1"), "");
}

TEST(ReportTest, NothingIsWrittenUnlessAsked) { EXPECT_EQ(SaidTo(""), ""); }

TEST(ReportTest, AnUnwritablePathIsAnErrorThatNamesIt) {
  const Status status = WriteSummary(To("/nonexistent-folder/summary.json"));
  EXPECT_NE(status.Message().find("'/nonexistent-folder/summary.json': No such file"),
            std::string::npos)
      << status.Message();
}

}  // namespace
}  // namespace tidelane
