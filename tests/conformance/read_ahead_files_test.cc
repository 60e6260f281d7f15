// Of the next file of a series, lanes fetch what the program read of the last one.
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "conformance/time_steps.h"

namespace tidelane::testing {
namespace {

using namespace std::chrono_literals;

class ReadAheadFiles : public ReadAhead {
 public:
  std::string path_of(int number) const {
    return in_folder("time_000" + std::to_string(number) + ".h5");
  }
  // Files that somebody wrote some time ago.
  void create_series(int files) const {
    run_in_child([&] {
      for (int i = 0; i < files; ++i) {
        const Hid opened = create(path_of(i));
        for (int v = 0; v < kVariables; ++v)
          put(opened, "v" + std::to_string(v), seed_of(i, v), kCount);
      }
    });
    std::this_thread::sleep_for(2200ms);
  }
  void run_in_child(const std::function<void()>& scenario) const {
    Child child(environment(kNative), scenario);
    child.expect_success();
  }
  static void expect_file(const std::string& path, int number) {
    const Hid opened = open(path, H5F_ACC_RDONLY);
    for (int v = 0; v < kVariables; ++v)
      expect_dataset(opened, "v" + std::to_string(v), seed_of(number, v), kCount);
  }
};

TEST_P(ReadAheadFiles, TheNextFileIsHereBeforeItIsOpened) {
  create_series(5);
  const Summary summary = run([&] {
    const Watch watch;
    expect_file(path_of(0), 0);
    for (int i = 1; i < 5; ++i) {
      const uint64_t lanes = watch.by_lanes();
      const uint64_t before = watch.by_program();
      expect_file(path_of(i), i);
      if (!plugged()) continue;
      if (i > 1) {
        EXPECT_EQ(watch.by_program(), before) << i;
      }
      if (i < 4) {
        ASSERT_TRUE(watch.wait_for_lanes(lanes + kVariables * kBytes)) << i;
      }
    }
  });
  if (plugged()) {
    EXPECT_GE(summary.counter("ahead_hits"), 3 * kVariables);
  }
}

TEST_P(ReadAheadFiles, AFileThatIsChangedOrReplacedMeanwhileIsReadAsItIs) {
  create_series(5);
  run([&] {
    const Watch watch;
    const auto fetched = [&](uint64_t lanes) {
      if (plugged()) {
        ASSERT_TRUE(watch.wait_for_lanes(lanes + kVariables * kBytes));
      }
    };
    expect_file(path_of(0), 0);
    uint64_t lanes = watch.by_lanes();
    expect_file(path_of(1), 1);
    fetched(lanes);
    // Some bytes of a dataset, past HDF5 and every lock.
    const std::string bytes = bytes_on_storage(path_of(2));
    const int first = elements(seed_of(2, 1), 1)[0];
    const size_t at = bytes.find(std::string(reinterpret_cast<const char*>(&first), sizeof first));
    ASSERT_NE(at, std::string::npos);
    const int other = 4711;
    const int fd = ::open(path_of(2).c_str(), O_WRONLY | O_CLOEXEC);
    ASSERT_EQ(pwrite(fd, &other, sizeof other, static_cast<off_t>(at)), 4);
    ::close(fd);
    {
      const Hid opened = open(path_of(2), H5F_ACC_RDONLY);
      expect_dataset(opened, "v0", seed_of(2, 0), kCount);
      const Hid dataset(H5Dopen2(opened, "v1", H5P_DEFAULT));
      std::vector<int> values(kCount);
      ASSERT_GE(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
      EXPECT_EQ(values[0], other);
      lanes = watch.by_lanes();
    }
    if (plugged()) {
      EXPECT_TRUE(watch.wait_for_lanes(lanes + kBytes));
    }
    ASSERT_EQ(rename(path_of(4).c_str(), path_of(3).c_str()), 0);
    expect_file(path_of(3), 4);
  });
}

TEST_P(ReadAheadFiles, AFileThatIsWrittenHereFirst) {
  create_series(4);
  run([&] {
    const Watch watch;
    expect_file(path_of(0), 0);
    const uint64_t lanes = watch.by_lanes();
    expect_file(path_of(1), 1);
    if (plugged()) {
      ASSERT_TRUE(watch.wait_for_lanes(lanes + kVariables * kBytes));
    }
    {
      const Hid opened = open(path_of(2));
      expect_dataset(opened, "v1", seed_of(2, 1), kCount);
      overwrite(opened, "v1", 4711, kCount);
      expect_dataset(opened, "v1", 4711, kCount);
    }
    const Hid opened = open(path_of(2), H5F_ACC_RDONLY);
    expect_dataset(opened, "v1", 4711, kCount);
    expect_dataset(opened, "v2", seed_of(2, 2), kCount);
  });
}

CONFORMANCE_WAYS(ReadAheadFiles, kNative, kImplicit, kDeferredAll);

}  // namespace
}  // namespace tidelane::testing
