// Asynchronous reads: they return before storage answers, lanes read, and what is done meanwhile changes nothing of what
// they give. Every scenario also runs natively, where everything is there at once.
#include "conformance/read_later.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace tidelane::testing {
namespace {

using namespace std::chrono_literals;

class ReadLater : public LateReads {};

TEST_P(ReadLater, ReturnsBeforeStorageAnswers) {
  run_natively([&] { put_large(create(file()), 1); });
  const Summary summary = run([&] {
    Watch watch;
    const Hid opened = open(file(), H5F_ACC_RDONLY);
    const Hid dataset = dataset_in(opened);
    const Hid set(H5EScreate());
    if (plugged()) watch.hold();
    std::vector<int> values(kLargeCount, -1);
    read_async(dataset, values, set);
    if (plugged()) {
      EXPECT_EQ(count(set), 1u);
      EXPECT_TRUE(watch.wait_held());
      EXPECT_EQ(wait(set, H5ES_WAIT_NONE), 1u);
      EXPECT_EQ(wait(set, 20'000'000), 1u);
      EXPECT_TRUE(std::ranges::all_of(values, [](int value) { return value == -1; }));
      EXPECT_EQ(watch.by_program(), 0u);
    }
    watch.release();
    EXPECT_EQ(wait(set, H5ES_WAIT_FOREVER), 0u);
    EXPECT_TRUE(values == elements(1, kLargeCount));
    EXPECT_EQ(count(set), 0u);
  });
  if (plugged()) {
    EXPECT_EQ(summary.counter("reads_deferred"), 1);
    EXPECT_EQ(summary.counter("read_bytes_deferred"), static_cast<int64_t>(kLargeBytes));
    EXPECT_GT(summary.counter("read_bytes_by_lanes"), 0);
  }
}

TEST_P(ReadLater, ItIsDoneWithoutAWait) {
  run_natively([&] { put_large(create(file()), 1); });
  const Summary summary = run([&] {
    const Hid opened = open(file(), H5F_ACC_RDONLY);
    const Hid dataset = dataset_in(opened);
    const Hid set(H5EScreate());
    std::vector<int> values(kLargeCount, -1);
    read_async(dataset, values, set);
    for (int i = 0; i < 1000 && wait(set, H5ES_WAIT_NONE) != 0; ++i) {
      std::this_thread::sleep_for(10ms);
    }
    EXPECT_EQ(wait(set, H5ES_WAIT_NONE), 0u);
    EXPECT_TRUE(values == elements(1, kLargeCount));
  });
  if (plugged()) {
    EXPECT_EQ(summary.counter("read_bytes_by_lanes"), static_cast<int64_t>(kLargeBytes));
  }
}

TEST_P(ReadLater, EveryKindOfSelection) {
  constexpr hsize_t kRows = 700, kColumns = 900;
  const std::vector<int> all = elements(3, kRows * kColumns);
  const Summary summary = run([&] {
    const Hid opened = create(file());
    const hsize_t extent[2] = {kRows, kColumns};
    const Hid space(H5Screate_simple(2, extent, nullptr));
    const Hid dataset(
        H5Dcreate2(opened, "d", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    ASSERT_GE(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, all.data()), 0);
    struct Slab {
      hsize_t start[2], stride[2], count[2], block[2];
    };
    const Slab slabs[] = {
        {{0, 0}, {1, 1}, {1, 1}, {kRows, kColumns}}, {{5, 7}, {1, 1}, {1, 1}, {600, 800}},
        {{1, 0}, {3, 1}, {230, 1}, {1, kColumns}},   {{2, 10}, {50, 40}, {13, 20}, {9, 30}},
        {{0, 3}, {1, 2}, {1, 400}, {kRows, 1}},      {{699, 899}, {1, 1}, {1, 1}, {1, 1}},
    };
    const Hid set(H5EScreate());
    std::vector<std::vector<int>> got(std::size(slabs)), wanted(std::size(slabs));
    std::vector<Hid> spaces;
    for (size_t i = 0; i < std::size(slabs); ++i) {
      const Slab& s = slabs[i];
      spaces.emplace_back(H5Scopy(space));
      ASSERT_GE(
          H5Sselect_hyperslab(spaces.back(), H5S_SELECT_SET, s.start, s.stride, s.count, s.block),
          0);
      for (hsize_t r = 0; r < s.count[0] * s.block[0]; ++r) {
        for (hsize_t c = 0; c < s.count[1] * s.block[1]; ++c) {
          const hsize_t row = s.start[0] + r / s.block[0] * s.stride[0] + r % s.block[0];
          const hsize_t column = s.start[1] + c / s.block[1] * s.stride[1] + c % s.block[1];
          wanted[i].push_back(all[row * kColumns + column]);
        }
      }
      got[i].assign(wanted[i].size(), -1);
      const hsize_t points = wanted[i].size();
      const Hid memory(H5Screate_simple(1, &points, nullptr));
      ASSERT_GE(H5Dread_async(dataset, H5T_NATIVE_INT, memory, spaces.back(), H5P_DEFAULT,
                              got[i].data(), set),
                0)
          << error_text();
      spaces.back().reset();  // it may be closed as soon as the call is over
    }
    EXPECT_EQ(wait(set, H5ES_WAIT_FOREVER), 0u);
    for (size_t i = 0; i < std::size(slabs); ++i) EXPECT_TRUE(got[i] == wanted[i]) << i;
  });
  if (plugged()) {
    EXPECT_GE(summary.counter("reads_deferred"), 5);
  }
}

// What is written while lanes read comes after.
TEST_P(ReadLater, WhatIsDoneMeanwhileDoesNotChangeIt) {
  const std::vector<std::function<void(hid_t, Hid&, Hid&)>> deeds = {
      [&](hid_t, Hid& dataset, Hid&) { rewrite(dataset, 9); },
      [&](hid_t, Hid& dataset, Hid& opened) {
        rewrite(dataset, 9);
        EXPECT_GE(H5Fflush(opened, H5F_SCOPE_GLOBAL), 0);
      },
      [&](hid_t, Hid& dataset, Hid& opened) {
        dataset.reset();
        EXPECT_GE(H5Ldelete(opened, "d", H5P_DEFAULT), 0);
        for (int i = 0; i < 3; ++i) put(opened, "n" + std::to_string(i), i, kLargeCount / 2);
      },
      [&](hid_t, Hid& dataset, Hid& opened) {
        dataset.reset();
        EXPECT_GE(H5Ldelete(opened, "d", H5P_DEFAULT), 0);
        opened.reset();
        put_large(create(file()), 9);
      },
      [&](hid_t, Hid& dataset, Hid& opened) {
        dataset.reset();
        opened.reset();
      },
      [&](hid_t set, Hid& dataset, Hid& opened) {
        EXPECT_GE(H5Dclose_async(dataset.release(), set), 0);
        EXPECT_GE(H5Fclose_async(opened.release(), set), 0);
      },
      [&](hid_t, Hid& dataset, Hid& opened) {
        dataset.reset();
        opened.reset();
        put_large(create(file()), 9);
      },
  };
  for (const auto& deed : deeds) {
    run_natively([&] { put_large(create(file()), 1); });
    const Summary summary = run([&] {
      Watch watch;
      Hid opened = open(file());
      Hid dataset = dataset_in(opened);
      const Hid set(H5EScreate());
      if (plugged()) watch.hold();
      std::vector<int> values(kLargeCount, -1);
      read_async(dataset, values, set);
      std::thread opener = watch.release_after(plugged() ? 50ms : 0ms);
      deed(set, dataset, opened);
      EXPECT_EQ(wait(set, H5ES_WAIT_FOREVER), 0u);
      opener.join();
      EXPECT_TRUE(values == elements(1, kLargeCount));
    });
    if (plugged()) {
      EXPECT_EQ(summary.counter("reads_deferred"), 1) << &deed - deeds.data();
    }
  }
}

TEST_P(ReadLater, BytesThatAreNotStoredYet) {
  run([&] {
    const Hid opened = create(file());
    const Hid dataset = put_large(opened, 1);
    EXPECT_GE(H5Fflush(opened, H5F_SCOPE_GLOBAL), 0);
    if (plugged()) storage::hold();
    storage::release_after(50ms);  // what goes through waits for it, too
    rewrite_part(dataset, 2, 1000, 70'000);
    rewrite_part(dataset, 3, 500'000, 100);
    std::vector<int> values(kLargeCount, -1);
    const Hid set(H5EScreate());
    read_async(dataset, values, set);
    EXPECT_EQ(wait(set, H5ES_WAIT_FOREVER), 0u);
    std::vector<int> wanted = elements(1, kLargeCount);
    const std::vector<int> second = elements(2, 70'000), third = elements(3, 100);
    std::ranges::copy(second, wanted.begin() + 1000);
    std::ranges::copy(third, wanted.begin() + 500'000);
    EXPECT_TRUE(values == wanted);
  });
}

TEST_P(ReadLater, SomeReadsAndWritesInTurn) {
  run([&] {
    const Hid opened = create(file());
    const Hid dataset = put_large(opened, 0);
    const Hid set(H5EScreate());
    std::vector<std::vector<int>> got(12);
    for (int i = 0; i < 12; ++i) {
      got[static_cast<size_t>(i)].assign(kLargeCount, -1);
      read_async(dataset, got[static_cast<size_t>(i)], set);
      const std::vector<int> next = elements(i + 1, kLargeCount);
      EXPECT_GE(
          H5Dwrite_async(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, next.data(), set),
          0);
    }
    EXPECT_EQ(wait(set, H5ES_WAIT_FOREVER), 0u);
    for (int i = 0; i < 12; ++i) {
      EXPECT_TRUE(got[static_cast<size_t>(i)] == elements(i, kLargeCount)) << i;
    }
  });
}

TEST_P(ReadLater, ExitWithoutWaiting) {
  run_natively([&] { put_large(create(file()), 1); });
  run([&] {
    auto& values = *new std::vector<int>(kLargeCount, -1);  // outlives the library
    const hid_t set = H5EScreate();
    Hid opened = open(file(), H5F_ACC_RDONLY);
    const hid_t dataset = dataset_in(opened).release();
    static_cast<void>(opened.release());
    read_async(dataset, values, set);
  });
}

TEST_P(ReadLater, AForkFindsItDone) {
  run_natively([&] { put_large(create(file()), 1); });
  run([&] {
    const Hid opened = open(file(), H5F_ACC_RDONLY);
    const Hid dataset = dataset_in(opened);
    const Hid set(H5EScreate());
    std::vector<int> values(kLargeCount, -1);
    read_async(dataset, values, set);
    const pid_t child = fork();
    if (child == 0) {
      const bool right = wait(set, H5ES_WAIT_FOREVER) == 0 && values == elements(1, kLargeCount);
      _exit(right ? 0 : 1);
    }
    EXPECT_EQ(wait(set, H5ES_WAIT_FOREVER), 0u);
    EXPECT_TRUE(values == elements(1, kLargeCount));
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  });
}

TEST_P(ReadLater, SeveralDatasetsInOneCall) {
  const Summary summary = run([&] {
    const Hid opened = create(file());
    std::vector<Hid> datasets;
    std::vector<std::vector<int>> got(4, std::vector<int>(kLargeCount, -1));
    std::vector<hid_t> ids, types(4, H5T_NATIVE_INT), spaces(4, H5S_ALL);
    std::vector<void*> buffers;
    for (int i = 0; i < 4; ++i) {
      const std::string name = "d" + std::to_string(i);
      put(opened, name, i, kLargeCount);
      datasets.emplace_back(H5Dopen2(opened, name.c_str(), H5P_DEFAULT));
      ids.push_back(datasets.back());
      buffers.push_back(got[static_cast<size_t>(i)].data());
    }
    const Hid set(H5EScreate());
    ASSERT_GE(H5Dread_multi_async(4, ids.data(), types.data(), spaces.data(), spaces.data(),
                                  H5P_DEFAULT, buffers.data(), set),
              0)
        << error_text();
    EXPECT_EQ(wait(set, H5ES_WAIT_FOREVER), 0u);
    for (int i = 0; i < 4; ++i) {
      EXPECT_TRUE(got[static_cast<size_t>(i)] == elements(i, kLargeCount)) << i;
    }
  });
  if (plugged()) {
    EXPECT_GE(summary.counter("read_bytes_deferred"), static_cast<int64_t>(4 * kLargeBytes));
  }
}

TEST_P(ReadLater, WhatIsConvertedIsReadAtOnce) {
  const Summary summary = run([&] {
    const Hid opened = create(file());
    const Hid dataset = put_large(opened, 1);
    std::vector<double> values(kLargeCount, -1);
    const Hid set(H5EScreate());
    ASSERT_GE(H5Dread_async(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT,
                            values.data(), set),
              0);
    const std::vector<int> wanted = elements(1, kLargeCount);
    EXPECT_TRUE(std::equal(values.begin(), values.end(), wanted.begin()));
    const Hid transfer(H5Pcreate(H5P_DATASET_XFER));
    H5Pset_data_transform(transfer, "x+1");
    std::vector<int> moved(kLargeCount);
    ASSERT_GE(H5Dread_async(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, transfer, moved.data(), set),
              0);
    EXPECT_EQ(moved[77], wanted[77] + 1);
    EXPECT_EQ(wait(set, H5ES_WAIT_FOREVER), 0u);
  });
  if (plugged()) {
    EXPECT_EQ(summary.fallback("read_converted"), 2);
    EXPECT_EQ(summary.counter("reads_deferred"), 0);
  }
}

TEST_P(ReadLater, WhatIsNeitherContiguousNorInChunksIsReadAtOnce) {
  const Summary summary = run([&] {
    const Hid opened = create(file());
    const Hid list(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_layout(list, H5D_COMPACT);
    const hsize_t extent = 1000;
    const Hid space(H5Screate_simple(1, &extent, nullptr));
    const Hid dataset(
        H5Dcreate2(opened, "c", H5T_NATIVE_INT, space, H5P_DEFAULT, list, H5P_DEFAULT));
    const std::vector<int> wanted = elements(1, extent);
    H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, wanted.data());
    std::vector<int> values(extent);
    const Hid set(H5EScreate());
    read_async(dataset, values, set);
    EXPECT_TRUE(values == wanted);
    EXPECT_EQ(wait(set, H5ES_WAIT_FOREVER), 0u);
  });
  if (plugged()) {
    EXPECT_EQ(summary.fallback("read_now"), 1);
  }
}

TEST_P(ReadLater, AFileThatIsWrittenThrough) {
  const Summary summary = run([&] {
    const Hid access(H5Pcreate(H5P_FILE_ACCESS));
    H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    const Hid opened = create(file(), access);
    const Hid dataset = put_large(opened, 1);
    ASSERT_GE(H5Fstart_swmr_write(opened), 0);
    std::vector<int> values(kLargeCount);
    const Hid set(H5EScreate());
    read_async(dataset, values, set);
    EXPECT_TRUE(values == elements(1, kLargeCount));
    EXPECT_EQ(wait(set, H5ES_WAIT_FOREVER), 0u);
  });
  if (plugged()) {
    EXPECT_EQ(summary.counter("reads_deferred"), 0);
    EXPECT_EQ(summary.fallback("read_now"), 1);
  }
}

// A blocking read of storage that is slower than memory: lanes read other parts of it meanwhile.
TEST_P(ReadLater, LanesHelpABlockingRead) {
  run_natively([&] { put_large(create(file()), 1); });
  const Summary summary = run([&] {
    Watch watch;
    watch.delay_ms = 5;
    const Hid opened = open(file(), H5F_ACC_RDONLY);
    const Hid dataset = dataset_in(opened);
    std::vector<int> values(kLargeCount);
    for (int i = 0; i < 8; ++i) {
      std::ranges::fill(values, -1);
      ASSERT_GE(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
      EXPECT_TRUE(values == elements(1, kLargeCount));
    }
    // Every second run of 16 Ki elements.
    const hsize_t start = 3, stride = 32 * 1024, times = 31, run_length = 16 * 1024;
    const hsize_t points = times * run_length;
    const Hid space(H5Dget_space(dataset));
    H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, &stride, &times, &run_length);
    std::vector<int> some(points, -1);
    ASSERT_GE(H5Dread(dataset, H5T_NATIVE_INT, Hid(H5Screate_simple(1, &points, nullptr)), space,
                      H5P_DEFAULT, some.data()),
              0);
    const std::vector<int> all = elements(1, kLargeCount);
    for (hsize_t i = 0; i < points; ++i) {
      ASSERT_EQ(some[i], all[start + i / run_length * stride + i % run_length]) << i;
    }
  });
  if (plugged()) {
    EXPECT_GT(summary.counter("read_bytes_by_lanes"), 0);
    EXPECT_EQ(summary.counter("reads_deferred"), 0);
  }
}

CONFORMANCE_WAYS(ReadLater, kNative, kImplicit, kDeferredAll, kAuto, kAtomic);

// Lanes that fail: native reads, made at once, have nothing of it.
class LateFailures : public LateReads {};

TEST_P(LateFailures, TheEventSetTells) {
  run_natively([&] { put_large(create(file()), 1); });
  run([&] {
    Watch watch;
    const Hid opened = open(file(), H5F_ACC_RDONLY);
    const Hid dataset = dataset_in(opened);
    const Hid set(H5EScreate());
    watch.hold();
    std::vector<int> values(kLargeCount, -1);
    read_async(dataset, values, set);
    EXPECT_TRUE(watch.wait_held());
    watch.lanes_fail = watch.program_fails = EIO;
    watch.release();
    const Failure failure = wait_failing(set);
    EXPECT_EQ(failure.call, "H5Dread_async");
    EXPECT_NE(failure.errors.find("cannot read"), std::string::npos) << failure.errors;
    EXPECT_NE(failure.errors.find("errno = 5"), std::string::npos) << failure.errors;
    // Storage recovers: reads come at once from now on, since the set may refuse them.
    watch.lanes_fail = watch.program_fails = 0;
    const Hid other(H5EScreate());
    read_async(dataset, values, other);
    EXPECT_TRUE(values == elements(1, kLargeCount));
    EXPECT_EQ(wait(other, H5ES_WAIT_FOREVER), 0u);
  });
}

TEST_P(LateFailures, EarlierAndLaterOperationsAreRight) {
  run_natively([&] { put_large(create(file()), 1); });
  run([&] {
    Watch watch;
    const Hid opened = open(file());
    const Hid dataset = dataset_in(opened);
    const Hid set(H5EScreate());
    watch.hold();
    std::vector<int> first(kLargeCount, -1);
    read_async(dataset, first, set);
    EXPECT_TRUE(watch.wait_held());
    watch.lanes_fail = watch.program_fails = EIO;
    std::thread opener = watch.release_after(30ms);
    rewrite(dataset, 2);  // waits for what fails
    opener.join();
    watch.lanes_fail = watch.program_fails = 0;
    const Failure failure = wait_failing(set);
    EXPECT_EQ(failure.call, "H5Dread_async");
    std::vector<int> values(kLargeCount, -1);
    ASSERT_GE(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
    EXPECT_TRUE(values == elements(2, kLargeCount));
  });
}

CONFORMANCE_WAYS(LateFailures, kImplicit, kDeferredAll, kAsyncName);

}  // namespace
}  // namespace tidelane::testing
