// A background write that failed is told by the next call that would change that file, before it does anything, and
// by no call for another file.
#include <cerrno>
#include <functional>
#include <utility>
#include <vector>

#include "conformance/fixture.h"

namespace tidelane::testing {
namespace {

class Telling : public Conformance {
 public:
  static Hid line() {
    const hsize_t extent = kElements;
    return Hid(H5Screate_simple(1, &extent, nullptr));
  }
  // Returns when a write to the dataset has failed in the background, told only to its event set.
  static void fail_in_background(hid_t dataset) {
    storage::fail_with(ENOSPC);
    const Hid set(H5EScreate());
    const std::vector<int> values = elements(1, kElements);
    EXPECT_GE(
        H5Dwrite_async(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data(), set),
        0);
    size_t in_progress = 0;
    hbool_t failed = false;
    EXPECT_GE(H5ESwait(set, H5ES_WAIT_FOREVER, &in_progress, &failed), 0);
    EXPECT_TRUE(failed);
  }
  void expect_told(bool succeeded, const std::string& what) const {
    const std::string text = error_text();
    EXPECT_FALSE(succeeded) << what;
    EXPECT_NE(text.find("No space left on device"), std::string::npos) << what << "\n" << text;
    EXPECT_NE(text.find(file()), std::string::npos) << what << "\n" << text;
  }
};

TEST_P(Telling, EveryKindOfChangeFailsOnceAndThenGoesOn) {
  const Summary summary = run([&] {
    const Hid opened = create(file());
    put(opened, "d", 0);
    const Hid dataset(H5Dopen2(opened, "d", H5P_DEFAULT));
    const hsize_t unlimited = H5S_UNLIMITED;
    const hsize_t extent = 8;
    const Hid growing_space(H5Screate_simple(1, &extent, &unlimited));
    const Hid chunked(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_chunk(chunked, 1, &extent);
    const Hid growing(H5Dcreate2(opened, "growing", H5T_NATIVE_INT, growing_space, H5P_DEFAULT,
                                 chunked, H5P_DEFAULT));
    const Hid one(H5Screate(H5S_SCALAR));
    const Hid attribute(H5Acreate2(dataset, "a", H5T_NATIVE_INT, one, H5P_DEFAULT, H5P_DEFAULT));
    const Hid space = line();
    const std::vector<int> values = elements(2, kElements);
    const hsize_t larger = 16;
    const Hid type(H5Tcopy(H5T_NATIVE_INT));
    const std::vector<std::pair<std::string, std::function<bool()>>> changes = {
        {"dataset write",
         [&] {
           return H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >=
                  0;
         }},
        {"dataset create",
         [&] {
           return Hid(H5Dcreate2(opened, "new", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT,
                                 H5P_DEFAULT))
               .valid();
         }},
        {"set extent", [&] { return H5Dset_extent(growing, &larger) >= 0; }},
        {"group create",
         [&] {
           return Hid(H5Gcreate2(opened, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)).valid();
         }},
        {"attribute create",
         [&] {
           return Hid(H5Acreate2(opened, "b", H5T_NATIVE_INT, one, H5P_DEFAULT, H5P_DEFAULT))
               .valid();
         }},
        {"attribute write",
         [&] { return H5Awrite(attribute, H5T_NATIVE_INT, values.data()) >= 0; }},
        {"attribute rename", [&] { return H5Arename(opened, "b", "c") >= 0; }},
        {"attribute delete", [&] { return H5Adelete(opened, "c") >= 0; }},
        {"link create",
         [&] {
           return H5Lcreate_hard(opened, "d", H5L_SAME_LOC, "e", H5P_DEFAULT, H5P_DEFAULT) >= 0;
         }},
        {"link move",
         [&] { return H5Lmove(opened, "e", H5L_SAME_LOC, "f", H5P_DEFAULT, H5P_DEFAULT) >= 0; }},
        {"link delete", [&] { return H5Ldelete(opened, "f", H5P_DEFAULT) >= 0; }},
        {"object copy",
         [&] { return H5Ocopy(opened, "g", opened, "h", H5P_DEFAULT, H5P_DEFAULT) >= 0; }},
        {"type commit",
         [&] { return H5Tcommit2(opened, "t", type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT) >= 0; }},
    };
    for (const auto& [what, change] : changes) {
      EXPECT_GE(H5Fflush(opened, H5F_SCOPE_GLOBAL), 0) << error_text();
      fail_in_background(dataset);
      expect_told(change(), what);
      EXPECT_TRUE(change()) << what << ": told a second time\n" << error_text();
      storage::fail_with(0);
    }
  });
  EXPECT_GT(summary.counter("bytes_deferred"), 0);
  expect_natively(file(), {{"d", 1}});
}

TEST_P(Telling, OtherFilesAndReadsGoOn) {
  const std::string other = in_folder("other.h5");
  run([&] {
    const Hid opened = create(file());
    const Hid healthy = create(other);
    put(opened, "d", 0);
    put(healthy, "d", 0);
    EXPECT_GE(H5Fflush(opened, H5F_SCOPE_GLOBAL), 0);
    const Hid dataset(H5Dopen2(opened, "d", H5P_DEFAULT));
    fail_in_background(dataset);
    overwrite(healthy, "d", 3);
    EXPECT_TRUE(Hid(H5Gcreate2(healthy, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)).valid());
    expect_dataset(opened, "d", 1);
    expect_told(Hid(H5Gcreate2(opened, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)).valid(),
                "after other calls");
    storage::fail_with(0);
    EXPECT_TRUE(Hid(H5Gcreate2(opened, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)).valid());
  });
  expect_natively(file(), {{"d", 1}});
  expect_natively(other, {{"d", 3}});
}

TEST_P(Telling, AFailureThatARetryRepairsIsNotTold) {
  run([&] {
    const Hid opened = create(file());
    put(opened, "d", 0);
    EXPECT_GE(H5Fflush(opened, H5F_SCOPE_GLOBAL), 0);
    fail_in_background(Hid(H5Dopen2(opened, "d", H5P_DEFAULT)));
    storage::fail_with(0);
    overwrite(opened, "d", 5);
  });
  expect_natively(file(), {{"d", 5}});
}

// A file whose own id is closed lives on while objects of it are open, and closes with the last one.
TEST_P(Telling, AFileKeptOpenByItsObjectsTellsAndCloses) {
  run([&] {
    Hid opened = create(file());
    put(opened, "d", 0);
    Hid dataset(H5Dopen2(opened, "d", H5P_DEFAULT));
    EXPECT_GE(opened.reset(), 0);
    fail_in_background(dataset);
    const std::vector<int> values = elements(2, kElements);
    expect_told(
        H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0,
        "write");
    storage::fail_with(0);
    EXPECT_GE(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
    EXPECT_GE(dataset.reset(), 0);
    EXPECT_EQ(H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL), 0);
    Child reader(environment(kNative), [&] {
      // Natively, with locks: the file must be free.
      expect_dataset(open(file(), H5F_ACC_RDWR), "d", 2);
    });
    reader.expect_success();
  });
}

CONFORMANCE_WAYS(Telling, kImplicit, kDeferredClose, kDeferredAll, kAsyncName);

}  // namespace
}  // namespace tidelane::testing
