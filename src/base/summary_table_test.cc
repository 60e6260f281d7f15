/// \file
/// The table, line by line.
#include <gtest/gtest.h>

#include "base/summary.h"
#include "base/version.h"

namespace tidelane {
namespace {

Summary Checkpoints() {
  Summary summary;
  summary.pid = 42;
  summary.run_ns = 10'000'000'000;
  summary[Counter::kFilesOpened] = 1;
  summary[Counter::kBytesDeferred] = 128u << 20;
  summary[Counter::kWritesDeferred] = 42;
  summary[Counter::kCopyNs] = 43'000'000;
  summary[Counter::kRequestsWritten] = 145;
  summary[Counter::kBytesWritten] = 128u << 20;
  summary[Counter::kWaitFlushNs] = 16'000'000;
  summary[Counter::kWaitsFlush] = 4;
  summary[Counter::kWaitCloseNs] = 2'000'000;
  summary[Counter::kWaitsClose] = 1;
  summary[Counter::kArenaPeakBytes] = 34u << 20;
  summary[Counter::kArenaCapBytes] = uint64_t{4} << 30;
  summary.overlap = {2'500'000'000, 2'475'000'000};
  return summary;
}

TEST(SummaryTableTest, ARunThatWentWellIsEightLines) {
  EXPECT_EQ(SummaryTable(Checkpoints()),
            "tidelane " TIDELANE_VERSION
            ", process 42: 1 file opened, 0 errors, 10.000 s\n"
            "  asynchronous  128.0 MiB in 42 writes, copied in 0.043 s\n"
            "  synchronous   0 B in 0 writes\n"
            "  merged        42 writes into 145 requests, 128.0 MiB\n"
            "  waited        0.018 s of 10.000 s: flush 0.016 s (4), close 0.002 s (1)\n"
            "  overlap       99.0 % of 2.500 s of storage's work was hidden\n"
            "  arena         peak 34.0 MiB of 4.0 GiB\n");
}

TEST(SummaryTableTest, NothingHappened) {
  EXPECT_EQ(SummaryTable(Summary()), "tidelane " TIDELANE_VERSION
                                     ", process 0: 0 files opened, 0 errors, 0.000 s\n"
                                     "  asynchronous  0 B in 0 writes, copied in 0.000 s\n"
                                     "  synchronous   0 B in 0 writes\n"
                                     "  merged        0 writes into 0 requests, 0 B\n"
                                     "  waited        nowhere\n"
                                     "  arena         peak 0 B of 0 B\n");
}

TEST(SummaryTableTest, FallbacksSayWhyAndHowMuch) {
  Summary summary = Checkpoints();
  summary[Fallback::kQuickStorage] = 3;
  summary.bytes(Fallback::kQuickStorage) = 12u << 20;
  summary[Fallback::kLocking] = 1;
  summary[Fallback::kOneCore] = 1;
  const std::string table = SummaryTable(summary);
  EXPECT_NE(table.find("\n"
                       "  fell back     12.0 MiB, 3 writes: storage as quick as memory: a second "
                       "copy is no gain (quick_storage)\n"
                       "                1 file: not locked: no gap filling, no read-ahead "
                       "(locking_off)\n"
                       "                the program is bound to one core; lanes leave it if they "
                       "may (one_core)\n"),
            std::string::npos)
      << table;
}

TEST(SummaryTableTest, GapsAndReadsAppearWhereThereWereAny) {
  Summary summary = Checkpoints();
  summary[Counter::kGapFillReads] = 7;
  summary[Counter::kGapFillBytes] = 32u << 20;
  summary[Counter::kBytesWritten] = 160u << 20;
  summary[Counter::kStorageReads] = 1;
  summary[Counter::kStorageReadBytes] = 64u << 10;
  summary[Counter::kReadAheadHits] = 15;
  const std::string table = SummaryTable(summary);
  EXPECT_NE(table.find("  gaps filled   32.0 MiB with 7 reads: 25.0 % more bytes written\n"),
            std::string::npos)
      << table;
  EXPECT_NE(table.find("  read          64.0 KiB in 1 request, 15 reads answered from what was "
                       "read ahead\n"),
            std::string::npos)
      << table;
}

TEST(SummaryTableTest, WhatWentWrongIsNamed) {
  Summary summary = Checkpoints();
  summary[Counter::kErrors] = 2;
  summary.incidents.first_error = "cannot write 1 bytes";
  summary.incidents.last_error = "cannot write 2 bytes";
  for (const char* name : {"a.h5", "b.h5", "c.h5", "d.h5", "e.h5"}) {
    summary.incidents.left_open.Add(name);
  }
  summary.incidents.not_stored.Add("lost.h5");
  const std::string table = SummaryTable(summary);
  EXPECT_NE(table.find(": 1 file opened, 2 errors, "), std::string::npos) << table;
  EXPECT_NE(table.find("  first error   cannot write 1 bytes\n"
                       "  last error    cannot write 2 bytes\n"
                       "  not stored    1 file: lost.h5\n"
                       "  not closed    5 files: a.h5, b.h5, c.h5 and 2 more\n"),
            std::string::npos)
      << table;
  summary.incidents.last_error = summary.incidents.first_error;
  EXPECT_EQ(SummaryTable(summary).find("last error"), std::string::npos) << "there was only one";
}

TEST(SummaryTableTest, LentBytesAreToldApart) {
  Summary summary = Checkpoints();
  summary[Counter::kBytesLent] = 96u << 20;
  const std::string table = SummaryTable(summary);
  EXPECT_NE(table.find(" copied in 0.043 s; 96.0 MiB of it lent, not copied\n"), std::string::npos)
      << table;
}

TEST(SummaryTableTest, SettingsThatWereGivenSayWhere) {
  Summary summary = Checkpoints();
  summary.config.close_deferred = true;
  summary.config.origins = {{"close", "TIDELANE_CLOSE"}, {"summary", "TIDELANE_SUMMARY"}};
  summary.config.without_effect = {{"HDF5_ASYNC_MAX", "1", "HDF5_ASYNC_MAX", "nothing to do"}};
  const std::string table = SummaryTable(summary);
  EXPECT_NE(table.find("\n  settings      close=deferred (TIDELANE_CLOSE)\n"), std::string::npos)
      << table;
}

TEST(SummaryTableTest, AdviceComesLast) {
  Summary summary = Checkpoints();
  summary[Counter::kWaitCloseNs] = 4'100'000'000;
  summary.free_after_close_ns = 5'000'000'000;
  summary[Counter::kWaitsClose] = 5;
  EXPECT_TRUE(SummaryTable(summary).ends_with(
      "  advice        close waited 4.1 s in 5 files: TIDELANE_CLOSE=deferred hides it\n"));
}

}  // namespace
}  // namespace tidelane
