// What cannot be captured runs natively, correctly, and is counted with its reason.
#include <unistd.h>

#include <algorithm>

#include "conformance/fixture.h"

namespace tidelane::testing {
namespace {

using namespace std::chrono_literals;

class Fallback : public Conformance {
 public:
  // A whole file written with another driver, through the plugin and then read back natively.
  void expect_driver(const std::string& path, const std::function<void(hid_t)>& choose) {
    const Summary summary = run([&] {
      const Hid access(H5Pcreate(H5P_FILE_ACCESS));
      choose(access);
      Hid opened = create(path, access);
      put(opened, "a", 1);
      EXPECT_GE(H5Fclose(opened.release()), 0);
      const Hid again = open(path, H5F_ACC_RDWR, access);
      expect_dataset(again, "a", 1);
      put(again, "b", 2);
      const Hid reported(H5Fget_access_plist(again));
      EXPECT_EQ(H5Pget_driver(reported), H5Pget_driver(access));
    });
    EXPECT_GE(summary.fallback("driver"), 2);
    EXPECT_EQ(summary.counter("bytes_deferred"), 0);
    run_natively([&] {
      const Hid access(H5Pcreate(H5P_FILE_ACCESS));
      choose(access);
      expect_contents(open(path, H5F_ACC_RDONLY, access), {{"a", 1}, {"b", 2}});
    });
  }
};

TEST_P(Fallback, CoreDriver) {
  expect_driver(file(),
                [](hid_t access) { EXPECT_GE(H5Pset_fapl_core(access, 1 << 16, true), 0); });
}

TEST_P(Fallback, FamilyDriver) {
  expect_driver(in_folder("family%d.h5"), [](hid_t access) {
    EXPECT_GE(H5Pset_fapl_family(access, 40'000, H5P_DEFAULT), 0);
  });
}

TEST_P(Fallback, SplitDriver) {
  expect_driver(file(), [](hid_t access) {
    EXPECT_GE(H5Pset_fapl_split(access, "-meta", H5P_DEFAULT, "-raw", H5P_DEFAULT), 0);
  });
}

TEST_P(Fallback, StdioDriver) {
  expect_driver(file(), [](hid_t access) { EXPECT_GE(H5Pset_fapl_stdio(access), 0); });
}

TEST_P(Fallback, EachDatasetInAnExternalFileIsCounted) {
  const Summary summary = run([&] {
    const Hid opened = create(file());
    const hsize_t count = 16;
    const Hid space(H5Screate_simple(1, &count, nullptr));
    const Hid list(H5Pcreate(H5P_DATASET_CREATE));
    EXPECT_GE(H5Pset_external(list, in_folder("raw").c_str(), 0, H5F_UNLIMITED), 0);
    const auto make = [&](const char* name, hid_t how) {
      const Hid made(
          H5Dcreate2(opened, name, H5T_NATIVE_INT, space, H5P_DEFAULT, how, H5P_DEFAULT));
      EXPECT_GE(made, 0);
    };
    make("outside", list);
    make("inside", H5P_DEFAULT);
    make("inside too", H5P_DEFAULT);
    make("outside too", list);
    make("outside again", list);
  });
  EXPECT_EQ(summary.fallback("external_raw_file"), 3);
}

TEST_P(Fallback, AnotherDriverSeesAFileThatWasStillPending) {
  run_deferring([&] {
    Hid opened = create(file());
    put(opened, "a", 1);
    if (GetParam().close_deferred()) {
      storage::hold();
      storage::release_after(50ms);
    }
    EXPECT_GE(H5Fclose(opened.release()), 0);
    const Hid access(H5Pcreate(H5P_FILE_ACCESS));
    ASSERT_GE(H5Pset_fapl_core(access, 1 << 16, false), 0);
    expect_dataset(open(file(), H5F_ACC_RDONLY, access), "a", 1);
  });
}

TEST_P(Fallback, AHandedOutDescriptorSeesAllBytesAtOnce) {
  const Summary summary = run_deferring([&] {
    const Hid opened = create(file());
    put(opened, "a", 1);
    void* handle = nullptr;
    ASSERT_GE(H5Fget_vfd_handle(opened, H5P_DEFAULT, &handle), 0) << error_text();
    const int descriptor = *static_cast<int*>(handle);
    const auto raw = [&](int seed) {
      const Hid dataset(H5Dopen2(opened, "a", H5P_DEFAULT));
      std::vector<int> values(kElements);
      const size_t size = kElements * sizeof(int);
      const auto at = static_cast<off_t>(H5Dget_offset(dataset));
      EXPECT_EQ(pread(descriptor, values.data(), size, at), static_cast<ssize_t>(size));
      EXPECT_TRUE(values == elements(seed, kElements));
    };
    raw(1);
    overwrite(opened, "a", 2);  // from now on nothing is deferred: the program watches the file
    EXPECT_GE(H5Fflush(opened, H5F_SCOPE_GLOBAL), 0);  // HDF5's own sieve
    raw(2);
  });
  EXPECT_EQ(summary.fallback("handle_handed_out"), 1);
  EXPECT_GT(summary.counter("writes_sync"), 0);
  expect_natively(file(), {{"a", 2}});
}

TEST_P(Fallback, SyncModeWritesThrough) {
  Environment sync = environment();
  sync["TIDELANE_MODE"] = "sync";
  const Summary summary = run(
      [&] {
        const Hid opened = create(file());
        put(opened, "a", 1);
        expect_dataset(opened, "a", 1);
      },
      sync);
  EXPECT_EQ(summary.counter("bytes_deferred"), 0);
  EXPECT_GT(summary.counter("bytes_sync"), 0);
  EXPECT_EQ(summary.fallback("mode_sync"), 1);
  expect_natively(file(), {{"a", 1}});
}

// A single writer and its readers: storage must see the writer's order, so that a reader may look at any moment.
class Swmr : public Conformance {
 public:
  static Hid latest() {
    Hid access(H5Pcreate(H5P_FILE_ACCESS));
    EXPECT_GE(H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST), 0);
    return access;
  }
  static constexpr hsize_t kStep = 100;

  static void make_growing(hid_t opened) {
    const hsize_t none = 0;
    const hsize_t unlimited = H5S_UNLIMITED;
    const Hid space(H5Screate_simple(1, &none, &unlimited));
    const Hid layout(H5Pcreate(H5P_DATASET_CREATE));
    ASSERT_GE(H5Pset_chunk(layout, 1, &kStep), 0);
    const Hid dataset(
        H5Dcreate2(opened, "log", H5T_NATIVE_INT, space, H5P_DEFAULT, layout, H5P_DEFAULT));
    ASSERT_TRUE(dataset.valid());
  }
  static void append(hid_t dataset, hsize_t step) {
    const hsize_t size = (step + 1) * kStep;
    ASSERT_GE(H5Dset_extent(dataset, &size), 0);
    const Hid space(H5Dget_space(dataset));
    const hsize_t begin = step * kStep;
    ASSERT_GE(H5Sselect_hyperslab(space, H5S_SELECT_SET, &begin, nullptr, &kStep, nullptr), 0);
    const Hid memory(H5Screate_simple(1, &kStep, nullptr));
    const std::vector<int> values = elements(static_cast<int>(step), kStep);
    ASSERT_GE(H5Dwrite(dataset, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, values.data()), 0);
    ASSERT_GE(H5Dflush(dataset), 0);
  }
  static void expect_log(hid_t dataset, hsize_t steps) {
    ASSERT_GE(H5Drefresh(dataset), 0) << error_text();
    const Hid space(H5Dget_space(dataset));
    ASSERT_EQ(H5Sget_simple_extent_npoints(space), static_cast<hssize_t>(steps * kStep));
    std::vector<int> values(steps * kStep);
    ASSERT_GE(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
    for (hsize_t step = 0; step < steps; ++step) {
      const std::vector<int> expected = elements(static_cast<int>(step), kStep);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), &values[step * kStep])) << step;
    }
  }
  // `begin` opens the file for single-writer writing. After each step a reader process looks, by turns.
  Summary follow(const std::function<Hid()>& begin, const Environment& reading) {
    constexpr hsize_t kSteps = 5;
    const Gong written;
    const Gong read;
    Child writer(environment(), [&] {
      const Hid opened = begin();
      const Hid dataset(H5Dopen2(opened, "log", H5P_DEFAULT));
      for (hsize_t step = 0; step < kSteps; ++step) {
        append(dataset, step);
        written.ring();
        ASSERT_TRUE(read.wait());
      }
    });
    Child reader(reading, [&] {
      ASSERT_TRUE(written.wait());
      const Hid opened = open(file(), H5F_ACC_RDONLY | H5F_ACC_SWMR_READ);
      const Hid dataset(H5Dopen2(opened, "log", H5P_DEFAULT));
      for (hsize_t step = 1; step <= kSteps; ++step) {
        expect_log(dataset, step);
        read.ring();
        ASSERT_TRUE(step == kSteps || written.wait());
      }
    });
    reader.expect_success();
    writer.expect_success();
    run_natively([&] {
      expect_log(Hid(H5Dopen2(open(file(), H5F_ACC_RDONLY), "log", H5P_DEFAULT)), kSteps);
    });
    return writer.summary(summaries());
  }
};

TEST_P(Swmr, NativeReaderFollowsAFileOpenedForIt) {
  run([&] { make_growing(create(file(), latest())); });
  const Summary summary =
      follow([&] { return open(file(), H5F_ACC_RDWR | H5F_ACC_SWMR_WRITE, latest()); },
             environment(kNative));
  EXPECT_EQ(summary.fallback("swmr_write"), 1);
  EXPECT_EQ(summary.counter("bytes_deferred"), 0);
}

TEST_P(Swmr, NativeReaderFollowsAfterStartSwmrWrite) {
  const Summary summary = follow(
      [&] {
        Hid opened = create(file(), latest());
        make_growing(opened);
        EXPECT_GE(H5Fstart_swmr_write(opened), 0) << error_text();
        return opened;
      },
      environment(kNative));
  EXPECT_EQ(summary.fallback("swmr_write"), 1);
  EXPECT_GT(summary.counter("bytes_deferred"), 0);  // before
}

TEST_P(Swmr, OurReaderFollows) {
  run([&] { make_growing(create(file(), latest())); });
  follow([&] { return open(file(), H5F_ACC_RDWR | H5F_ACC_SWMR_WRITE, latest()); }, environment());
}

CONFORMANCE_WAYS(Fallback, kImplicit, kDeferredClose, kDeferredAll);
CONFORMANCE_WAYS(Swmr, kImplicit, kDeferredAll);

}  // namespace
}  // namespace tidelane::testing
