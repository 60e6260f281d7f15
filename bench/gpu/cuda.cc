#include "gpu/cuda.h"

#include <dlfcn.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace tidelane::gpu_bench {
namespace {

using DevicePointer = unsigned long long;

void* library() {
  static void* const cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (cuda == nullptr) {
    std::fprintf(stderr, "gpu: no CUDA driver here (%s)\n", dlerror());
    std::exit(77);
  }
  return cuda;
}

template <typename... Args>
int call(const char* name, Args... args) {
  auto* const function = reinterpret_cast<int (*)(Args...)>(dlsym(library(), name));
  if (function == nullptr) {
    std::fprintf(stderr, "gpu: the CUDA driver has no %s\n", name);
    std::exit(77);
  }
  return function(args...);
}

constexpr size_t kField = size_t{64} << 20;

DevicePointer address(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

}  // namespace

void Cuda::check(int error, const char* what) const {
  if (error == 0) return;
  std::fprintf(stderr, "gpu: %s failed: CUDA error %d\n", what, error);
  std::exit(1);
}

Cuda::Cuda() {
  int device = 0;
  void* context = nullptr;
  if (call("cuInit", 0u) != 0 || call("cuDeviceGet", &device, 0) != 0) {
    std::fprintf(stderr, "gpu: no GPU here\n");
    std::exit(77);
  }
  check(call("cuDeviceGetName", name_, static_cast<int>(sizeof name_), device), "cuDeviceGetName");
  check(call("cuDevicePrimaryCtxRetain", &context, device), "cuDevicePrimaryCtxRetain");
  check(call("cuCtxSetCurrent", context), "cuCtxSetCurrent");
  check(call("cuStreamCreate", &stream_, 1u), "cuStreamCreate");
  field_ = allocate(kField);
}

void* Cuda::allocate(size_t size) {
  DevicePointer memory = 0;
  check(call("cuMemAlloc_v2", &memory, size), "cuMemAlloc");
  return reinterpret_cast<void*>(static_cast<uintptr_t>(memory));
}

void* Cuda::allocate_pinned(size_t size) {
  void* memory = nullptr;
  check(call("cuMemHostAlloc", &memory, size, 0u), "cuMemHostAlloc");
  return memory;
}

void Cuda::upload(void* to, const void* from, size_t size) {
  check(call("cuMemcpyHtoD_v2", address(to), from, size), "cuMemcpyHtoD");
}

void Cuda::copy_to_pinned(void* to, const void* from, size_t size) {
  check(call("cuMemcpyDtoHAsync_v2", to, address(from), size, stream_), "cuMemcpyDtoHAsync");
  check(call("cuStreamSynchronize", stream_), "cuStreamSynchronize");
}

void Cuda::copy_from_pinned(void* to, const void* from, size_t size) {
  check(call("cuMemcpyHtoDAsync_v2", address(to), from, size, stream_), "cuMemcpyHtoDAsync");
  check(call("cuStreamSynchronize", stream_), "cuStreamSynchronize");
}

void Cuda::copy_to_pageable(void* to, const void* from, size_t size) {
  check(call("cuMemcpyDtoH_v2", to, address(from), size), "cuMemcpyDtoH");
}

void Cuda::compute(int milliseconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  for (unsigned char step = 0; std::chrono::steady_clock::now() < end; ++step) {
    for (int i = 0; i < 8; ++i) {
      check(call("cuMemsetD8Async", address(field_), step, kField, static_cast<void*>(nullptr)),
            "cuMemsetD8Async");
    }
    check(call("cuStreamSynchronize", static_cast<void*>(nullptr)), "cuStreamSynchronize");
  }
}

}  // namespace tidelane::gpu_bench
