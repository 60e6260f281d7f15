// Explicit mode: H5*_async calls, and event sets that say how far their operations are.
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "conformance/event_set.h"
#include "conformance/fixture.h"

namespace tidelane::testing {
namespace {

using namespace std::chrono_literals;

class Explicit : public Conformance {
 public:
  static uint64_t op_counter(hid_t set) {
    uint64_t operations = UINT64_MAX;
    EXPECT_GE(H5ESget_op_counter(set, &operations), 0);
    return operations;
  }
  static Hid line(size_t elements) {
    const hsize_t extent = elements;
    return Hid(H5Screate_simple(1, &extent, nullptr));
  }
  // A file with an empty dataset "d" that is stored: what a test then writes is all that is pending.
  Hid dataset_in(hid_t opened) {
    Hid dataset(H5Dcreate2(opened, "d", H5T_NATIVE_INT, line(kElements), H5P_DEFAULT, H5P_DEFAULT,
                           H5P_DEFAULT));
    EXPECT_GE(H5Fflush(opened, H5F_SCOPE_GLOBAL), 0);
    return dataset;
  }
  static herr_t write_async(hid_t dataset, const std::vector<int>& values, hid_t set) {
    return H5Dwrite_async(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data(),
                          set);
  }
};

TEST_P(Explicit, EveryKindOfCallIsStoredWhenItsSetIsDone) {
  const Gong done;
  const Gong seen;
  Child writer(environment(), [&] {
    const Hid set(H5EScreate());
    Hid opened(H5Fcreate_async(file().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT, set));
    Hid group(H5Gcreate_async(opened, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT, set));
    Hid dataset(H5Dcreate_async(group, "d", H5T_NATIVE_INT, line(kElements), H5P_DEFAULT,
                                H5P_DEFAULT, H5P_DEFAULT, set));
    Hid attribute(
        H5Acreate_async(dataset, "a", H5T_NATIVE_INT, line(1), H5P_DEFAULT, H5P_DEFAULT, set));
    const int answer = 42;
    EXPECT_GE(H5Awrite_async(attribute, H5T_NATIVE_INT, &answer, set), 0);
    const std::vector<int> values = elements(1, kElements);
    EXPECT_GE(write_async(dataset, values, set), 0);
    std::vector<int> back(kElements);
    EXPECT_GE(
        H5Dread_async(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, back.data(), set), 0);
    EXPECT_GE(H5Fflush_async(opened, H5F_SCOPE_GLOBAL, set), 0);
    EXPECT_GE(H5Aclose_async(attribute.release(), set), 0);
    EXPECT_GE(H5Dclose_async(dataset.release(), set), 0);
    EXPECT_GE(H5Gclose_async(group.release(), set), 0);
    EXPECT_GE(H5Fclose_async(opened.release(), set), 0);
    EXPECT_EQ(wait(set, H5ES_WAIT_FOREVER), 0u);
    EXPECT_TRUE(back == values);
    EXPECT_EQ(count(set), 0u);
    done.ring();
    EXPECT_TRUE(seen.wait());
  });
  ASSERT_TRUE(done.wait());
  expect_natively(
      file(), {{"g/d", 1}});  // what a set is done with is another process's to read, in every way
  seen.ring();
  writer.expect_success();
  EXPECT_TRUE(!plugged() || writer.summary(summaries()).counter("bytes_deferred") > 0);
}

TEST_P(Explicit, WaitOfNoTimeStartsTheWorkAndReturns) {
  run_deferring([&] {
    const Hid opened = create(file());
    const Hid dataset = dataset_in(opened);
    const Hid set(H5EScreate());
    if (plugged()) storage::hold();
    const std::vector<int> values = elements(1, kElements);
    EXPECT_GE(write_async(dataset, values, set), 0);
    if (!plugged()) return;
    EXPECT_EQ(count(set), 1u);
    EXPECT_EQ(wait(set, H5ES_WAIT_NONE), 1u);
    EXPECT_TRUE(storage::wait_held())
        << "nothing was started";  // long before the bytes have lingered
    EXPECT_EQ(wait(set, H5ES_WAIT_NONE), 1u);
    storage::release();
    EXPECT_EQ(wait(set, H5ES_WAIT_FOREVER), 0u);
    EXPECT_EQ(wait(set, H5ES_WAIT_NONE), 0u);
  });
  expect_natively(file(), {{"d", 1}});
}

TEST_P(Explicit, WaitOfSomeTimeEndsInTime) {
  run_deferring([&] {
    const Hid opened = create(file());
    const Hid dataset = dataset_in(opened);
    const Hid set(H5EScreate());
    if (plugged()) storage::hold();
    EXPECT_GE(write_async(dataset, elements(1, kElements), set), 0);
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(wait(set, 30'000'000), plugged() ? 1u : 0u);
    const auto waited = std::chrono::steady_clock::now() - begin;
    EXPECT_TRUE(!plugged() || waited >= 30ms);
    EXPECT_LT(waited, 15s);
    storage::release_after(20ms);
    EXPECT_EQ(wait(set, 20'000'000'000), 0u);
  });
  expect_natively(file(), {{"d", 1}});
}

TEST_P(Explicit, TheBufferIsTheProgramsAgainAtOnce) {
  run_deferring([&] {
    const Hid opened = create(file());
    const Hid dataset = dataset_in(opened);
    const Hid set(H5EScreate());
    {
      std::vector<int> values = elements(1, kElements);
      EXPECT_GE(write_async(dataset, values, set), 0);
      std::memset(values.data(), 0xEE, values.size() * sizeof(int));
    }
    std::vector<int> back(kElements);
    EXPECT_GE(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, back.data()), 0);
    EXPECT_TRUE(back == elements(1, kElements));
    EXPECT_EQ(wait(set, H5ES_WAIT_FOREVER), 0u);
  });
  expect_natively(file(), {{"d", 1}});
}

TEST_P(Explicit, CountersCountOperations) {
  run_deferring([&] {
    const Hid opened = create(file());
    const Hid dataset = dataset_in(opened);
    const Hid set(H5EScreate());
    EXPECT_EQ(count(set), 0u);
    EXPECT_EQ(op_counter(set), 0u);
    if (plugged()) storage::hold();
    for (int i = 0; i < 3; ++i) EXPECT_GE(write_async(dataset, elements(i, kElements), set), 0);
    EXPECT_EQ(count(set), plugged() ? 3u : 0u);
    EXPECT_EQ(op_counter(set), plugged() ? 3u : 0u);  // HDF5 counts only what it can wait for
    storage::release_after(20ms);
    EXPECT_EQ(wait(set, H5ES_WAIT_FOREVER), 0u);
    EXPECT_EQ(count(set), 0u);
    EXPECT_EQ(op_counter(set), plugged() ? 3u : 0u);
  });
  expect_natively(file(), {{"d", 2}});
}

class ExplicitPlugged : public Explicit {};  // what native HDF5, done at once, has nothing of

struct Seen {
  std::vector<std::string> inserted;
  std::vector<std::string> completed;
  std::vector<H5ES_status_t> statuses;
};

int note_insert(const H5ES_op_info_t* operation, void* seen) {
  static_cast<Seen*>(seen)->inserted.emplace_back(operation->api_name);
  return 0;
}

int note_complete(const H5ES_op_info_t* operation, H5ES_status_t status, hid_t, void* seen) {
  static_cast<Seen*>(seen)->completed.emplace_back(operation->api_name);
  static_cast<Seen*>(seen)->statuses.push_back(status);
  return 0;
}

TEST_P(ExplicitPlugged, InsertAndCompleteFunctionsSeeEveryOperationInOrder) {
  run_deferring([&] {
    const Hid opened = create(file());
    const Hid dataset = dataset_in(opened);
    const Hid set(H5EScreate());
    Seen seen;
    EXPECT_GE(H5ESregister_insert_func(set, note_insert, &seen), 0);
    EXPECT_GE(H5ESregister_complete_func(set, note_complete, &seen), 0);
    storage::hold();
    EXPECT_GE(write_async(dataset, elements(1, kElements), set), 0);
    EXPECT_GE(H5Fflush_async(opened, H5F_SCOPE_GLOBAL, set), 0);
    const std::vector<std::string> expected{"H5Dwrite_async", "H5Fflush_async"};
    EXPECT_EQ(seen.inserted, expected);
    EXPECT_EQ(wait(set, H5ES_WAIT_NONE), 2u);
    EXPECT_TRUE(seen.completed.empty());
    storage::release();
    EXPECT_EQ(wait(set, H5ES_WAIT_FOREVER), 0u);
    EXPECT_EQ(seen.completed, expected);
    EXPECT_EQ(seen.statuses, std::vector<H5ES_status_t>(2, H5ES_STATUS_SUCCEED));
  });
}

TEST_P(Explicit, CancelCancelsNothingThatHdf5HasAlreadyIndexed) {
  run_deferring([&] {
    const Hid opened = create(file());
    const Hid dataset = dataset_in(opened);
    const Hid set(H5EScreate());
    if (plugged()) storage::hold();
    EXPECT_GE(write_async(dataset, elements(1, kElements), set), 0);
    EXPECT_GE(write_async(dataset, elements(2, kElements), set), 0);
    size_t not_canceled = SIZE_MAX;
    hbool_t failed = true;
    EXPECT_GE(H5EScancel(set, &not_canceled, &failed), 0) << error_text();
    EXPECT_EQ(not_canceled, plugged() ? 2u : 0u);
    EXPECT_FALSE(failed);
    storage::release();
    EXPECT_EQ(wait(set, H5ES_WAIT_FOREVER), 0u);
  });
  expect_natively(file(), {{"d", 2}});
}

TEST_P(ExplicitPlugged, AnAsynchronousCloseReturnsBeforeTheBytesAreStored) {
  const Summary summary = run_deferring([&] {
    const Hid set(H5EScreate());
    Hid opened = create(file());
    storage::hold();
    put(opened, "d", 1);
    EXPECT_GE(H5Fclose_async(opened.release(), set), 0) << error_text();
    EXPECT_TRUE(storage::wait_held());
    EXPECT_EQ(wait(set, H5ES_WAIT_NONE), 1u);
    Hid again = open(file());
    expect_dataset(again, "d", 1);
    EXPECT_GE(H5Fclose_async(again.release(), set), 0) << error_text();
    storage::release();
    EXPECT_EQ(wait(set, H5ES_WAIT_FOREVER), 0u);
    EXPECT_NE(bytes_on_storage(file()).find("HDF"), std::string::npos);
  });
  EXPECT_EQ(summary.counter("files_adopted"), 1);
  EXPECT_GE(summary.counter("closes_deferred"), 1);
  expect_natively(file(), {{"d", 1}});
}

TEST_P(Explicit, ExitWithoutWaitingLosesNothing) {
  run_deferring([&] {
    const hid_t set = H5EScreate();
    Hid opened = create(file());
    Hid dataset = dataset_in(opened);
    EXPECT_GE(write_async(dataset, elements(1, kElements), set), 0);
    EXPECT_GE(H5Dclose_async(dataset.release(), set), 0);
    EXPECT_GE(H5Fclose_async(opened.release(), set), 0);
    EXPECT_TRUE(!plugged() || count(set) >= 1);
  });
  expect_natively(file(), {{"d", 1}});
}

TEST_P(Explicit, ManySetsOverTwoFilesWaitInAnyOrder) {
  const std::string other = in_folder("other.h5");
  run_deferring([&] {
    const Hid first = create(file());
    const Hid second = create(other);
    const Hid in_first = dataset_in(first);
    const Hid in_second = dataset_in(second);
    std::vector<Hid> sets;
    for (int i = 0; i < 6; ++i) {
      sets.emplace_back(H5EScreate());
      EXPECT_GE(write_async(i % 2 == 0 ? in_first : in_second, elements(i, kElements), sets.back()),
                0);
    }
    for (const int i : {5, 0, 3, 2, 4, 1}) EXPECT_EQ(wait(sets[i], H5ES_WAIT_FOREVER), 0u) << i;
  });
  expect_natively(file(), {{"d", 4}});
  expect_natively(other, {{"d", 5}});
}

CONFORMANCE_WAYS(Explicit, kNative, kImplicit, kDeferredAll, kAsyncName, kAtomic);
CONFORMANCE_WAYS(ExplicitPlugged, kImplicit, kDeferredAll, kAsyncName);

}  // namespace
}  // namespace tidelane::testing
