// A driver that fails: each call of each function in turn, for good, or a copy when it is made. A transfer then is right or
// tells an error; nothing crashes, and later ones, from host and device, work.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "gpu/gpu_fixture.h"

namespace tidelane::testing {
namespace {

constexpr CUresult kInjected = kCudaUnknown;
constexpr int kPositions = 6;  // of each function that are tried, at most
const Extent kSmall{200, 300};
const Extent kLarge{2300, 2400};  // 21 MiB: copied on a stream of the plugin's own, in pieces

Bytes smooth(size_t size, unsigned seed) {
  Bytes bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(seed + i / 64);
  return bytes;
}

// Some datasets, and transfers of all kinds between them and a device; whatever fails must say so.
class Program {
 public:
  explicit Program(hid_t opened, const Extent& extent) : extent_(extent) {
    const Hid filtered = chunked({extent[0] / 3, extent[1] / 5});
    H5Pset_deflate(filtered, 1);
    twins_.emplace_back(opened, "line", extent);
    if (extent != kSmall) return;  // one is enough to have pieces, and takes long enough
    twins_.emplace_back(opened, "filtered", extent, Twin::Options{.creation = filtered});
    twins_.emplace_back(opened, "converted", extent, Twin::Options{.type = H5T_STD_I64BE});
  }

  // How many transfers failed.
  int run(Where where, unsigned seed) {
    int failed = 0;
    for (Twin& twin : twins_) {
      for (const bool in_part : {false, true}) {
        const Extent around{extent_[0] + 50, extent_[1] + 100};
        const Hid space = in_part ? select(simple(around), {3, 5}, {}, extent_) : simple(extent_);
        const size_t size =
            (in_part ? around[0] * around[1] : extent_[0] * extent_[1]) * sizeof(int);
        failed += write(twin, where, smooth(size, seed++), space) ? 0 : 1;
        failed += read(twin, where, size, space) ? 0 : 1;
      }
    }
    return failed;
  }
  const std::vector<Twin>& twins() const { return twins_; }

 private:
  static void expect_told(const Twin& twin) {
    const std::string errors = error_text();
    EXPECT_NE(errors.find("device memory"), std::string::npos) << twin.name() << "\n" << errors;
    EXPECT_NE(errors.find(twin.name()), std::string::npos) << errors;
  }
  // After a write that failed the elements are what they were or what was written: they are written again, from the host.
  static bool write(Twin& twin, Where where, const Bytes& bytes, hid_t space) {
    const Memory memory(where, bytes);
    const bool done = twin.write(memory, space, H5S_ALL, H5T_NATIVE_INT) >= 0;
    if (!done) {
      expect_told(twin);
      EXPECT_GE(twin.write(Memory(Where::kHost, bytes), space, H5S_ALL, H5T_NATIVE_INT), 0)
          << error_text();
    }
    memory.expect_contents();
    return done;
  }
  static bool read(Twin& twin, Where where, size_t size, hid_t space) {
    Memory memory(where, smooth(size, 200));
    if (twin.read(memory, space, H5S_ALL, H5T_NATIVE_INT) >= 0) {
      memory.expect_contents();
      return true;
    }
    expect_told(twin);
    Memory host(Where::kHost, smooth(size, 200));
    EXPECT_GE(twin.read(host, space, H5S_ALL, H5T_NATIVE_INT), 0) << error_text();
    host.expect_contents();
    return false;
  }

  const Extent extent_;
  std::vector<Twin> twins_;
};

class GpuFaults : public GpuTest {
 public:
  // The functions that a transfer calls, with how often; the test's own calls are left out.
  std::map<std::string, int> calls_of_a_clean_run(Where where, const Extent& extent = kSmall) {
    const std::string path = in_folder("calls");
    run_and_compare([&](hid_t opened) {
      Program program(opened, extent);
      const Memory memory(where, extent[0] * extent[1] * sizeof(int), 1);
      const Hid dataset(H5Dcreate2(opened, "counted", H5T_NATIVE_INT, simple(extent), H5P_DEFAULT,
                                   H5P_DEFAULT, H5P_DEFAULT));
      gpu().StandInReset();
      EXPECT_GE(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, memory.get()), 0);
      const Hid part = select(simple(extent), {3, 5}, {}, {100, 200});
      EXPECT_GE(H5Dread(dataset, H5T_NATIVE_INT, part, part, H5P_DEFAULT, memory.get()), 0);
      EXPECT_GE(H5Dwrite(dataset, H5T_NATIVE_INT, part, part, H5P_DEFAULT, memory.get()), 0);
      EXPECT_GE(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, memory.get()), 0);
      std::string text(gpu().StandInCounters(nullptr, 0) + 1, '\0');
      gpu().StandInCounters(text.data(), text.size());
      std::ofstream(path) << text.c_str();
      EXPECT_EQ(program.run(where, 1), 0);
      for (const Twin& twin : program.twins()) leave(twin);
    });
    std::map<std::string, int> calls;
    std::ifstream in(path);
    std::string name;
    for (int count = 0; in >> name >> count;) calls[name] = count;
    EXPECT_GT(calls["cuPointerGetAttributes"], 0);
    return calls;
  }
  // Faults that `plan` makes, then the program, then once more without faults.
  void under(const std::string& what, Where where, const std::function<void()>& plan,
             const Extent& extent = kSmall) {
    SCOPED_TRACE(what);
    run_and_compare([&](hid_t opened) {
      Program program(opened, extent);
      plan();
      program.run(where, 1);
      gpu().StandInFaultsLeft();
      EXPECT_EQ(gpu().StandInContexts(), 1u) << "the stack of contexts is not as it was";
      if (extent == kSmall) {
        EXPECT_EQ(program.run(Where::kHost, 50), 0);
      }
      EXPECT_EQ(program.run(where, 90), 0) << "what failed once fails for ever";
      for (const Twin& twin : program.twins()) leave(twin);
    });
  }
};

TEST_P(GpuFaults, EachCallOfEachFunctionFailsOnce) {
  for (const Where where : {Where::kDevice, Where::kPooled}) {
    for (const auto& [function, count] : calls_of_a_clean_run(where)) {
      if (function.starts_with("cuGetError")) continue;
      for (int nth = 1; nth <= std::min(count + 2, kPositions); ++nth) {
        under(function + " " + std::to_string(nth), where,
              [&] { gpu().StandInFail(function.c_str(), nth, 1, kInjected); });
      }
    }
  }
}

TEST_P(GpuFaults, EachFunctionFailsInLargeTransfers) {
  for (const auto& [function, count] : calls_of_a_clean_run(Where::kDevice, kLarge)) {
    if (function.starts_with("cuGetError")) continue;
    for (const int nth : always_defers() ? std::vector<int>{1} : std::vector<int>{1, 4}) {
      under(
          function + " " + std::to_string(nth), Where::kDevice,
          [&] { gpu().StandInFail(function.c_str(), nth, 1, kInjected); }, kLarge);
    }
  }
  for (const char* function : {"cuMemcpyDtoHAsync_v2", "cuMemcpyHtoDAsync_v2"}) {
    under(
        std::string(function) + " later", Where::kDevice,
        [&] { gpu().StandInFailLater(function, 2, kCudaLaunchFailed, 0); }, kLarge);
  }
}

TEST_P(GpuFaults, AFunctionFailsForAWhile) {
  for (const auto& [function, count] : calls_of_a_clean_run(Where::kDevice)) {
    if (function.starts_with("cuGetError")) continue;
    under(function, Where::kManaged,
          [&] { gpu().StandInFail(function.c_str(), 1, 1'000'000, kCudaOutOfMemory); });
  }
}

TEST_P(GpuFaults, FunctionsThatAreNotCalledBeforeTheFirstTransfer) {
  for (const char* function : {"cuMemHostRegister_v2", "cuMemHostAlloc", "cuDevicePrimaryCtxRetain",
                               "cuStreamCreate", "cuStreamCreateWithPriority", "cuEventCreate"}) {
    for (const Where where : {Where::kDevice, Where::kPooled}) {
      under(function, where, [&] { gpu().StandInFail(function, 1, 2, kCudaOutOfMemory); });
    }
  }
}

TEST_P(GpuFaults, ACopyFailsWhenItIsMade) {
  for (const char* function : {"cuMemcpyDtoHAsync_v2", "cuMemcpyHtoDAsync_v2", "cuMemcpy2DAsync_v2",
                               "cuMemcpy3DAsync_v2"}) {
    for (int nth = 1; nth <= 3; ++nth) {
      under(std::string(function) + " later " + std::to_string(nth), Where::kDevice,
            [&] { gpu().StandInFailLater(function, nth, kCudaLaunchFailed, 0); });
    }
  }
}

// As after a kernel that touched what is not its: nothing works in that context any more, and all the rest does.
TEST_P(GpuFaults, AContextIsLost) {
  for (const char* function :
       {"cuMemcpyDtoHAsync_v2", "cuMemcpyHtoDAsync_v2", "cuMemcpy2DAsync_v2"}) {
    SCOPED_TRACE(function);
    run(
        [&] {
          Gpu::load();
          const Hid opened = create(file());
          Twin twin(opened, "d", {100, 300});
          Memory* const memory =
              new Memory(Where::kDevice, twin.bytes(), 1);  // cannot be freed any more
          const Hid part = select(twin.space(), {1, 1}, {}, {90, 200});
          gpu().StandInFailLater(function, 1, kCudaIllegalAddress, 1);
          bool failed = twin.write(*memory) < 0;
          failed = twin.read(*memory) < 0 || failed;
          failed = twin.write(*memory, part, part) < 0 || failed;
          EXPECT_TRUE(failed);
          expect_refused(twin.write(*memory), "d");
          expect_refused(twin.read(*memory), "d");
          EXPECT_GE(twin.write(Memory(Where::kHost, twin.bytes(), 3)), 0) << error_text();
          // The other device's context lives.
          EXPECT_GE(twin.write(Memory(Where::kOtherDevice, twin.bytes(), 4)), 0) << error_text();
          leave(twin);
        },
        environment());
    compare_natively();
  }
}

TEST_P(GpuFaults, StorageFailsUnderDeviceMemory) {
  if (!always_defers()) return;
  run_on_gpu([&] {
    Hid opened = create(file());
    Twin twin(opened, "d", {2000, 300});
    EXPECT_GE(H5Fflush(opened, H5F_SCOPE_GLOBAL), 0);
    storage::fail_with(EIO);
    const Memory memory(Where::kDevice, twin.bytes(), 1);
    twin.write(memory);
    // Where flushes are deferred, the next change tells that storage has failed meanwhile.
    bool told = H5Fflush(opened, H5F_SCOPE_GLOBAL) < 0;
    for (int i = 0; i < 500 && !told; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      const Hid group(H5Gcreate2(opened, ("g" + std::to_string(i)).c_str(), H5P_DEFAULT,
                                 H5P_DEFAULT, H5P_DEFAULT));
      told = !group.valid();
    }
    EXPECT_TRUE(told);
    storage::fail_with(0);
  });
}

GPU_WAYS(GpuFaults);

// The test itself: a copy that does not happen is noticed.
class GpuControl : public GpuTest {};

TEST_P(GpuControl, ACopyThatDoesNotHappenIsNoticed) {
  for (const bool reading : {false, true}) {
    run_on_gpu([&] {
      const Hid opened = create(file());
      Twin twin(opened, "d", {1000});
      const Memory written(Where::kDevice, twin.bytes(), 1);
      if (!reading) gpu().StandInDropCopy(1);
      ASSERT_GE(twin.write(written), 0);
      if (reading) gpu().StandInDropCopy(1);
      Memory read(Where::kDevice, twin.bytes(), 2);
      ASSERT_GE(twin.read(read), 0);
      EXPECT_EQ(gpu().StandInFaultsLeft(), 0);
      EXPECT_FALSE(read.now() == read.contents());
    });
  }
}

// Whoever does not wait for the program's streams writes what is not there yet.
TEST_P(GpuControl, AStreamThatIsNotWaitedForIsNoticed) {
  run_on_gpu([&] {
    const Hid opened = create(file());
    Twin twin(opened, "d", {5'000'000});
    const Memory memory(Where::kDevice, twin.bytes(), 1);
    ASSERT_GE(twin.write(memory), 0);
    const Bytes late = pattern(twin.bytes(), 2);
    gpu().StandInFail("cuStreamWaitEvent", 1, 1'000'000, kStandInIgnored);
    EXPECT_EQ(gpu().StandInWriteLater(memory.device(), late.data(), late.size(), nullptr, 100'000),
              kCudaSuccess);
    ASSERT_GE(H5Dwrite(twin.dataset(), H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, memory.get()),
              0);
    gpu().StandInFaultsLeft();
    EXPECT_EQ(gpu().cuStreamSynchronize(nullptr), kCudaSuccess);
    Memory read(Where::kHost, twin.bytes(), 3);
    ASSERT_GE(twin.read(read), 0);
    EXPECT_FALSE(read.now() == late);
  });
}

// Whoever does not wait for copies returns too early.
TEST_P(GpuControl, ACopyThatIsNotWaitedForIsNoticed) {
  run_on_gpu([&] {
    const Hid opened = create(file());
    Twin twin(opened, "d", {1000});
    ASSERT_GE(twin.write(Memory(Where::kDevice, twin.bytes(), 1)), 0);
    Memory read(Where::kDevice, twin.bytes(), 2);
    gpu().StandInDelay(100'000);
    for (const char* function :
         {"cuEventSynchronize", "cuStreamSynchronize", "cuEventQuery", "cuStreamQuery"}) {
      gpu().StandInFail(function, 1, 1'000'000, kStandInIgnored);
    }
    ASSERT_GE(twin.read(read), 0);
    EXPECT_FALSE(read.now() == read.contents());
    gpu().StandInFaultsLeft();
    EXPECT_EQ(gpu().cuCtxSynchronize(), kCudaSuccess);
    read.expect_contents();
  });
}

GPU_WAYS(GpuControl);

}  // namespace
}  // namespace tidelane::testing
