// Writes of whole chunks of filtered datasets: lanes run the filters, the program's thread inserts the results.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <thread>
#include <vector>

#include "conformance/filtered_fixture.h"

namespace tidelane::testing {
namespace {

using namespace std::chrono_literals;

TEST_P(Filtered, EveryCombinationAndOrderIsReadNatively) {
  const std::vector<std::string> all = {"s",  "d",   "f",   "sd",  "ds",  "sf",  "fs", "df",
                                        "fd", "sdf", "sfd", "dsf", "dfs", "fsd", "fds"};
  expect_as_natively(
      [&](const std::string& path) {
        const Hid opened = create(path);
        for (const std::string& filters : all) {
          write(make(opened, filters.c_str(), 2 * rows_of(filters), 2 * kColumns, filters), 1);
        }
      },
      all, static_cast<int64_t>(4 * all.size()));
}

TEST_P(Filtered, EdgeChunksArePaddedWithTheFillValue) {
  expect_as_natively(
      [](const std::string& path) {
        const Hid opened = create(path);
        const Hid dataset = make(opened, "d", 2 * kRows + 5, kColumns + 3);
        write(dataset, 1);
        const hsize_t larger[] = {3 * kRows, 2 * kColumns};
        EXPECT_GE(H5Dset_extent(dataset, larger), 0);
      },
      {"d"}, 6);
}

TEST_P(Filtered, ACallReturnsWhileItsChunksAreNotFiltered) {
  if (!plugged() || GetParam().automatic()) return;
  const Summary summary = run_filtering(4, [&] {
    const Hid opened = create(file());
    const Hid dataset = make(opened, "d", 2 * kRows, 2 * kColumns);
    const BusyLane busy(opened);
    write(dataset, 1);  // with the only lane held, nobody can have filtered
    EXPECT_TRUE(read(dataset) == elements(1, 4 * kRows * kColumns));
  });
  EXPECT_GE(summary.counter("chunks_filtered_by_caller"), 4);
  EXPECT_GE(summary.counter("waits_filter"), 4);
}

TEST_P(Filtered, LanesFilterWhileTheProgramDoesSomethingElse) {
  if (!plugged()) return;
  const Summary summary = run_filtering(4, [&] {
    const Hid opened = create(file());
    const Hid dataset = make(opened, "d", 2 * kRows, 2 * kColumns);
    write(dataset, 1);
    await_stored(opened);
  });
  EXPECT_EQ(summary.counter("chunks_filtered_by_lanes"), 4);
  EXPECT_EQ(summary.counter("chunks_filtered_by_caller"), 0);
}

TEST_P(Filtered, PartialWritesComeAfterWhatIsOnItsWay) {
  expect_as_natively(
      [](const std::string& path) {
        const Hid opened = create(path);
        const Hid dataset = make(opened, "d", 2 * kRows, 2 * kColumns);
        const BusyLane busy(opened);
        write(dataset, 1);
        write_part(dataset, 5, 3, 4, 20, 200);
        write_part(dataset, 6, kRows, 0, kRows, kColumns);  // a whole chunk again
        write_part(dataset, 7, kRows, 1, 1, 1);
      },
      {"d"}, 5);
}

TEST_P(Filtered, TheLastWriteOfAChunkCounts) {
  expect_as_natively(
      [](const std::string& path) {
        const Hid opened = create(path);
        const Hid dataset = make(opened, "d", kRows, 2 * kColumns);
        const BusyLane busy(opened);
        for (int seed = 1; seed <= 20; ++seed) write(dataset, seed);
      },
      {"d"}, 2);
}

TEST_P(Filtered, TwoHandlesOfADatasetAreOneDataset) {
  expect_as_natively(
      [](const std::string& path) {
        const Hid opened = create(path);
        const Hid first = make(opened, "d", 2 * kRows, kColumns);
        const Hid second(H5Dopen2(opened, "d", H5P_DEFAULT));
        const BusyLane busy(opened);
        write(first, 1);
        write(second, 2);
        write_part(first, 3, kRows, 0, kRows, kColumns);
        std::vector<int> expected = elements(2, 2 * kRows * kColumns);
        std::fill(expected.begin() + kRows * kColumns, expected.end(), 3);
        EXPECT_TRUE(read(second) == expected);
        const hsize_t larger[] = {3 * kRows, kColumns};
        EXPECT_GE(H5Dset_extent(first, larger), 0);
        write(second, 4);  // all of the new extent
      },
      {"d"}, 6);
}

TEST_P(Filtered, ADatasetMayBeClosedAndOpenedAgain) {
  expect_as_natively(
      [](const std::string& path) {
        const Hid opened = create(path);
        const BusyLane busy(opened);
        write(make(opened, "d", 2 * kRows, kColumns), 1);
        {
          const Hid again(H5Dopen2(opened, "d", H5P_DEFAULT));
          write_part(again, 2, 0, 0, kRows, kColumns);
        }
        EXPECT_EQ(H5Fget_obj_count(opened, H5F_OBJ_DATASET), 0);
        std::vector<int> expected = elements(1, 2 * kRows * kColumns);
        std::fill_n(expected.begin(), kRows * kColumns, 2);
        EXPECT_TRUE(read(opened, "d") == expected);
        write(make(opened, "e", kRows, kColumns), 3);
      },
      {"d", "e"}, 4);
}

TEST_P(Filtered, ExtentsShrinkAndGrow) {
  expect_as_natively(
      [](const std::string& path) {
        const Hid opened = create(path);
        const Hid dataset = make(opened, "d", 3 * kRows, 2 * kColumns);
        const BusyLane busy(opened);
        write(dataset, 1);
        const hsize_t smaller[] = {kRows + 1, kColumns + 1};
        EXPECT_GE(H5Dset_extent(dataset, smaller), 0);
        write(dataset, 2);
        const hsize_t larger[] = {4 * kRows, 2 * kColumns};
        EXPECT_GE(H5Dset_extent(dataset, larger), 0);
        write_part(dataset, 3, 3 * kRows, 0, kRows, 2 * kColumns);
      },
      {"d"}, 12);
}

// Each step that appends grows the extent first, which changes nothing for the chunks of the steps before.
TEST_P(Filtered, AppendingWaitsForNothing) {
  constexpr hsize_t kSteps = 8;
  const auto append = [](const std::string& path) {
    const Hid opened = create(path);
    const Hid dataset = make(opened, "d", kRows, 2 * kColumns);
    {
      const BusyLane busy(opened);
      for (hsize_t step = 0; step < kSteps; ++step) {
        const hsize_t larger[] = {(step + 1) * kRows, 2 * kColumns};
        EXPECT_GE(H5Dset_extent(dataset, larger), 0) << error_text();
        write_part(dataset, static_cast<int>(step), step * kRows, 0, kRows, 2 * kColumns);
      }
    }
    await_stored(opened);
  };
  const Summary summary = expect_as_natively(append, {"d"}, 2 * kSteps);
  if (!plugged() || GetParam().automatic()) return;
  EXPECT_EQ(summary.counter("chunks_filtered_by_lanes"), static_cast<int64_t>(2 * kSteps));
  EXPECT_EQ(summary.counter("waits_filter"), 0);
}

TEST_P(Filtered, DatasetsAreDeletedRenamedAndCopied) {
  expect_as_natively(
      [](const std::string& path) {
        const Hid opened = create(path);
        const BusyLane busy(opened);
        write(make(opened, "gone", kRows, kColumns), 1);
        EXPECT_GE(H5Ldelete(opened, "gone", H5P_DEFAULT), 0);
        write(make(opened, "gone", 2 * kRows, kColumns), 2);
        write(make(opened, "old", kRows, kColumns), 3);
        EXPECT_GE(H5Lmove(opened, "old", opened, "new", H5P_DEFAULT, H5P_DEFAULT), 0);
        write(make(opened, "from", kRows, kColumns), 4);
        EXPECT_GE(H5Ocopy(opened, "from", opened, "to", H5P_DEFAULT, H5P_DEFAULT), 0);
      },
      {"gone", "new", "from", "to"}, 5);
}

TEST_P(Filtered, QueriesSeeWhatWasWritten) {
  run_filtering(4, [&] {
    const Hid opened = create(file());
    const hsize_t rows = rows_of("f");
    const Hid dataset = make(opened, "d", 2 * rows, 2 * kColumns, "f");
    const BusyLane busy(opened);
    write(dataset, 1);
    const hsize_t stored = rows * kColumns * sizeof(int) + 4;
    EXPECT_EQ(H5Dget_storage_size(dataset), 4 * stored);
    write(dataset, 2);
    hsize_t chunks = 0;
    const Hid space(H5Dget_space(dataset));
    EXPECT_GE(H5Dget_num_chunks(dataset, space, &chunks), 0);
    EXPECT_EQ(chunks, 4u);
    write(dataset, 3);
    const hsize_t origin[] = {rows, 0};
    std::vector<std::byte> bytes(stored);
    uint32_t mask = 1;
    EXPECT_GE(H5Dread_chunk(dataset, H5P_DEFAULT, origin, &mask, bytes.data()), 0) << error_text();
    EXPECT_EQ(mask, 0u);
  });
}

// HDF5 keeps the mask of a chunk whose size does not change.
TEST_P(Filtered, AChunkStoredWithoutItsFiltersGetsThem) {
  expect_as_natively(
      [](const std::string& path) {
        const Hid opened = create(path);
        const hsize_t rows = rows_of("s");
        const Hid dataset = make(opened, "d", rows, kColumns, "s");
        const std::vector<int> plain = elements(1, rows * kColumns);
        const hsize_t origin[] = {0, 0};
        EXPECT_GE(H5Dwrite_chunk(dataset, H5P_DEFAULT, 1, origin, plain.size() * sizeof(int),
                                 plain.data()),
                  0);
        write(dataset, 2);
        EXPECT_TRUE(read(dataset) == elements(2, rows * kColumns));
      },
      {"d"});
}

// Natively the first one is still in HDF5's cache then; with us it was in the file, and HDF5 keeps the mask of an old chunk of that size.
TEST_P(Filtered, AChunkThatTheProgramStoresWithoutFiltersIsReadWithout) {
  static constexpr hsize_t kOne = 70'000;
  for (const bool deflate : {false, true}) {
    expect_as_natively(
        [deflate](const std::string& path) {
          const Hid opened = create(path), list(H5Pcreate(H5P_DATASET_CREATE));
          H5Pset_chunk(list, 1, &kOne);
          H5Pset_shuffle(list);
          if (deflate) H5Pset_deflate(list, 1);
          const hsize_t both = 2 * kOne;
          const Hid space(H5Screate_simple(1, &both, nullptr));
          Hid dataset(
              H5Dcreate2(opened, "d", H5T_NATIVE_INT, space, H5P_DEFAULT, list, H5P_DEFAULT));
          std::vector<int> expected = elements(2, both);
          EXPECT_GE(
              H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, expected.data()), 0);
          const std::vector<int> plain = elements(1, kOne);
          const hsize_t origin = 0;
          const uint32_t all_left_out = deflate ? 3 : 1;
          EXPECT_GE(H5Dwrite_chunk(dataset, H5P_DEFAULT, all_left_out, &origin, kOne * sizeof(int),
                                   plain.data()),
                    0);
          std::copy(plain.begin(), plain.end(), expected.begin());
          dataset = Hid();  // until then HDF5 itself remembers another mask
          EXPECT_TRUE(read(opened, "d") == expected);
        },
        {"d"});
  }
}

// HDF5 remembers the old mask of the last chunk when the size changes, and would read the next elements undecoded.
TEST_P(Filtered, AChunkStoredWithoutItsFiltersIsReadWithThem) {
  expect_as_natively(
      [](const std::string& path) {
        const Hid opened = create(path);
        Hid dataset = make(opened, "d", kRows, kColumns, "d");
        const std::vector<int> plain = elements(1, kRows * kColumns);
        const hsize_t origin[] = {0, 0};
        EXPECT_GE(H5Dwrite_chunk(dataset, H5P_DEFAULT, 1, origin, plain.size() * sizeof(int),
                                 plain.data()),
                  0);
        dataset = Hid();  // until then HDF5 itself remembers another mask
        dataset = Hid(H5Dopen2(opened, "d", H5P_DEFAULT));
        write(dataset, 2);
        EXPECT_TRUE(read(dataset) == elements(2, kRows * kColumns));
      },
      {"d"});
}

TEST_P(Filtered, AnExitWithoutCloseLosesNothing) {
  run_filtering(4, [&] {
    const hid_t opened = create(file()).release();
    const hid_t dataset = make(opened, "d", 2 * kRows, 2 * kColumns).release();
    write(dataset, 1);
  });
  run_natively([&] { EXPECT_TRUE(read(open(file()), "d") == elements(1, 4 * kRows * kColumns)); });
}

// Then nothing may be on its way: nobody would close the file in time.
TEST_P(Filtered, TheCloseOfTheLastObjectClosesTheFile) {
  if (GetParam().close_deferred()) return;
  Child child(one_lane(), [&] {
    Hid opened = create(file());
    Hid dataset = make(opened, "d", kRows, kColumns);
    write(dataset, 1);
    EXPECT_GE(H5Fclose(opened.release()), 0);
    write(dataset, 2);
    EXPECT_GE(H5Dclose(dataset.release()), 0);
    _exit(::testing::Test::HasFailure() ? 1 : 0);
  });
  child.expect_success();
  run_natively([&] { EXPECT_TRUE(read(open(file()), "d") == elements(2, kRows * kColumns)); });
}

TEST_P(Filtered, AForkedChildReadsWhatWasWritten) {
  run_filtering(4, [&] {
    const Hid opened = create(file());
    const Hid dataset = make(opened, "d", 2 * kRows, 2 * kColumns);
    EXPECT_GE(H5Fflush(opened, H5F_SCOPE_LOCAL), 0);
    write(dataset, 1);
    const pid_t child = fork();
    if (child == 0) _exit(read(dataset) == elements(1, 4 * kRows * kColumns) ? 0 : 1);
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    write_part(dataset, 3, 0, 0, kRows, kColumns);
  });
  std::vector<int> expected = elements(1, 4 * kRows * kColumns);
  for (hsize_t row = 0; row < kRows; ++row) {
    std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(row * 2 * kColumns), kColumns, 3);
  }
  run_natively([&] { EXPECT_TRUE(read(open(file()), "d") == expected); });
}

TEST_P(Filtered, WhatIsNotOursIsCounted) {
  const Summary summary = run(
      [&] {
        const Hid opened = create(file());
        const Hid dataset = make(opened, "d", 2 * kRows, 2 * kColumns);
        write_part(dataset, 1, 1, 0, kRows, kColumns);
        const std::vector<double> doubles(size_of(dataset), 2);
        EXPECT_GE(
            H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, doubles.data()), 0);
        const hsize_t twice[] = {2 * kRows, 4 * kColumns};
        const Hid memory(H5Screate_simple(2, twice, nullptr));
        const hsize_t start[] = {0, 0};
        const hsize_t step[] = {1, 2};
        const hsize_t count[] = {2 * kRows, 2 * kColumns};
        H5Sselect_hyperslab(memory, H5S_SELECT_SET, start, step, count, nullptr);
        const std::vector<int> scattered(2 * size_of(dataset), 3);
        EXPECT_GE(H5Dwrite(dataset, H5T_NATIVE_INT, memory, H5S_ALL, H5P_DEFAULT, scattered.data()),
                  0);
        const Hid transfer(H5Pcreate(H5P_DATASET_XFER));
        write(dataset, 4);  // ours
        H5Pset_buffer(transfer, 1 << 16, nullptr, nullptr);
        EXPECT_GE(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, transfer, scattered.data()),
                  0);
        const Hid small(H5Pcreate(H5P_DATASET_CREATE));
        const hsize_t chunk = 1000;
        H5Pset_chunk(small, 1, &chunk);
        H5Pset_deflate(small, 1);
        const hsize_t ten = 10 * chunk;
        const Hid line(H5Screate_simple(1, &ten, nullptr));
        write(Hid(H5Dcreate2(opened, "s", H5T_NATIVE_INT, line, H5P_DEFAULT, small, H5P_DEFAULT)),
              1);
        const Hid scaled(H5Pcreate(H5P_DATASET_CREATE));
        const hsize_t large = 10'000;
        H5Pset_chunk(scaled, 1, &large);
        H5Pset_scaleoffset(scaled, H5Z_SO_INT, 0);
        const Hid long_line(H5Screate_simple(1, &large, nullptr));
        write(Hid(H5Dcreate2(opened, "x", H5T_NATIVE_INT, long_line, H5P_DEFAULT, scaled,
                             H5P_DEFAULT)),
              1);
      },
      one_lane());
  if (!plugged()) return;
  for (const char* reason : {"filter_partial", "filter_type", "filter_memory", "filter_transfer",
                             "filter_small", "filter_unknown"}) {
    EXPECT_EQ(summary.fallback(reason), 1) << reason;
  }
  EXPECT_EQ(
      summary.counter("chunks_filtered_by_lanes") + summary.counter("chunks_filtered_by_caller"),
      4);
}

// Its hand-over costs more than what it does.
TEST_P(Filtered, AFilterThatCompressesNothingIsHdf5sForSmallChunks) {
  const Summary summary = run(
      [&] {
        const Hid opened = create(file());
        const hsize_t extent[] = {4 * kRows, kColumns}, chunk[] = {kRows, kColumns};
        const Hid space(H5Screate_simple(2, extent, nullptr));
        for (const auto set : {H5Pset_shuffle, H5Pset_fletcher32}) {
          const Hid list(H5Pcreate(H5P_DATASET_CREATE));
          H5Pset_chunk(list, 2, chunk);
          set(list);
          const std::string name = set == H5Pset_shuffle ? "s" : "f";
          write(Hid(H5Dcreate2(opened, name.c_str(), H5T_NATIVE_INT, space, H5P_DEFAULT, list,
                               H5P_DEFAULT)),
                1);
        }
      },
      one_lane());
  if (plugged()) {
    EXPECT_EQ(summary.fallback("filter_small"), 2);
    EXPECT_EQ(filtered(summary), 0);
  }
  run_natively([&] {
    for (const char* name : {"s", "f"})
      EXPECT_TRUE(read(open(file()), name) == elements(1, 4 * kRows * kColumns));
  });
}

TEST_P(Filtered, TheSettingTurnsItOff) {
  Environment off = one_lane();
  if (plugged()) off["TIDELANE_PARALLEL_WRITES"] = "off";
  const Summary summary = run(
      [&] {
        const Hid opened = create(file());
        write(make(opened, "d", 2 * kRows, 2 * kColumns), 1);
      },
      off);
  if (plugged()) {
    EXPECT_EQ(summary.counter("filter_bytes_in"), 0);
  }
  run_natively([&] { EXPECT_TRUE(read(open(file()), "d") == elements(1, 4 * kRows * kColumns)); });
}

TEST_P(Filtered, ALittleArenaIsEnough) {
  Environment little = one_lane();
  if (plugged()) little["TIDELANE_ARENA"] = "512k";
  const Summary summary = run(
      [&] {
        const Hid opened = create(file());
        for (int seed = 1; seed < 4; ++seed) {
          write(make(opened, std::to_string(seed).c_str(), 16 * kRows, 4 * kColumns), seed);
        }
      },
      little);
  if (plugged()) {
    EXPECT_EQ(
        summary.counter("chunks_filtered_by_lanes") + summary.counter("chunks_filtered_by_caller"),
        3 * 64);
  }
  run_natively([&] {
    const Hid opened = open(file());
    for (int seed = 1; seed < 4; ++seed) {
      EXPECT_TRUE(read(opened, std::to_string(seed).c_str()) ==
                  elements(seed, 64 * kRows * kColumns));
    }
  });
}

CONFORMANCE_WAYS(Filtered, kNative, kImplicit, kDeferredAll, kAuto);

}  // namespace
}  // namespace tidelane::testing
