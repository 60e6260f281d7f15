// HIP's functions over the stand-in for CUDA's driver: see standin_hip.h. TIDELANE_STANDIN_HIP is the version that the library says it has.
#include "gpu/standin_hip.h"

#include <array>

#include "gpu/standin_cuda.h"
#include "gpu/standin_world.h"

namespace tidelane::standin {
namespace {

constexpr int kNumberedAsCuda = 60000000;
constexpr bool kIsNew = TIDELANE_STANDIN_HIP >= kNumberedAsCuda;
constexpr int kUnregistered = 0;  // types of memory
constexpr int kHost = kIsNew ? 1 : 0;
constexpr int kDevice = kIsNew ? 2 : 1;
constexpr int kManaged = 3;
constexpr int kHostToDevice = 1;
constexpr int kDeviceToHost = 2;
constexpr int kInvalidDevice = -2;

thread_local hipError_t last_error = kCudaSuccess;

hipError_t Returned(CUresult result) { return last_error = result; }

CUdeviceptr Address(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }
CUstream StreamOf(void* stream) { return static_cast<CUstream>(stream); }
CUevent EventOf(void* event) { return static_cast<CUevent>(event); }

CUresult MakeCurrent(int device) {
  CUcontext primary = nullptr;
  const CUresult error = cuDevicePrimaryCtxRetain(&primary, device);
  return error == kCudaSuccess ? cuCtxSetCurrent(primary) : error;
}

// A thread that has not chosen a device has the first.
CUresult HaveDevice() { return StandInContexts() != 0 ? CUresult{kCudaSuccess} : MakeCurrent(0); }

template <typename Call>
hipError_t OnDevice(Call call) {
  const CUresult error = HaveDevice();
  return Returned(error == kCudaSuccess ? call() : error);
}

}  // namespace
}  // namespace tidelane::standin

using namespace tidelane::standin;  // NOLINT: the functions below are the library's face

extern "C" {

STANDIN_EXPORT hipError_t hipRuntimeGetVersion(int* version) {
  *version = TIDELANE_STANDIN_HIP;
  return Returned(kCudaSuccess);
}

STANDIN_EXPORT const char* hipGetErrorName(hipError_t error) {
  const char* name = nullptr;
  return cuGetErrorName(error, &name) == kCudaSuccess ? name : "hipErrorUnknown";
}

STANDIN_EXPORT const char* hipGetErrorString(hipError_t error) {
  const char* text = nullptr;
  return cuGetErrorString(error, &text) == kCudaSuccess ? text : "unknown";
}

STANDIN_EXPORT hipError_t hipGetLastError() {
  const hipError_t last = last_error;
  last_error = kCudaSuccess;
  return last;
}

STANDIN_EXPORT hipError_t hipGetDevice(int* device) {
  return OnDevice([&] { return cuCtxGetDevice(device); });
}

STANDIN_EXPORT hipError_t hipSetDevice(int device) { return Returned(MakeCurrent(device)); }

STANDIN_EXPORT hipError_t hipPointerGetAttributes(hipPointerAttribute_t* attributes,
                                                  const void* pointer) {
  unsigned type = 0;
  unsigned managed = 0;
  int device = kInvalidDevice;
  std::array<int, 3> asked = {kCudaMemoryTypeOf, kCudaIsManaged, kCudaDeviceOrdinalOf};
  std::array<void*, 3> answers = {&type, &managed, &device};
  const CUresult error =
      cuPointerGetAttributes(asked.size(), asked.data(), answers.data(), Address(pointer));
  if (error != kCudaSuccess) return Returned(error);
  *attributes = {.type = kUnregistered,
                 .device = device,
                 .devicePointer = nullptr,
                 .hostPointer = nullptr,
                 .isManaged = managed != 0 ? 1 : 0,
                 .allocationFlags = 0};
  if (type == 0) return Returned(kIsNew ? kCudaSuccess : kCudaInvalidValue);
  attributes->type = type == kCudaHost ? kHost : kDevice;
  if (managed != 0) attributes->type = kIsNew ? kManaged : kHost;
  return Returned(kCudaSuccess);
}

STANDIN_EXPORT hipError_t hipStreamCreateWithFlags(void** stream, unsigned flags) {
  return OnDevice([&] {
    CUstream made = nullptr;
    const CUresult error = cuStreamCreate(&made, flags);
    *stream = made;
    return error;
  });
}

STANDIN_EXPORT hipError_t hipStreamDestroy(void* stream) {
  return OnDevice([&] { return cuStreamDestroy_v2(StreamOf(stream)); });
}

STANDIN_EXPORT hipError_t hipStreamGetDevice(void* stream, int* device) {
  return OnDevice([&] {
    CUcontext context = nullptr;
    CUresult error = cuStreamGetCtx(StreamOf(stream), &context);
    if (error == kCudaSuccess) error = cuCtxPushCurrent_v2(context);
    if (error != kCudaSuccess) return error;
    error = cuCtxGetDevice(device);
    cuCtxPopCurrent_v2(nullptr);
    return error;
  });
}

STANDIN_EXPORT hipError_t hipStreamWaitEvent(void* stream, void* event, unsigned flags) {
  return OnDevice([&] { return cuStreamWaitEvent(StreamOf(stream), EventOf(event), flags); });
}

STANDIN_EXPORT hipError_t hipStreamSynchronize(void* stream) {
  return OnDevice([&] { return cuStreamSynchronize(StreamOf(stream)); });
}

STANDIN_EXPORT hipError_t hipEventCreateWithFlags(void** event, unsigned flags) {
  return OnDevice([&] {
    CUevent made = nullptr;
    const CUresult error = cuEventCreate(&made, flags);
    *event = made;
    return error;
  });
}

STANDIN_EXPORT hipError_t hipEventDestroy(void* event) {
  return OnDevice([&] { return cuEventDestroy_v2(EventOf(event)); });
}

STANDIN_EXPORT hipError_t hipEventRecord(void* event, void* stream) {
  return OnDevice([&] { return cuEventRecord(EventOf(event), StreamOf(stream)); });
}

STANDIN_EXPORT hipError_t hipEventQuery(void* event) {
  return OnDevice([&] { return cuEventQuery(EventOf(event)); });
}

STANDIN_EXPORT hipError_t hipEventSynchronize(void* event) {
  return OnDevice([&] { return cuEventSynchronize(EventOf(event)); });
}

STANDIN_EXPORT hipError_t hipEventElapsedTime(float* milliseconds, void* from, void* to) {
  return OnDevice([&] { return cuEventElapsedTime(milliseconds, EventOf(from), EventOf(to)); });
}

STANDIN_EXPORT hipError_t hipMemcpyAsync(void* to, const void* from, size_t size, int kind,
                                         void* stream) {
  return OnDevice([&]() -> CUresult {
    switch (kind) {
      case kHostToDevice: return cuMemcpyHtoDAsync_v2(Address(to), from, size, StreamOf(stream));
      case kDeviceToHost: return cuMemcpyDtoHAsync_v2(to, Address(from), size, StreamOf(stream));
      default: return misuse("a copy of another kind", kCudaInvalidValue);
    }
  });
}

STANDIN_EXPORT hipError_t hipMemcpy2DAsync(void* to, size_t to_pitch, const void* from,
                                           size_t from_pitch, size_t width, size_t height, int kind,
                                           void* stream) {
  return OnDevice([&]() -> CUresult {
    const bool up = kind == kHostToDevice;
    if (!up && kind != kDeviceToHost) return misuse("a copy of another kind", kCudaInvalidValue);
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = up ? kCudaHost : kCudaDevice;
    copy.srcHost = up ? from : nullptr;
    copy.srcDevice = up ? 0 : Address(from);
    copy.srcPitch = from_pitch;
    copy.dstMemoryType = up ? kCudaDevice : kCudaHost;
    copy.dstHost = up ? nullptr : to;
    copy.dstDevice = up ? Address(to) : 0;
    copy.dstPitch = to_pitch;
    copy.WidthInBytes = width;
    copy.Height = height;
    return cuMemcpy2DAsync_v2(&copy, StreamOf(stream));
  });
}

STANDIN_EXPORT hipError_t hipHostRegister(void* pointer, size_t size, unsigned flags) {
  return OnDevice([&] { return cuMemHostRegister_v2(pointer, size, flags); });
}

}  // extern "C"
