// What lanes fetch before the program asks for it: that it is used, and that nobody could tell from what is read.
// Every scenario also runs natively. Who reads what of storage is seen at the gate.
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "conformance/time_steps.h"

namespace tidelane::testing {
namespace {

using namespace std::chrono_literals;

TEST_P(ReadAhead, TheNextStepIsHereBeforeTheProgramAsks) {
  run_natively([&] { create_steps(file(), 4); });
  const Summary summary = run([&] {
    const Watch watch;
    const Hid opened = open(file(), H5F_ACC_RDONLY);
    read_first_step(opened, watch);
    for (int step = 1; step < 4; ++step) {
      const uint64_t before = watch.by_program();
      expect_step(opened, step);
      if (!plugged()) continue;
      EXPECT_EQ(watch.by_program(), before) << step;
      if (step < 3) {
        ASSERT_TRUE(watch.wait_for_lanes((step + 1) * kVariables * kBytes)) << step;
      }
    }
  });
  if (!plugged()) return;
  EXPECT_GE(summary.counter("ahead_hits"), 3 * kVariables);
  EXPECT_LE(summary.counter("ahead_misses"), kVariables - 2);  // of the first step
  EXPECT_GE(summary.counter("ahead_bytes"), static_cast<int64_t>(3 * kVariables * kBytes));
}

TEST_P(ReadAhead, EverySecondSlabOfAChunkedDataset) {
  constexpr hsize_t kRows = 40;
  const hsize_t extent[2] = {kRows, kCount}, chunk[2] = {1, kCount / 2}, row[2] = {1, kCount};
  run_natively([&] {
    const Hid opened = create(file());
    const Hid space(H5Screate_simple(2, extent, nullptr));
    const Hid list(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_chunk(list, 2, chunk);
    const Hid dataset(
        H5Dcreate2(opened, "rows", H5T_NATIVE_INT, space, H5P_DEFAULT, list, H5P_DEFAULT));
    const std::vector<int> values = elements(1, kRows * kCount);
    ASSERT_GE(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
  });
  const Summary summary = run([&] {
    const Watch watch;
    const Hid opened = open(file(), H5F_ACC_RDONLY);
    const Hid access(H5Pcreate(H5P_DATASET_ACCESS));
    H5Pset_chunk_cache(access, 1, 0, 0);
    const Hid dataset(H5Dopen2(opened, "rows", access));
    const Hid space(H5Dget_space(dataset));
    const Hid memory(H5Screate_simple(2, row, nullptr));
    const std::vector<int> all = elements(1, kRows * kCount);
    std::vector<int> values(kCount);
    for (hsize_t r = 0; r < kRows; r += 2) {
      const hsize_t start[2] = {r, 0};
      H5Sselect_hyperslab(space, H5S_SELECT_SET, start, nullptr, row, nullptr);
      const uint64_t before = watch.by_program();  // more: lanes were too late, on a busy machine
      ASSERT_GE(H5Dread(dataset, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, values.data()), 0);
      EXPECT_TRUE(
          std::equal(values.begin(), values.end(), all.begin() + static_cast<long>(r * kCount)))
          << r;
      if (plugged()) std::this_thread::sleep_for(watch.by_program() == before ? 20ms : 100ms);
    }
    if (plugged()) {
      EXPECT_LT(watch.by_program(), kRows / 2 * kBytes / 2);
    }
  });
  if (plugged()) {
    EXPECT_GE(summary.counter("ahead_hits"), 20);
  }
}

TEST_P(ReadAhead, WhatIsWrittenMeanwhileIsRead) {
  run_natively([&] { create_steps(file(), 3); });
  run([&] {
    const Watch watch;
    const Hid opened = open(file());
    read_first_step(opened, watch);
    overwrite(opened, variable(1, 2), 777, kCount);
    expect_dataset(opened, variable(1, 1), seed_of(1, 1), kCount);
    expect_dataset(opened, variable(1, 2), 777, kCount);
    overwrite(opened, variable(1, 3), 778, kCount);
    H5Fflush(opened, H5F_SCOPE_GLOBAL);
    expect_dataset(opened, variable(1, 3), 778, kCount);
    expect_dataset(opened, variable(1, 2), 777, kCount);
    expect_step(opened, 2);
  });
  run_natively([&] {
    const Hid opened = open(file(), H5F_ACC_RDONLY);
    expect_dataset(opened, variable(1, 2), 777, kCount);
    expect_dataset(opened, variable(1, 3), 778, kCount);
  });
}

// The bytes of what is deleted become those of something else.
TEST_P(ReadAhead, SpaceThatIsGivenBackAndTakenAgain) {
  run_natively([&] { create_steps(file(), 3); });
  run([&] {
    const Watch watch;
    const Hid opened = open(file());
    read_first_step(opened, watch);
    for (int v = 0; v < kVariables; ++v) {
      ASSERT_GE(H5Ldelete(opened, variable(1, v).c_str(), H5P_DEFAULT), 0);
      put(opened, variable(1, v), seed_of(9, v), kCount);
    }
    for (int v = 0; v < kVariables; ++v)
      expect_dataset(opened, variable(1, v), seed_of(9, v), kCount);
    expect_step(opened, 2);
  });
}

TEST_P(ReadAhead, AFileThatBecomesShorter) {
  run_natively([&] { create_steps(file(), 3); });
  run([&] {
    const Watch watch;
    {
      const Hid opened = open(file());
      read_first_step(opened, watch);
      for (const char* group : {"Step#2", "Step#1"})
        ASSERT_GE(H5Ldelete(opened, group, H5P_DEFAULT), 0);
    }
    const Hid opened = open(file());
    expect_step(opened, 0);
    put(opened, "new", 5, 4 * kCount);
    expect_dataset(opened, "new", 5, 4 * kCount);
  });
}

TEST_P(ReadAhead, AWrongGuessChangesNothing) {
  run_natively([&] { create_steps(file(), 12); });
  const Summary summary = run([&] {
    const Watch watch;
    const Hid opened = open(file(), H5F_ACC_RDONLY);
    read_first_step(opened, watch);
    for (const int step : {7, 3, 11, 5, 0, 2, 9}) {
      for (const int v : {3, 0, 2})
        expect_dataset(opened, variable(step, v), seed_of(step, v), kCount);
    }
  });
  if (plugged()) {
    EXPECT_GE(summary.counter("ahead_bytes_wasted"), static_cast<int64_t>(2 * kBytes));
    EXPECT_LE(summary.counter("ahead_bytes_wasted"), summary.counter("ahead_bytes"));
  }
}

// Another process writes the file between two times that it is open here.
TEST_P(ReadAhead, AFileThatWasChangedBeforeItIsOpenedAgain) {
  run_natively([&] { create_steps(file(), 3); });
  Gong read;
  Gong changed;
  Child other(environment(kNative), [&] {
    ASSERT_TRUE(read.wait());
    overwrite(open(file()), variable(1, 1), 4711, kCount);
    changed.ring();
  });
  run([&] {
    const Watch watch;
    read_first_step(open(file(), H5F_ACC_RDONLY), watch);
    read.ring();
    ASSERT_TRUE(changed.wait());
    const Hid opened = open(file(), H5F_ACC_RDONLY);
    expect_step(opened, 0);
    expect_dataset(opened, variable(1, 0), seed_of(1, 0), kCount);
    expect_dataset(opened, variable(1, 1), 4711, kCount);
  });
  other.expect_success();
}

TEST_P(ReadAhead, LanesThatCannotReadAreNotHeardOf) {
  run_natively([&] { create_steps(file(), 3); });
  const Summary summary = run([&] {
    Watch watch;
    watch.lanes_fail = EIO;
    const Hid opened = open(file(), H5F_ACC_RDONLY);
    read_first_step(opened, watch);
    expect_step(opened, 1);
    expect_step(opened, 2);
  });
  if (plugged()) {
    EXPECT_EQ(summary.counter("ahead_bytes"), 0);
    EXPECT_EQ(summary.counter("errors"), 0);
  }
}

TEST_P(ReadAhead, AReadThatFailsSaysWhatItSaysNatively) {
  run_natively([&] { create_steps(file(), 3); });
  run([&] {
    Watch watch;
    watch.lanes_fail = EIO;
    const Hid opened = open(file(), H5F_ACC_RDONLY);
    expect_step(opened, 0);
    const Hid dataset(H5Dopen2(opened, variable(1, 0).c_str(), H5P_DEFAULT));
    watch.program_fails = EIO;
    std::vector<int> values(kCount);
    H5E_BEGIN_TRY {
      EXPECT_LT(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
    }
    H5E_END_TRY
    watch.program_fails = 0;
    expect_step(opened, 1);
  });
}

TEST_P(ReadAhead, AChildReadsWhatItsParentHadFetched) {
  run_natively([&] { create_steps(file(), 3); });
  run([&] {
    const Watch watch;
    const Hid opened = open(file(), H5F_ACC_RDONLY);
    read_first_step(opened, watch);
    const pid_t child = fork();
    if (child == 0) {
      expect_step(opened, 1);
      expect_step(opened, 2);
      _exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    expect_step(opened, 1);
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    expect_step(opened, 2);
  });
}

// Writes have the arena for themselves when they need it.
TEST_P(ReadAhead, MemoryIsGivenBackToWrites) {
  run_natively([&] { create_steps(file(), 8); });
  Environment small = reading_ahead();
  if (plugged()) small["TIDELANE_ARENA"] = "4M";
  run(
      [&] {
        const Watch watch;
        const Hid opened = open(file());
        const Hid other = create(in_folder("other.h5"));
        read_first_step(opened, watch);
        for (int step = 1; step < 8; ++step) {
          for (int v = 0; v < kVariables; ++v)
            put(other, "d" + std::to_string(seed_of(step, v)), seed_of(step, v), 4 * kCount);
          expect_step(opened, step);
        }
        for (int step = 1; step < 8; ++step)
          expect_dataset(other, "d" + std::to_string(seed_of(step, 1)), seed_of(step, 1),
                         4 * kCount);
      },
      small);
}

TEST_P(ReadAhead, CompressedSlabs) {
  constexpr hsize_t kRows = 24;
  const hsize_t extent[2] = {kRows, 4 * kCount}, chunk[2] = {1, kCount}, rows[2] = {2, 4 * kCount};
  std::vector<int> all(kRows * 4 * kCount);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i * 2654435761u >> 7);
  run_natively([&] {
    const Hid opened = create(file());
    const Hid space(H5Screate_simple(2, extent, nullptr));
    const Hid list(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_chunk(list, 2, chunk);
    H5Pset_deflate(list, 1);
    const Hid dataset(
        H5Dcreate2(opened, "rows", H5T_NATIVE_INT, space, H5P_DEFAULT, list, H5P_DEFAULT));
    ASSERT_GE(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, all.data()), 0);
  });
  const Summary summary = run([&] {
    const Watch watch;
    const Hid opened = open(file(), H5F_ACC_RDONLY);
    const Hid dataset(H5Dopen2(opened, "rows", H5P_DEFAULT));
    const Hid space(H5Dget_space(dataset));
    const Hid memory(H5Screate_simple(2, rows, nullptr));
    std::vector<int> values(2 * 4 * kCount);
    for (hsize_t r = 0; r < kRows; r += 2) {
      const hsize_t start[2] = {r, 0};
      H5Sselect_hyperslab(space, H5S_SELECT_SET, start, nullptr, rows, nullptr);
      const uint64_t before = watch.by_program();
      ASSERT_GE(H5Dread(dataset, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, values.data()), 0);
      EXPECT_TRUE(
          std::equal(values.begin(), values.end(), all.begin() + static_cast<long>(r * 4 * kCount)))
          << r;
      if (plugged()) std::this_thread::sleep_for(watch.by_program() == before ? 20ms : 100ms);
    }
  });
  if (plugged()) {
    EXPECT_GE(summary.counter("ahead_hits"), 40);
  }
}

TEST_P(ReadAhead, NotWithoutALock) {
  run_natively([&] { create_steps(file(), 3); });
  Environment unlocked = reading_ahead();
  unlocked["HDF5_USE_FILE_LOCKING"] = "FALSE";
  const Summary summary = run(
      [&] {
        const Hid opened = open(file(), H5F_ACC_RDONLY);
        for (int step = 0; step < 3; ++step) expect_step(opened, step);
      },
      unlocked);
  if (plugged()) {
    EXPECT_EQ(summary.counter("ahead_bytes"), 0);
    EXPECT_EQ(summary.fallback("locking_off"), 1);
  }
}

TEST_P(ReadAhead, NotWhereAWriterMayBeFollowed) {
  run_natively([&] {
    const Hid access(H5Pcreate(H5P_FILE_ACCESS));
    H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    const Hid opened = create(file(), access);
    for (int i = 0; i < 8; ++i) put(opened, "d" + std::to_string(i), i, kCount);
  });
  const Summary summary = run([&] {
    const Hid opened = open(file(), H5F_ACC_RDONLY | H5F_ACC_SWMR_READ);
    for (int i = 0; i < 8; ++i) expect_dataset(opened, "d" + std::to_string(i), i, kCount);
  });
  if (plugged()) {
    EXPECT_EQ(summary.counter("ahead_bytes"), 0);
  }
}

TEST_P(ReadAhead, NotWhereItIsNotWanted) {
  run_natively([&] { create_steps(file(), 3); });
  Environment none = reading_ahead();
  if (plugged()) none["TIDELANE_READAHEAD_LIMIT"] = "0";
  for (const Environment& given : {reading_ahead("off"), none}) {
    const Summary summary = run(
        [&] {
          const Hid opened = open(file(), H5F_ACC_RDONLY);
          for (int step = 0; step < 3; ++step) expect_step(opened, step);
        },
        given);
    if (plugged()) {
      EXPECT_EQ(summary.counter("ahead_bytes"), 0);
    }
  }
}

CONFORMANCE_WAYS(ReadAhead, kNative, kImplicit, kDeferredAll, kAuto);

}  // namespace
}  // namespace tidelane::testing
