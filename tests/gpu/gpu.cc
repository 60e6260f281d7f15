// The stand-in, loaded: see gpu.h.
#include "gpu/gpu.h"

#include <dlfcn.h>

#include <cstdlib>
#include <utility>

#include <gtest/gtest.h>

namespace tidelane::testing {
namespace {

Gpu loaded;
bool host_only = false;

// Read before a scenario forgets the test's own environment.
const std::string& library_path() {
  static const auto* const path = [] {
    const char* const given = std::getenv("TIDELANE_TEST_LIBCUDA");
    return new std::string(given != nullptr ? given : TIDELANE_TEST_STANDINS "/libcuda.so.1");
  }();
  return *path;
}
[[maybe_unused]] const std::string& read_at_start = library_path();

constexpr size_t kOffset = 1000;  // of a pointer into the middle

void expect_success(CUresult result) { EXPECT_EQ(result, kCudaSuccess); }

}  // namespace

void Gpu::load_only(const std::string& path) {
  void* const library =
      dlopen((path.empty() ? library_path() : path).c_str(), RTLD_NOW | RTLD_GLOBAL);
  ASSERT_NE(library, nullptr) << dlerror();
#define GPU_FIND(name)                                                          \
  loaded.name = reinterpret_cast<decltype(loaded.name)>(dlsym(library, #name)); \
  ASSERT_NE(loaded.name, nullptr) << #name;
  GPU_FUNCTIONS(GPU_FIND)
#undef GPU_FIND
}

void Gpu::load(const std::string& path) {
  load_only(path);
  if (loaded.cuInit == nullptr) return;
  CUcontext context = nullptr;
  expect_success(loaded.cuInit(0));
  expect_success(loaded.cuDevicePrimaryCtxRetain(&context, 0));
  expect_success(loaded.cuCtxSetCurrent(context));
}

const Gpu& gpu() { return loaded; }

const char* name_of(Where where) {
  switch (where) {
    case Where::kHost: return "host";
    case Where::kDevice: return "device";
    case Where::kMiddle: return "middle";
    case Where::kManaged: return "managed";
    case Where::kPooled: return "pooled";
    case Where::kOtherContext: return "other context";
    case Where::kOtherDevice: return "other device";
    case Where::kPinnedHost: return "pinned host";
  }
  return "";
}

Bytes pattern(size_t size, unsigned seed) {
  Bytes bytes(size);
  uint64_t state = (seed + 1) * 0x9E3779B97F4A7C15u;
  for (char& byte : bytes) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<char>(state >> 56);
  }
  return bytes;
}

InContext::InContext(CUcontext context) { expect_success(gpu().cuCtxPushCurrent_v2(context)); }
InContext::~InContext() { expect_success(gpu().cuCtxPopCurrent_v2(nullptr)); }

CUcontext other_context(int device) {
  static CUcontext contexts[2] = {nullptr, nullptr};
  if (contexts[device] == nullptr) {
    expect_success(gpu().cuCtxCreate_v2(&contexts[device], 0, device));
    expect_success(gpu().cuCtxPopCurrent_v2(nullptr));
  }
  return contexts[device];
}

Memory::Memory(Where where, size_t size, unsigned seed) : Memory(where, pattern(size, seed)) {}

void Memory::all_on_host(bool on_host) { host_only = on_host; }

Memory::Memory(Where given, Bytes contents) : where_(host_only ? Where::kHost : given) {
  const Where where = where_;
  const size_t size = std::max<size_t>(contents.size(), 1);
  CUdeviceptr device = 0;
  void* host = nullptr;
  switch (where) {
    case Where::kHost: host = std::malloc(size); break;
    case Where::kPinnedHost: expect_success(gpu().cuMemHostAlloc(&host, size, 0)); break;
    case Where::kDevice: expect_success(gpu().cuMemAlloc_v2(&device, size)); break;
    case Where::kMiddle: expect_success(gpu().cuMemAlloc_v2(&device, size + 2 * kOffset)); break;
    case Where::kManaged: expect_success(gpu().cuMemAllocManaged(&device, size, 1)); break;
    case Where::kPooled: expect_success(gpu().cuMemAllocAsync(&device, size, nullptr)); break;
    case Where::kOtherContext:
    case Where::kOtherDevice: {
      context_ = other_context(where == Where::kOtherDevice ? 1 : 0);
      const InContext in(context_);
      expect_success(gpu().cuMemAlloc_v2(&device, size));
      break;
    }
  }
  start_ = host != nullptr ? static_cast<char*>(host) : reinterpret_cast<char*>(device);
  pointer_ = where == Where::kMiddle ? start_ + kOffset : start_;
  put(contents);
}

Memory::~Memory() {
  const auto device = reinterpret_cast<CUdeviceptr>(start_);
  switch (where_) {
    case Where::kHost: std::free(start_); break;
    case Where::kPinnedHost: expect_success(gpu().cuMemFreeHost(start_)); break;
    case Where::kPooled: expect_success(gpu().cuMemFreeAsync(device, nullptr)); break;
    case Where::kOtherContext:
    case Where::kOtherDevice: {
      const InContext in(context_);
      expect_success(gpu().cuMemFree_v2(device));
      break;
    }
    default: expect_success(gpu().cuMemFree_v2(device));
  }
}

void Memory::put(const Bytes& bytes) {
  contents_ = bytes;
  if (where_ == Where::kHost) {
    std::memcpy(pointer_, bytes.data(), bytes.size());
  } else {
    EXPECT_EQ(gpu().StandInPoke(device(), bytes.data(), bytes.size()), 1);
  }
}

Bytes Memory::now() const {
  Bytes bytes(contents_.size());
  if (where_ == Where::kHost) {
    std::memcpy(bytes.data(), pointer_, bytes.size());
  } else {
    EXPECT_EQ(gpu().StandInPeek(device(), bytes.data(), bytes.size()), 1);
  }
  return bytes;
}

void Memory::expect_contents() const {
  const Bytes found = now();
  if (found == contents_) return;
  size_t first = 0;
  while (found[first] == contents_[first]) ++first;
  ADD_FAILURE() << name_of(where_) << " memory of " << found.size()
                << " bytes is not as it should be from byte " << first;
}

}  // namespace tidelane::testing
