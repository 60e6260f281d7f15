// Filtered chunks that a file stores from where lanes have put them: nothing is copied, and memory stays bounded.
#include <string>

#include "conformance/filtered_fixture.h"

namespace tidelane::testing {
namespace {

constexpr hsize_t kChunkBytes =
    256 * 1024;  // without a filter that compresses they are stored as large

class FilteredLending : public Filtered {};

hsize_t rows(hsize_t chunks) { return chunks * kChunkBytes / kColumns / sizeof(int); }

TEST_P(FilteredLending, WhatLanesMadeOfAChunkIsNotCopied) {
  const Summary summary = expect_as_natively(
      [](const std::string& path) {
        const Hid opened = create(path);
        const Hid dataset = make(opened, "d", rows(8), kColumns, "s");
        for (int seed = 1; seed < 4; ++seed) {
          write(dataset, seed);
          EXPECT_GE(H5Fflush(dataset, H5F_SCOPE_LOCAL), 0);
        }
      },
      {"d"}, 3 * 8);
  if (!plugged()) return;
  EXPECT_EQ(summary.counter("bytes_held"), 3 * 8 * static_cast<int64_t>(kChunkBytes));
  EXPECT_EQ(summary.counter("bytes_held"), summary.counter("filter_bytes_out"));
}

// Of an arena of 64 MiB chunks may have a quarter, and half of that may be lent; the rest is copied into the arena.
TEST_P(FilteredLending, WhileStorageStandsNoMoreIsLentThanChunksMayHave) {
  if (!plugged() || GetParam().automatic()) return;
  Environment environment = one_lane();
  environment["TIDELANE_ARENA"] = "64M";
  constexpr int64_t kMost = 8 << 20;
  constexpr hsize_t kChunks = 80;
  const Summary summary = run(
      [&] {
        const Hid opened = create(file());
        const Hid dataset = make(opened, "d", rows(kChunks), kColumns, "s");
        const BusyLane busy(opened);
        write(dataset, 1);
        EXPECT_GE(H5Dget_storage_size(dataset), kChunks * kChunkBytes);  // all of them are in
      },
      environment);
  EXPECT_EQ(filtered(summary), static_cast<int64_t>(kChunks));
  EXPECT_LE(summary.counter("bytes_held"), kMost);
  EXPECT_GT(summary.counter("bytes_held"), kMost - 2 * static_cast<int64_t>(kChunkBytes));
  run_natively(
      [&] { EXPECT_TRUE(read(open(file()), "d") == elements(1, rows(kChunks) * kColumns)); });
}

CONFORMANCE_WAYS(FilteredLending, kNative, kImplicit, kDeferredAll, kAuto);

}  // namespace
}  // namespace tidelane::testing
