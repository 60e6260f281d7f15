// What is HIP's alone: the thread's last error, and its current device. With HIP's stand-in the other tests are run, too (CMakeLists.txt).
#include <dlfcn.h>

#include <thread>

#include "gpu/gpu_fixture.h"
#include "gpu/standin_hip.h"

namespace tidelane::testing {
namespace {

constexpr size_t kSmall = size_t{300} << 10;
constexpr size_t kLarge = size_t{20} << 20;  // copied on a stream of the plugin's own

struct Hip {
  decltype(&::hipGetLastError) GetLastError = nullptr;
  decltype(&::hipGetDevice) GetDevice = nullptr;
  decltype(&::hipSetDevice) SetDevice = nullptr;
};

class GpuHip : public GpuTest {
 public:
  // With the stand-in for the version of HIP.
  void run_and_compare(int version, const std::function<void(hid_t, const Hip&)>& scenario) {
    run([&] {
      const char* const path = version == 5 ? TIDELANE_TEST_STANDINS "/libamdhip64.so.5"
                                            : TIDELANE_TEST_STANDINS "/libamdhip64.so.6";
      Gpu::load(path);
      void* const library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
      ASSERT_NE(library, nullptr) << dlerror();
      const auto find = [&](auto& function, const char* name) {
        function =
            reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
        ASSERT_NE(function, nullptr) << name;
      };
      Hip hip;
      find(hip.GetLastError, "hipGetLastError");
      find(hip.GetDevice, "hipGetDevice");
      find(hip.SetDevice, "hipSetDevice");
      const Hid opened = create(file());
      scenario(opened, hip);
      EXPECT_EQ(gpu().StandInMisuses(), 0u) << gpu().StandInLastMisuse();
    });
    compare_natively();
  }
  static Twin bytes_in(hid_t opened, const std::string& name, size_t size) {
    return {opened, name, {size}, {.type = H5T_NATIVE_UCHAR}};
  }
};

// Programs ask for it after their kernels.
TEST_P(GpuHip, WhatTheDriverIsAskedIsNotTheProgramsLastError) {
  for (const int version : {5, 6}) {
    run_and_compare(version, [&](hid_t opened, const Hip& hip) {
      for (const Where where :
           {Where::kHost, Where::kPinnedHost, Where::kDevice, Where::kManaged}) {
        for (const size_t size : {kSmall, kLarge}) {
          Twin twin = bytes_in(opened, name_of(where) + std::to_string(size), size);
          EXPECT_EQ(hip.GetLastError(), 0);
          ASSERT_GE(twin.write(Memory(where, size, 1)), 0) << error_text();
          EXPECT_EQ(hip.GetLastError(), 0) << name_of(where);
          Memory read(where, size, 2);
          ASSERT_GE(twin.read(read), 0) << error_text();
          EXPECT_EQ(hip.GetLastError(), 0) << name_of(where);
          read.expect_contents();
          leave(twin);
        }
      }
      Twin twin = bytes_in(opened, "refused", kSmall);
      gpu().StandInFail("cuMemcpyDtoHAsync_v2", 1, 1, kCudaLaunchFailed);
      EXPECT_LT(twin.write(Memory(Where::kDevice, kSmall, 1)), 0);
      EXPECT_NE(error_text().find("LAUNCH_FAILED"), std::string::npos) << error_text();
      EXPECT_EQ(hip.GetLastError(), 0);
    });
  }
}

TEST_P(GpuHip, TheThreadsDeviceStays) {
  run_and_compare(6, [&](hid_t opened, const Hip& hip) {
    const auto transfer = [&](int current, Where where, const std::string& name) {
      Twin twin = bytes_in(opened, name, kSmall);
      int device = -1;
      EXPECT_EQ(hip.SetDevice(current), 0);
      ASSERT_GE(twin.write(Memory(where, kSmall, 1)), 0) << error_text();
      EXPECT_EQ(hip.GetDevice(&device), 0);
      EXPECT_EQ(device, current);
      Memory read(where, kSmall, 2);
      ASSERT_GE(twin.read(read), 0) << error_text();
      EXPECT_EQ(hip.GetDevice(&device), 0);
      EXPECT_EQ(device, current);
      read.expect_contents();
      leave(twin);
    };
    transfer(0, Where::kDevice, "a");
    transfer(0, Where::kOtherDevice, "b");
    transfer(1, Where::kOtherDevice, "c");
    std::thread([&] { transfer(0, Where::kOtherDevice, "d"); }).join();
    EXPECT_EQ(hip.SetDevice(0), 0);
  });
}

CONFORMANCE_WAYS(GpuHip, kImplicit, kDeferredAll);

}  // namespace
}  // namespace tidelane::testing
