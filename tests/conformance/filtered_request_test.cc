// Requests for writes of whole filtered chunks: the call returns, the request completes when the chunks are stored.
#include <algorithm>
#include <thread>
#include <vector>

#include "conformance/event_set.h"
#include "conformance/filtered_fixture.h"

namespace tidelane::testing {
namespace {

using namespace std::chrono_literals;

class FilteredRequests : public Filtered {
 public:
  static void write_async(hid_t dataset, const std::vector<int>& values, hid_t set) {
    EXPECT_GE(
        H5Dwrite_async(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data(), set),
        0)
        << error_text();
  }
};

TEST_P(FilteredRequests, CompleteWhenTheChunksAreStored) {
  run_filtering(4, [&] {
    const Hid set(H5EScreate());
    const Hid opened = create(file());
    const Hid dataset = make(opened, "d", 2 * kRows, 2 * kColumns);
    const std::vector<int> values = elements(1, size_of(dataset));
    write_async(dataset, values, set);
    EXPECT_EQ(wait(set, H5ES_WAIT_FOREVER), 0u);
    EXPECT_TRUE(read(dataset) == values);
  });
  run_natively([&] { EXPECT_TRUE(read(open(file()), "d") == elements(1, 4 * kChunk)); });
}

TEST_P(FilteredRequests, TheCallReturnsWhileNothingIsFiltered) {
  if (!plugged() || GetParam().automatic()) return;
  const Summary summary = run_filtering(4, [&] {
    const Hid set(H5EScreate());
    const Hid opened = create(file());
    const Hid dataset = make(opened, "d", 2 * kRows, 2 * kColumns);
    {
      const BusyLane busy(opened);
      std::vector<int> values = elements(1, size_of(dataset));
      write_async(dataset, values, set);
      std::ranges::fill(values, -1);  // it has been copied
      EXPECT_EQ(wait(set, 0), 1u);
      EXPECT_EQ(wait(set, 5'000'000), 1u);
    }
    await_stored(opened);
    EXPECT_EQ(wait(set, H5ES_WAIT_FOREVER), 0u);
    EXPECT_TRUE(read(dataset) == elements(1, 4 * kChunk));
  });
  EXPECT_EQ(summary.counter("chunks_filtered_by_lanes"), 4);
  EXPECT_EQ(summary.counter("waits_filter"), 0);
}

TEST_P(FilteredRequests, WhoWaitsForEverHelps) {
  if (!plugged() || GetParam().automatic()) return;
  const Summary summary = run_filtering(4, [&] {
    const Hid set(H5EScreate());
    const Hid opened = create(file());
    const Hid dataset = make(opened, "d", 2 * kRows, 2 * kColumns);
    const BusyLane busy(opened);
    write_async(dataset, elements(1, size_of(dataset)), set);
    storage::release_after(200ms);
    EXPECT_EQ(wait(set, H5ES_WAIT_FOREVER), 0u);
  });
  EXPECT_GE(summary.counter("chunks_filtered_by_caller"), 1);
}

// Each of them completes, none before those issued earlier, and the last one counts.
TEST_P(FilteredRequests, OfTheSameChunks) {
  expect_as_natively(
      [](const std::string& path) {
        const Hid set(H5EScreate());
        const Hid opened = create(path);
        const Hid dataset = make(opened, "d", 2 * kRows, 2 * kColumns);
        const Hid other(H5Dopen2(opened, "d", H5P_DEFAULT));
        std::vector<std::vector<int>> values;
        {
          const BusyLane busy(opened);
          for (int seed = 1; seed < 6; ++seed) {
            values.push_back(elements(seed, size_of(dataset)));
            write_async(seed % 2 == 0 ? dataset : other, values.back(), set);
          }
          write(dataset, 6);
        }
        EXPECT_EQ(wait(set, H5ES_WAIT_FOREVER), 0u);
        EXPECT_TRUE(read(dataset) == elements(6, 4 * kChunk));
      },
      {"d"}, 20);
}

// The chunks of one dataset and the elements of another are one request.
TEST_P(FilteredRequests, OfDatasetsOfBothKinds) {
  expect_as_natively(
      [](const std::string& path) {
        const Hid set(H5EScreate());
        const Hid opened = create(path);
        const Hid filtered = make(opened, "filtered", 2 * kRows, kColumns);
        const Hid plain = make(opened, "plain", 2 * kRows, kColumns, "");
        const std::vector<int> a = elements(1, 2 * kChunk), b = elements(2, 2 * kChunk);
        hid_t datasets[] = {plain, filtered}, types[] = {H5T_NATIVE_INT, H5T_NATIVE_INT};
        hid_t all[] = {H5S_ALL, H5S_ALL};
        const void* buffers[] = {b.data(), a.data()};
        EXPECT_GE(H5Dwrite_multi_async(2, datasets, types, all, all, H5P_DEFAULT, buffers, set), 0);
        EXPECT_EQ(wait(set, H5ES_WAIT_FOREVER), 0u);
      },
      {"filtered", "plain"}, 2);
}

TEST_P(FilteredRequests, MayOutliveDatasetAndFile) {
  expect_as_natively(
      [](const std::string& path) {
        const Hid set(H5EScreate());
        const std::vector<int> values = elements(1, 4 * kChunk);
        {
          const Hid opened = create(path);
          write_async(make(opened, "d", 2 * kRows, 2 * kColumns), values, set);
        }
        EXPECT_EQ(wait(set, H5ES_WAIT_FOREVER), 0u);
      },
      {"d"}, 4);
}

// What storage refuses is told by the set, and is kept: the file is whole once storage has recovered.
TEST_P(FilteredRequests, FailWhenStorageDoes) {
  if (!plugged() || GetParam().automatic()) return;
  run(
      [&] {
        const Hid set(H5EScreate());
        const Hid opened = create(file());
        const Hid dataset = make(opened, "d", 2 * kRows, 2 * kColumns);
        EXPECT_GE(H5Fflush(opened, H5F_SCOPE_LOCAL), 0);
        const std::vector<int> values = elements(1, size_of(dataset));
        storage::fail_with(ENOSPC);
        write_async(dataset, values, set);
        size_t in_progress = 1;
        hbool_t failed = false;
        EXPECT_GE(H5ESwait(set, H5ES_WAIT_FOREVER, &in_progress, &failed), 0);
        EXPECT_TRUE(failed);
        storage::fail_with(0);
        EXPECT_GE(H5Fflush(opened, H5F_SCOPE_LOCAL), 0) << error_text();
      },
      one_lane());
  run_natively([&] { EXPECT_TRUE(read(open(file()), "d") == elements(1, 4 * kChunk)); });
}

CONFORMANCE_WAYS(FilteredRequests, kNative, kImplicit, kDeferredAll, kAuto, kAtomic);

}  // namespace
}  // namespace tidelane::testing
