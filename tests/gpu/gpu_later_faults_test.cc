// Reads into GPU memory that go on after their calls, and what goes wrong meanwhile: storage, the driver, contexts that end, forks,
// programs that do not wait. Each ends with the right bytes or an error, and later reads work.
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "gpu/gpu_later.h"
#include "support/sanitizer.h"

namespace tidelane::testing {
namespace {

using namespace std::chrono_literals;

constexpr int kPositions = 4;  // of each function that are tried, at most

class GpuLaterFaults : public GpuLater {
 public:
  // Afterwards everything works, at once and later.
  static void expect_reads(hid_t dataset, const std::string& name, Where where) {
    const Hid set(H5EScreate());
    Memory later(where, kLaterSize, 70);
    ASSERT_GE(read_async(dataset, later, set), 0) << error_text();
    EXPECT_EQ(wait(set), 0u);
    Memory now(where, kLaterSize, 71);
    ASSERT_GE(H5Dread(dataset, H5T_NATIVE_UCHAR, H5S_ALL, H5S_ALL, H5P_DEFAULT, now.get()), 0)
        << error_text();
    for (Memory* memory : {&later, &now}) {
      memory->contents() = contents_of(name);
      memory->expect_contents();
    }
  }
  // A read during which the driver does as `plan` says: right, refused at once, or refused later.
  void under(const std::string& what, const std::string& name, const std::function<void()>& plan,
             bool must_fail_later = false) {
    SCOPED_TRACE(what + " " + name);
    run_on_gpu([&] {
      const Hid opened = open(file(), H5F_ACC_RDONLY);
      const Hid dataset = dataset_in(opened, name);
      const Hid set(H5EScreate());
      Memory memory(Where::kDevice, kLaterSize, 9);
      plan();
      const herr_t result = read_async(dataset, memory, set);
      if (result < 0) expect_refused(result, name);
      size_t in_progress = 1;
      hbool_t failed = false;
      EXPECT_GE(H5ESwait(set, 1'000'000, &in_progress, &failed), 0);  // in either way
      if (!failed) {
        EXPECT_GE(H5ESwait(set, H5ES_WAIT_FOREVER, &in_progress, &failed), 0);
      }
      EXPECT_EQ(in_progress, 0u);
      EXPECT_TRUE(failed || !must_fail_later);
      if (failed) {
        expect_words(LateReads::failure_of(set), name, "device memory");
      } else if (result >= 0) {
        memory.contents() = contents_of(name);
        memory.expect_contents();
      }
      gpu().StandInFaultsLeft();
      EXPECT_EQ(gpu().StandInContexts(), 1u) << "the stack of contexts is not as it was";
      expect_reads(dataset, name, Where::kDevice);
    });
  }
  // The functions that such a read calls, with how often.
  std::map<std::string, int> calls_of_a_clean_read() {
    const std::string path = in_folder("calls");
    run_on_gpu([&] {
      const Hid opened = open(file(), H5F_ACC_RDONLY);
      const Hid dataset = dataset_in(opened, "line");
      const Hid set(H5EScreate());
      const Memory memory(Where::kDevice, kLaterSize, 9);
      gpu().StandInDelay(5'000);
      EXPECT_GE(read_async(dataset, memory, set), 0);
      while (wait(set, 3'000'000) != 0) {
      }
      std::string text(gpu().StandInCounters(nullptr, 0) + 1, '\0');
      gpu().StandInCounters(text.data(), text.size());
      std::ofstream(path) << text.c_str();
    });
    std::map<std::string, int> calls;
    std::ifstream in(path);
    std::string name;
    for (int count = 0; in >> name >> count;) calls[name] = count;
    EXPECT_GT(calls["cuEventQuery"], 0);
    return calls;
  }
};

TEST_P(GpuLaterFaults, EachCallOfEachFunctionFailsOnce) {
  make_layouts();
  for (const auto& [function, count] : calls_of_a_clean_read()) {
    if (function.starts_with("cuGetError") || function == "cuInit" || function == "cuMemAlloc_v2" ||
        function == "cuCtxSetCurrent") {
      continue;
    }
    for (int nth = 1; nth <= std::min(count + 1, kPositions); ++nth) {
      under(function + " " + std::to_string(nth), "line",
            [&] { gpu().StandInFail(function.c_str(), nth, 1, kCudaUnknown); });
    }
    under(function + " for ever", "gzip",
          [&] { gpu().StandInFail(function.c_str(), 1, 1'000'000, kCudaUnknown); });
  }
}

TEST_P(GpuLaterFaults, ACopyFailsWhenItIsMade) {
  make_layouts();
  for (const std::string name : kLayouts) {
    under(
        "later", name,
        [&] { gpu().StandInFailLater("cuMemcpyHtoDAsync_v2", 1, kCudaLaunchFailed, 0); }, true);
  }
}

// The error names the dataset, its file and the cause, though both are closed by then.
TEST_P(GpuLaterFaults, TheErrorNamesWhatHasBeenClosed) {
  make_layouts();
  run_on_gpu([&] {
    Hid opened = open(file(), H5F_ACC_RDONLY);
    Hid dataset = dataset_in(opened, "line");
    const Hid set(H5EScreate());
    const Memory memory(Where::kDevice, kLaterSize, 9);
    ASSERT_GE(read_async(dataset, memory, set), 0) << error_text();
    dataset.reset();
    EXPECT_GE(H5Fclose(opened.release()), 0) << error_text();
    EXPECT_EQ(count(set), 1u);
    gpu().StandInFailLater("cuMemcpyHtoDAsync_v2", 1, kCudaLaunchFailed, 0);
    const LateReads::Failure failure = LateReads::wait_failing(set);
    for (const std::string& wanted :
         {std::string("/line"), file(), std::string("CUDA_ERROR_LAUNCH_FAILED")}) {
      EXPECT_NE(failure.errors.find(wanted), std::string::npos) << failure.errors;
    }
    EXPECT_EQ(gpu().StandInFaultsLeft(), 0);
  });
}

TEST_P(GpuLaterFaults, ClosedBeforeTheWait) {
  make_layouts();
  for (const std::string name : kLayouts) {
    run_on_gpu([&] {
      Watch watch;
      Hid opened = open(file(), H5F_ACC_RDONLY);
      Hid dataset = dataset_in(opened, name);
      const Hid set(H5EScreate());
      Memory memory(Where::kDevice, kLaterSize, 9);
      watch.hold();
      ASSERT_GE(read_async(dataset, memory, set), 0) << error_text();
      EXPECT_TRUE(watch.wait_held());
      std::thread release = watch.release_after(50ms);
      dataset.reset();
      EXPECT_GE(H5Fclose(opened.release()), 0) << error_text();
      release.join();
      memory.expect_contents();  // nobody has asked yet
      EXPECT_EQ(wait(set), 0u);
      memory.contents() = contents_of(name);
      memory.expect_contents();
    });
  }
}

TEST_P(GpuLaterFaults, StorageFails) {
  make_layouts();
  for (const std::string name : kLayouts) {
    SCOPED_TRACE(name);
    run_on_gpu([&] {
      Watch watch;
      const Hid opened = open(file(), H5F_ACC_RDONLY);
      const Hid dataset = dataset_in(opened, name);
      const Hid set(H5EScreate());
      const Memory memory(Where::kDevice, kLaterSize, 9);
      watch.lanes_fail = EIO;
      ASSERT_GE(read_async(dataset, memory, set), 0) << error_text();
      watch.program_fails = EIO;  // what it has of the file's index it needs not read again
      expect_told(set, file().substr(file().rfind('/') + 1), "Input/output error");
      watch.lanes_fail = 0;
      watch.program_fails = 0;
      expect_reads(dataset, name, Where::kDevice);
    });
  }
}

// What lanes could not read HDF5 can: the device gets that.
TEST_P(GpuLaterFaults, HDF5ReadsWhatLanesCouldNot) {
  make_layouts();
  for (const bool device_fails : {false, true}) {
    const Summary summary = run_on_gpu([&] {
      Watch watch;
      const Hid opened = open(file(), H5F_ACC_RDONLY);
      const Hid dataset = dataset_in(opened, "gzip");
      const Hid set(H5EScreate());
      Memory memory(Where::kDevice, kLaterSize, 9);
      watch.lanes_fail = EIO;
      ASSERT_GE(read_async(dataset, memory, set), 0) << error_text();
      EXPECT_TRUE(watch.wait_for_lanes(1));
      if (device_fails) {
        gpu().StandInFailLater("cuMemcpyHtoDAsync_v2", 1, kCudaLaunchFailed, 0);
        expect_told(set, "/gzip", "CUDA_ERROR_LAUNCH_FAILED");
      } else {
        EXPECT_EQ(wait(set), 0u);
        memory.contents() = contents_of("gzip");
        memory.expect_contents();
      }
      watch.lanes_fail = 0;
    });
    EXPECT_EQ(summary.fallback("read_failed"), 1);
  }
}

// Contexts that end before the wait: destroyed, reset so that the handle is the same, lost by a kernel's fault.
TEST_P(GpuLaterFaults, AContextEndsBeforeTheWait) {
  make_layouts();
  for (const bool copying : {false, true}) {
    for (const std::string how : {"destroyed", "reset", "lost"}) {
      SCOPED_TRACE(how + (copying ? " while it copies" : ""));
      run(
          [&] {
            Gpu::load();
            const Hid opened = open(file(), H5F_ACC_RDONLY);
            const Hid dataset = dataset_in(opened, "line");
            const Hid set(H5EScreate());
            CUcontext context = nullptr;
            if (how == "destroyed") {
              EXPECT_EQ(gpu().cuCtxCreate_v2(&context, 0, 0), kCudaSuccess);
            }
            auto* const memory =
                new Memory(Where::kDevice, kLaterSize, 9);  // ends with its context
            const Hid stuck(H5EScreate());
            if (copying) gpu().StandInDelay(50'000);
            ASSERT_GE(read_async(dataset, *memory, set), 0) << error_text();
            if (copying) {
              while (gpu().StandInCalls("cuMemcpyHtoDAsync_v2") == 0 && count(set) != 0) {
                EXPECT_EQ(wait(set, 1'000'000), 1u);
              }
            }
            if (how == "destroyed") {
              EXPECT_EQ(gpu().cuCtxDestroy_v2(context), kCudaSuccess);
            } else if (how == "reset") {
              EXPECT_EQ(gpu().cuDevicePrimaryCtxReset_v2(0), kCudaSuccess);
            } else {
              char byte = 0;
              gpu().StandInFailLater("cuMemcpyDtoHAsync_v2", 1, kCudaIllegalAddress, 1);
              gpu().cuMemcpyDtoHAsync_v2(&byte, memory->device(), 1, nullptr);
            }
            expect_told(set, "/line", how == "lost" ? "CUDA_ERROR" : "its context has ended");
            EXPECT_EQ(gpu().StandInMisuses(), 0u) << gpu().StandInLastMisuse();
            expect_reads(dataset, "line", Where::kOtherDevice);
            expect_reads(dataset, "line", Where::kHost);
          },
          environment());
    }
  }
}

// The child has neither the memory nor the driver: it is told so, and reads by itself; the parent's read goes on.
class GpuLaterForks : public GpuLater {
 public:
  void SetUp() override {
    GpuLater::SetUp();
    // The stand-in's threads copy on, and may be inside an allocator that does not prepare for fork.
    if (sanitized()) GTEST_SKIP() << "a child would wait for its sanitizer's allocator";
  }
  void forks(bool copying, const std::function<bool(hid_t set, hid_t dataset)>& in_child) {
    make_layouts();
    for (const std::string name : kLayouts) {
      SCOPED_TRACE(name);
      run_on_gpu([&] {
        const Hid opened = open(file(), H5F_ACC_RDONLY);
        const Hid dataset = dataset_in(opened, name);
        const Hid set(H5EScreate());
        Memory memory(Where::kDevice, kLaterSize, 9);
        if (copying) gpu().StandInDelay(100'000);
        ASSERT_GE(read_async(dataset, memory, set), 0) << error_text();
        while (copying && gpu().StandInCalls("cuMemcpyHtoDAsync_v2") == 0) {
          EXPECT_EQ(wait(set, 1'000'000), 1u);
        }
        const pid_t forked = fork();
        if (forked == 0) {
          _exit(in_child(set, dataset) && !::testing::Test::HasFailure() ? 0 : 1);
        }
        int status = -1;
        EXPECT_EQ(waitpid(forked, &status, 0), forked);
        EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
        EXPECT_EQ(WEXITSTATUS(status), 0);
        EXPECT_EQ(count(set), 1u);
        EXPECT_EQ(wait(set), 0u);
        memory.contents() = contents_of(name);
        memory.expect_contents();
      });
    }
  }
};

TEST_P(GpuLaterForks, TheChildIsToldAndReadsByItself) {
  for (const bool copying : {false, true}) {
    forks(copying, [](hid_t set, hid_t dataset) {
      expect_told(set, "parent process", "Operation canceled");
      Bytes bytes(kLaterSize);
      return H5Dread(dataset, H5T_NATIVE_UCHAR, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()) >= 0 &&
             (bytes == contents_of("line") || bytes == contents_of("chunks") ||
              bytes == contents_of("gzip"));
    });
  }
}

TEST_P(GpuLaterForks, TheChildEnds) {
  for (const bool copying : {false, true}) {
    forks(copying, [](hid_t, hid_t) { return H5close() >= 0 || true; });
  }
}

TEST_P(GpuLaterForks, TheChildClosesTheDataset) {
  forks(true, [](hid_t, hid_t dataset) { return H5Dclose(dataset) >= 0; });
}

// The library shuts down with reads outstanding.
TEST_P(GpuLaterFaults, NobodyWaits) {
  make_layouts();
  for (const bool closes : {false, true}) {
    for (const std::string name : kLayouts) {
      run_on_gpu([&] {
        const hid_t opened = open(file(), H5F_ACC_RDONLY).release();
        const hid_t dataset = dataset_in(opened, name).release();
        const hid_t set = H5EScreate();
        storage::follow_reads([](const storage::Call&) { return storage::Fault{.delay = 5ms}; });
        auto* const memory = new Memory(Where::kDevice, kLaterSize, 9);
        for (int i = 0; i < 3; ++i) ASSERT_GE(read_async(dataset, *memory, set), 0) << error_text();
        EXPECT_EQ(wait(set, H5ES_WAIT_NONE), 3u);
        if (!closes) return;
        EXPECT_GE(H5close(), 0);
        memory->contents() = contents_of(name);
        memory->expect_contents();
      });
    }
  }
}

GPU_WAYS(GpuLaterFaults);
GPU_WAYS(GpuLaterForks);

}  // namespace
}  // namespace tidelane::testing
