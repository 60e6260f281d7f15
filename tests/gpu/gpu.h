// The stand-in for CUDA's library as a program of these tests has it, and memory on its devices.
//
// The functions are found by name in the library that load() opens: nothing is linked, as in a program that finds its driver.
//
// Invariant: after load() the thread has the first device's primary context, and nothing else on its stack of contexts.
// Thread safety: as the stand-in's; load() once, from one thread.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "gpu/standin_cuda.h"

namespace tidelane::testing {

// clang-format off: it never comes to rest over these lines
#define GPU_FUNCTIONS(X)                                                                          \
  X(cuInit)                                                                                       \
  X(cuDevicePrimaryCtxRetain)                                                                     \
  X(cuDevicePrimaryCtxRelease_v2)                                                                 \
  X(cuDevicePrimaryCtxReset_v2)                                                                   \
  X(cuCtxCreate_v2)                                                                               \
  X(cuCtxDestroy_v2)                                                                              \
  X(cuCtxPushCurrent_v2)                                                                          \
  X(cuCtxPopCurrent_v2)                                                                           \
  X(cuCtxSetCurrent)                                                                              \
  X(cuCtxGetCurrent)                                                                              \
  X(cuCtxSynchronize)                                                                             \
  X(cuPointerGetAttribute)                                                                        \
  X(cuPointerGetAttributes)                                                                       \
  X(cuMemAlloc_v2)                                                                                \
  X(cuMemFree_v2)                                                                                 \
  X(cuMemAllocManaged)                                                                            \
  X(cuMemAllocAsync)                                                                              \
  X(cuMemFreeAsync)                                                                               \
  X(cuMemHostAlloc)                                                                               \
  X(cuMemFreeHost)                                                                                \
  X(cuMemHostRegister_v2)                                                                         \
  X(cuMemHostUnregister)                                                                          \
  X(cuMemcpyDtoHAsync_v2)                                                                         \
  X(cuMemcpyHtoDAsync_v2)                                                                         \
  X(cuMemcpyDtoH_v2)                                                                              \
  X(cuMemcpyHtoD_v2)                                                                              \
  X(cuMemcpy2DAsync_v2)                                                                           \
  X(cuMemcpy3DAsync_v2)                                                                           \
  X(cuMemsetD8Async)                                                                              \
  X(cuStreamCreate) X(cuStreamDestroy_v2) X(cuStreamWaitEvent) X(cuStreamSynchronize)             \
      X(cuStreamQuery) X(cuLaunchHostFunc) X(cuEventCreate) X(cuEventDestroy_v2) X(cuEventRecord) \
          X(cuEventQuery) X(cuEventSynchronize) X(cuEventElapsedTime) X(StandInDelay)             \
              X(StandInFail) X(StandInRefuseInChildren) X(StandInFailLater) X(StandInDropCopy) X(StandInFaultsLeft)          \
                  X(StandInCalls) X(StandInCounters) X(StandInWriteLater) X(StandInPeek)          \
                      X(StandInPoke) X(StandInContexts) X(StandInPinned) X(StandInPageable)       \
                          X(StandInPending) X(StandInMisuses) X(StandInLastMisuse) X(StandInReset)
// clang-format on

struct Gpu {
#define GPU_MEMBER(name) decltype(&::name) name = nullptr;
  GPU_FUNCTIONS(GPU_MEMBER)
#undef GPU_MEMBER

  // Opens the library, as a program does before it uses a device; "": CUDA's, or what TIDELANE_TEST_LIBCUDA names.
  static void load(const std::string& path = "");
  // Opens it and does nothing with it.
  static void load_only(const std::string& path = "");
};

// What load() found.
const Gpu& gpu();

enum class Where {
  kHost,
  kDevice,
  kMiddle,  // a pointer into an allocation
  kManaged,
  kPooled,
  kOtherContext,  // of the same device
  kOtherDevice,
  kPinnedHost,
};
const char* name_of(Where where);

using Bytes = std::vector<char>;

// Bytes that differ from those of other seeds everywhere or nearly so.
Bytes pattern(size_t size, unsigned seed);

// Memory somewhere, and what the test knows to be in it. Natively all is host memory: what the tests expect of a file is then
// compared with what HDF5 does by itself.
class Memory {
 public:
  static void all_on_host(bool on_host);
  Memory(Where where, size_t size, unsigned seed = 1);
  Memory(Where where, Bytes contents);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  void* get() const { return pointer_; }
  CUdeviceptr device() const { return reinterpret_cast<CUdeviceptr>(pointer_); }
  size_t size() const { return contents_.size(); }
  Where where() const { return where_; }
  // What should be in it, and setting both.
  Bytes& contents() { return contents_; }
  void put(const Bytes& bytes);
  // What is in it now.
  Bytes now() const;
  // Fails the test where the two differ.
  void expect_contents() const;

 private:
  Where where_;
  char* pointer_ = nullptr;
  char* start_ = nullptr;
  CUcontext context_ = nullptr;
  Bytes contents_;
};

// A context current for a while.
class InContext {
 public:
  explicit InContext(CUcontext context);
  ~InContext();
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;
};

// One more context of the device; the same for every call.
CUcontext other_context(int device);

}  // namespace tidelane::testing
