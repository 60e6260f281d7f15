// Queries with an event set: the call returns before elements are looked at, lanes look at them, and what is done meanwhile changes nothing of
// what is found. Native HDF5 has no queries: what the program's own loop finds is the oracle. (Files are open for writing because HDF5 opens what a reference
// that it has read points to for writing.)
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "conformance/read_later.h"
#include "conformance/regions.h"
#include "support/memory_now.h"
#include "support/sanitizer.h"

namespace tidelane::testing {
namespace {

using namespace std::chrono_literals;

class QueryLater : public LateReads {
 public:
  static Hid above(int value) {
    return Hid(H5Qcreate(H5Q_TYPE_DATA_ELEM, H5Q_MATCH_GREATER_THAN, H5T_NATIVE_INT, &value));
  }

  // Row-major positions of the elements that match.
  static std::vector<hsize_t> positions(const std::vector<int>& values, int limit) {
    std::vector<hsize_t> found;
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] > limit) found.push_back(i);
    }
    return found;
  }
  // Such that some thousand elements are above.
  static int limit_of(std::vector<int> values) {
    const auto at = values.end() - 5000;
    std::ranges::nth_element(values, at);
    return *at;
  }

  static Hid ask(hid_t place, hid_t query, unsigned& result, hid_t set) {
    Hid view(H5Qapply_async(place, query, &result, H5P_DEFAULT, set));
    EXPECT_TRUE(view.valid()) << error_text();
    return view;
  }

  // In chunks of 64 Ki elements, compressed if that is wanted.
  static void put_chunked(hid_t location, const std::vector<int>& values, bool compressed) {
    const hsize_t extent = values.size(), most = H5S_UNLIMITED, chunk = 1u << 16;
    const Hid space(H5Screate_simple(1, &extent, &most));
    const Hid list(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_chunk(list, 1, &chunk);
    if (compressed) H5Pset_deflate(list, 1);
    const Hid dataset(
        H5Dcreate2(location, "d", H5T_NATIVE_INT, space, H5P_DEFAULT, list, H5P_DEFAULT));
    EXPECT_GE(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
  }

  void make_large() {
    run_natively([&] { put_large(create(file()), 1); });
  }

  // A query of the large dataset, with which lanes do not get on before they are released.
  struct Held {
    explicit Held(const std::string& path) : opened(open(path)) {}

    void ask_of(hid_t place) {
      watch.hold();
      view = ask(place, above(limit), result, set);
    }
    void expect_pending() {
      EXPECT_TRUE(watch.wait_held());
      EXPECT_EQ(wait(set, H5ES_WAIT_NONE), 1u);
      EXPECT_EQ(result, 0u);
    }
    void expect_found(const std::string& name = "/d") {
      EXPECT_EQ(wait(set), 0u);
      EXPECT_EQ(result, H5Q_REF_REG);
      EXPECT_EQ(regions(view), (std::vector<Region>{{name, positions(values, limit)}}));
    }

    const std::vector<int> values = elements(1, kLargeCount);
    const int limit = limit_of(values);
    Watch watch;
    Hid opened;
    const Hid set{H5EScreate()};
    unsigned result = 0;
    Hid view;
  };

  // What is done while lanes are held must not matter.
  void finds_what_was_there(const std::function<void(Held&)>& meanwhile,
                            const std::string& name = "/d") {
    make_large();
    const Summary summary = run([&] {
      Held held(file());
      held.ask_of(held.opened);
      EXPECT_EQ(count(held.set), 1u);
      EXPECT_TRUE(held.watch.wait_held());
      std::thread opener = held.watch.release_after(50ms);
      meanwhile(held);
      opener.join();
      held.expect_found(name);
    });
    EXPECT_EQ(summary.counter("reads_deferred"), 1);
    EXPECT_GT(summary.counter("read_bytes_by_lanes"), 0);
  }
};

TEST_P(QueryLater, ReturnsBeforeStorageAnswers) {
  make_large();
  const Summary summary = run([&] {
    Held held(file());
    held.ask_of(held.opened);
    EXPECT_EQ(count(held.set), 1u);
    held.expect_pending();
    EXPECT_EQ(wait(held.set, 20'000'000), 1u);
    EXPECT_EQ(held.result, 0u);
    EXPECT_EQ(held.watch.by_program(), 0u);
    held.watch.release();
    held.expect_found();
  });
  EXPECT_EQ(summary.counter("reads_deferred"), 1);
  EXPECT_EQ(summary.counter("read_bytes_deferred"), static_cast<int64_t>(kLargeBytes));
  EXPECT_GT(summary.counter("read_bytes_by_lanes"), 0);
}

TEST_P(QueryLater, WhatIsWrittenMeanwhileIsNotFound) {
  finds_what_was_there([](Held& held) { rewrite(dataset_in(held.opened), 2); });
}

TEST_P(QueryLater, ADatasetThatIsRenamedMeanwhileIsFound) {
  finds_what_was_there(
      [](Held& held) {
        EXPECT_GE(H5Lmove(held.opened, "d", held.opened, "e", H5P_DEFAULT, H5P_DEFAULT), 0);
      },
      "/e");
}

// Its reference leads nowhere then, as any would.
TEST_P(QueryLater, ADatasetThatIsDeletedMeanwhileIsFound) {
  make_large();
  run([&] {
    Held held(file());
    held.ask_of(held.opened);
    EXPECT_TRUE(held.watch.wait_held());
    std::thread opener = held.watch.release_after(50ms);
    EXPECT_GE(H5Ldelete(held.opened, "d", H5P_DEFAULT), 0) << error_text();
    opener.join();
    put_large(held.opened, 2);
    EXPECT_EQ(wait(held.set), 0u);
    EXPECT_EQ(held.result, H5Q_REF_REG);
    EXPECT_EQ(references_in(held.view), 1);
    expect_dataset(held.opened, "d", 2, kLargeCount);
  });
}

TEST_P(QueryLater, NothingOfItIsSeenNorWaitedFor) {
  run_natively([&] {
    const Hid opened = create(file());
    put_large(opened, 1);
    put(opened, "e", 2);
  });
  run([&] {
    Held held(file());
    const Hid place = dataset_in(held.opened);
    const ssize_t before = H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL);
    held.ask_of(place);
    EXPECT_EQ(H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL), before + 1) << "the view";
    EXPECT_EQ(H5Fget_obj_count(held.opened, H5F_OBJ_ALL), 2);
    EXPECT_EQ(H5Iget_ref(held.opened), 1);
    expect_dataset(held.opened, "e", 2);
    held.expect_pending();
    held.watch.release();
    held.expect_found();
  });
}

TEST_P(QueryLater, ADatasetIsClosedMeanwhile) {
  make_large();
  run([&] {
    Held held(file());
    Hid dataset = dataset_in(held.opened);
    const hid_t id = dataset;
    held.ask_of(dataset);
    EXPECT_EQ(H5Iget_ref(dataset), 1);
    dataset.reset();
    EXPECT_EQ(H5Iis_valid(id), 0);
    held.expect_pending();
    held.watch.release();
    held.expect_found();
  });
}

TEST_P(QueryLater, TheFileIsClosedMeanwhile) {
  make_large();
  run([&] {
    Held held(file());
    held.ask_of(held.opened);
    std::thread opener = held.watch.release_after(50ms);
    held.opened.reset();
    opener.join();
    EXPECT_EQ(held.result, H5Q_REF_REG) << "the close has it answered";
    EXPECT_EQ(wait(held.set), 0u);
    EXPECT_EQ(references_in(held.view), 1);
    put_large(create(file()), 1);  // a reference would not keep it open
  });
}

TEST_P(QueryLater, AViewThatIsClosedMeanwhile) {
  make_large();
  run([&] {
    Held held(file());
    held.ask_of(held.opened);
    held.view.reset();
    held.watch.release();
    EXPECT_EQ(wait(held.set), 0u);
    EXPECT_EQ(held.result, H5Q_REF_REG);
  });
}

// Lanes keep hits, and nothing of what they have read: however many datasets there are.
TEST_P(QueryLater, ManyDatasetsTakeNoMoreMemoryThanFew) {
  if (sanitized()) GTEST_SKIP() << "sanitizers keep what was freed";
  constexpr hsize_t kChunk = 1u << 21;  // elements: 8 MiB
  constexpr int kDatasets = 40;
  const Summary summary = run([&] {
    const Hid opened = create(file());
    const Hid space(H5Screate_simple(1, &kChunk, nullptr));
    const Hid list(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_chunk(list, 1, &kChunk);
    H5Pset_deflate(list, 1);
    for (int i = 0; i < kDatasets; ++i) {
      EXPECT_TRUE(Hid(H5Dcreate2(opened, ("d" + std::to_string(i)).c_str(), H5T_NATIVE_INT, space,
                                 H5P_DEFAULT, list, H5P_DEFAULT))
                      .valid());
    }
    const Hid set(H5EScreate());
    unsigned result = 99;
    const uint64_t before = memory_now().resident;
    const Hid view = ask(opened, above(0), result, set);
    while (wait(set, 1'000'000) != 0) EXPECT_LT(memory_now().resident - before, 150u << 20);
    EXPECT_EQ(result, 0u) << "the fill value is nowhere above 0";
    EXPECT_LT(memory_now().resident - before, 150u << 20);
  });
  EXPECT_EQ(summary.counter("reads_deferred"), kDatasets);
}

TEST_P(QueryLater, ChunksAndWhatIsOnItsWay) {
  const std::vector<int> values = elements(3, kLargeCount);
  const int limit = limit_of(values);
  for (const bool compressed : {false, true}) {
    const Summary summary = run([&] {
      const Hid opened = create(file());
      put_chunked(opened, values, compressed);
      const Hid set(H5EScreate());
      unsigned result = 0;
      const Hid dataset = dataset_in(opened);
      const Hid view = ask(dataset, above(limit), result, set);
      const hsize_t more = values.size() + 100000;
      EXPECT_GE(H5Dset_extent(dataset, &more), 0);
      rewrite_part(dataset, 4, 0, values.size());
      EXPECT_EQ(wait(set), 0u);
      EXPECT_EQ(regions(view), (std::vector<Region>{{"/d", positions(values, limit)}}));
    });
    EXPECT_EQ(summary.counter("reads_deferred"), 1);
    if (compressed) {
      EXPECT_EQ(summary.counter("chunks_by_lanes") + summary.counter("chunks_by_callers"), 16);
    }
  }
}

TEST_P(QueryLater, SeveralPlacesInOrder) {
  const std::vector<int> values = elements(1, kLargeCount);
  const int limit = limit_of(values);
  run([&] {
    const Hid opened = create(file());
    std::vector<hid_t> places;
    std::vector<Hid> groups;
    std::vector<Region> expected;
    for (const char* name : {"c", "a", "b"}) {
      groups.emplace_back(H5Gcreate2(opened, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
      places.push_back(groups.back());
      put(groups.back(), "d", 1, kLargeCount);
      put(groups.back(), "small", 1, 100);  // looked at within the call
      const std::vector<int> small = elements(1, 100);
      expected.push_back({std::string("/") + name + "/d", positions(values, limit)});
      if (const auto found = positions(small, limit); !found.empty())
        expected.push_back({std::string("/") + name + "/small", found});
    }
    const Hid set(H5EScreate());
    unsigned result = 0;
    const Hid view(H5Qapply_multi_async(places.size(), places.data(), above(limit), &result,
                                        H5P_DEFAULT, set));
    EXPECT_EQ(count(set), 3u);
    EXPECT_EQ(wait(set), 0u);
    EXPECT_EQ(result, H5Q_REF_REG);
    EXPECT_EQ(regions(view), expected);
  });
}

TEST_P(QueryLater, PlacesOfSeveralColumns) {
  const std::vector<int> x = elements(1, kLargeCount), y = elements(2, kLargeCount);
  const int limit = limit_of(x), other = 0;
  run([&] {
    const Hid opened = create(file());
    put(opened, "x", 1, kLargeCount);
    put(opened, "y", 2, kLargeCount);
    const Hid about_x(tidelane_query_named(H5Q_TYPE_DATA_ELEM, "x", H5Q_MATCH_GREATER_THAN,
                                           H5T_NATIVE_INT, &limit));
    const Hid about_y(tidelane_query_named(H5Q_TYPE_DATA_ELEM, "y", H5Q_MATCH_GREATER_THAN,
                                           H5T_NATIVE_INT, &other));
    const Hid both(H5Qcombine(about_x, H5Q_COMBINE_AND, Hid(H5Qnegate(about_y))));
    std::vector<hsize_t> expected;
    for (size_t i = 0; i < x.size(); ++i) {
      if (x[i] > limit && !(y[i] > other)) expected.push_back(i);
    }
    const Hid set(H5EScreate());
    unsigned result = 0;
    const Hid view = ask(opened, both, result, set);
    EXPECT_EQ(wait(set), 0u);
    std::vector<Region> wanted;
    if (!expected.empty()) wanted = {{"/x", expected}, {"/y", expected}};
    EXPECT_EQ(regions(view), wanted);
  });
}

// Of a file whose place has told everything, while another one's has not, nothing is kept open.
TEST_P(QueryLater, OneOfSeveralFilesIsClosed) {
  const std::vector<int> values = elements(1, kLargeCount);
  const int limit = limit_of(values);
  const std::string small = in_folder("small.h5");
  run_natively([&] {
    put_large(create(file()), 1);
    put(create(small), "s", 3, 100);
  });
  run([&] {
    Watch watch;
    Hid first = open(small, H5F_ACC_RDONLY);  // a lane that is held could not store it
    const Hid second = open(file());
    hid_t places[] = {first, second};
    const Hid set(H5EScreate());
    unsigned result = 0;
    watch.hold();
    const Hid view(H5Qapply_multi_async(2, places, above(limit), &result, H5P_DEFAULT, set));
    EXPECT_EQ(wait(set, H5ES_WAIT_NONE), 1u);
    const hid_t id = first;
    first.reset();
    EXPECT_EQ(H5Iis_valid(id), 0);
    EXPECT_EQ(H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_FILE), 1);
    watch.release();
    EXPECT_EQ(wait(set), 0u);
    const std::vector<hsize_t> few = positions(elements(3, 100), limit);
    std::vector<Region> expected;
    if (!few.empty()) expected.push_back({"/s", few});
    expected.push_back({"/d", positions(values, limit)});
    EXPECT_EQ(regions(view), expected);
  });
}

TEST_P(QueryLater, WhereTheProgramHasNoIdentifierOfTheFile) {
  make_large();
  run([&] {
    Held held(file());
    const Hid dataset = dataset_in(held.opened);
    held.opened.reset();
    held.view = ask(dataset, above(held.limit), held.result, held.set);
    held.expect_found();
  });
}

// HDF5 may have all of a small dataset in its sieve buffer, and nobody else what was written last.
TEST_P(QueryLater, WhatASieveBufferHas) {
  const hsize_t count = 100000;
  run([&] {
    const Hid access(H5Pcreate(H5P_FILE_ACCESS));
    EXPECT_GE(H5Pset_sieve_buf_size(access, 1u << 20), 0);
    const Hid opened = create(file(), access);
    put(opened, "d", 1, count);
    std::vector<int> values = elements(1, count);
    const int limit = limit_of(values);
    const Hid dataset = dataset_in(opened);
    const hsize_t start = 10, stride = 50, pieces = 1000;
    const Hid some(H5Dget_space(dataset));
    H5Sselect_hyperslab(some, H5S_SELECT_SET, &start, &stride, &pieces, nullptr);
    const std::vector<int> high(pieces, INT_MAX);
    EXPECT_GE(H5Dwrite(dataset, H5T_NATIVE_INT, Hid(H5Screate_simple(1, &pieces, nullptr)), some,
                       H5P_DEFAULT, high.data()),
              0);
    for (hsize_t i = 0; i < pieces; ++i) values[start + i * stride] = INT_MAX;
    const Hid set(H5EScreate());
    unsigned result = 0;
    const Hid view = ask(opened, above(limit), result, set);
    EXPECT_EQ(wait(set), 0u);
    EXPECT_EQ(regions(view), (std::vector<Region>{{"/d", positions(values, limit)}}));
  });
}

// An open dataset refuses one more open with another prefix of external files.
TEST_P(QueryLater, ADatasetThatItHasFoundIsOpenedByAnotherAccessList) {
  run([&] {
    Watch watch;
    const Hid opened = create(file());
    put_large(opened, 1);
    const hsize_t extent = 100;
    const Hid list(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_external(list, in_folder("raw").c_str(), 0, 400);
    const Hid space(H5Screate_simple(1, &extent, nullptr));
    Hid external(H5Dcreate2(opened, "e", H5T_NATIVE_INT, space, H5P_DEFAULT, list, H5P_DEFAULT));
    const std::vector<int> ones(100, 1);
    EXPECT_GE(H5Dwrite(external, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, ones.data()), 0);
    external.reset();
    EXPECT_GE(H5Fflush(opened, H5F_SCOPE_LOCAL), 0);
    const Hid set(H5EScreate());
    unsigned result = 0;
    watch.hold();
    const Hid view = ask(opened, above(0), result, set);
    const Hid access(H5Pcreate(H5P_DATASET_ACCESS));
    H5Pset_efile_prefix(access, "${ORIGIN}");
    external = Hid(H5Dopen2(opened, "e", access));
    EXPECT_TRUE(external.valid()) << error_text();
    EXPECT_EQ(wait(set, H5ES_WAIT_NONE), 1u);
    watch.release();
    EXPECT_EQ(wait(set), 0u);
    EXPECT_EQ(references_in(view), 2);
  });
}

TEST_P(QueryLater, WhatOnlyHdf5CanReadIsLookedAtAtOnce) {
  const std::vector<int> values = elements(1, kLargeCount);
  const int limit = limit_of(values);
  const Summary summary = run([&] {
    const Hid opened = create(file());
    const hsize_t extent = values.size();
    const Hid space(H5Screate_simple(1, &extent, nullptr));
    const Hid list(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_external(list, in_folder("raw").c_str(), 0, kLargeBytes);
    const Hid dataset(
        H5Dcreate2(opened, "d", H5T_NATIVE_INT, space, H5P_DEFAULT, list, H5P_DEFAULT));
    EXPECT_GE(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
    const Hid set(H5EScreate());
    unsigned result = 0;
    const Hid view = ask(dataset, above(limit), result, set);
    EXPECT_EQ(wait(set), 0u);
    EXPECT_EQ(regions(view), (std::vector<Region>{{"/d", positions(values, limit)}}));
  });
  EXPECT_EQ(summary.fallback("query_now"), 1);
  EXPECT_EQ(summary.counter("reads_deferred"), 0);
}

TEST_P(QueryLater, WhatLanesCannotReadHdf5LooksAtOnceMore) {
  make_large();
  const Summary summary = run([&] {
    Held held(file());
    held.watch.lanes_fail = EIO;
    held.ask_of(held.opened);
    EXPECT_TRUE(held.watch.wait_held());
    held.watch.release();
    held.expect_found();
  });
  EXPECT_EQ(summary.fallback("read_failed"), 1);
}

TEST_P(QueryLater, AFailureIsItsOwnAndNobodyElses) {
  make_large();
  run([&] {
    Held held(file());
    held.watch.lanes_fail = EIO;
    held.ask_of(held.opened);
    EXPECT_TRUE(held.watch.wait_held());
    held.watch.program_fails = EIO;
    held.watch.release();
    const Failure failure = wait_failing(held.set);
    EXPECT_NE(failure.errors.find("Input/output error"), std::string::npos) << failure.errors;
    EXPECT_NE(failure.errors.find(file()), std::string::npos) << failure.errors;
    held.watch.lanes_fail = 0;
    held.watch.program_fails = 0;
    EXPECT_EQ(held.result, 0u);
    EXPECT_TRUE(regions(held.view).empty());
    put(held.opened, "e", 1);
    EXPECT_GE(H5Fflush(held.opened, H5F_SCOPE_LOCAL), 0) << error_text();
    expect_dataset(held.opened, "e", 1);
  });
}

TEST_P(QueryLater, ExitWithoutWaiting) {
  make_large();
  run([&] {
    const hid_t opened = open(file()).release();
    const hid_t set = H5EScreate();
    static unsigned result = 0;
    static_cast<void>(ask(opened, above(0), result, set).release());
  });
}

TEST_P(QueryLater, AForkFindsItDone) {
  make_large();
  run([&] {
    Held held(file());
    held.view = ask(held.opened, above(held.limit), held.result, held.set);
    const pid_t child = fork();
    if (child == 0) _exit(held.result == H5Q_REF_REG ? 0 : 1);
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    held.expect_found();
  });
}

CONFORMANCE_WAYS(QueryLater, kImplicit, kDeferredAll, kAuto);

}  // namespace
}  // namespace tidelane::testing
