// The driver's functions that the stand-in has: contexts, memory, streams and events: see standin_cuda.h.
#include "gpu/standin_cuda.h"

#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "gpu/standin_memory.h"
#include "gpu/standin_streams.h"
#include "gpu/standin_world.h"

namespace tidelane::standin {
namespace {

constexpr int kDevices = 2;

thread_local std::vector<Context*> stack;

Streams& streams() { return Streams::all(); }
CUcontext handle(Context* context) { return reinterpret_cast<CUcontext>(context); }

// The context that the call is made in, or why it cannot be.
CUresult current(Context** context) {
  if (stack.empty()) return kCudaInvalidContext;
  *context = stack.back();
  if ((*context)->ended) return kCudaContextIsDestroyed;
  return streams().sticky(*context);
}

// A stream for copies and the like, which the driver takes in the stream's own context.
CUresult here(CUstream given, Context** context, Stream** stream) {
  if (const CUresult refused = current(context); refused != kCudaSuccess) return refused;
  *stream = streams().stream(given, *context);
  if (*stream == nullptr) return misuse("a stream that is none", kCudaInvalidHandle);
  return (*stream)->context == *context ? kCudaSuccess : kCudaInvalidContext;
}

// A stream that is waited for or asked: any context will do.
CUresult anywhere(CUstream given, Stream** stream) {
  Context* context = nullptr;
  const CUresult refused = here(given, &context, stream);
  return *stream != nullptr && refused == kCudaInvalidContext ? CUresult{kCudaSuccess} : refused;
}

CUresult copy_in(const Copy& copy, CUstream given, bool wait) {
  const LateFault fault = take_late_fault();
  Context* context = nullptr;
  Stream* stream = nullptr;
  if (const CUresult refused = here(given, &context, &stream); refused != kCudaSuccess)
    return refused;
  bool pageable = false;
  if (const CUresult bad = check(copy, handle(context), context->device, &pageable);
      bad != kCudaSuccess) {
    return bad;
  }
  if (copy.empty() && !wait) return kCudaSuccess;
  if (pageable && !wait) count_pageable();
  Work work;
  work.delay = delay();
  work.sticky = fault.sticky;
  work.run = [copy, fault, pageable] {
    return fault.planned() ? fault.error : run(copy, !pageable);
  };
  const Mark mark = streams().give(stream, std::move(work));
  return pageable || wait ? streams().wait(mark) : CUresult{kCudaSuccess};
}

Side host_side(const void* pointer, size_t size) {
  return {reinterpret_cast<uintptr_t>(pointer), size, 1, false};
}
Side device_side(CUdeviceptr pointer, size_t size) {
  return {static_cast<uintptr_t>(pointer), size, 1, true};
}

// One end of a copy of a box, from the fields of the driver's structures.
struct Box {
  int type;
  const void* host;
  CUdeviceptr device;
  size_t pitch, rows, x, y, z;
};

bool to_side(const Box& box, Side* side) {
  if (box.type != kCudaHost && box.type != kCudaDevice && box.type != kCudaUnified) return false;
  const auto address = box.type == kCudaHost ? reinterpret_cast<uintptr_t>(box.host)
                                             : static_cast<uintptr_t>(box.device);
  const auto range = find_range(address);
  const bool unified = box.type == kCudaUnified && range && range->on_device();
  *side = {address, box.pitch, box.rows, box.type == kCudaDevice || unified};
  side->first = side->row(box.y, box.z) + box.x;
  return box.pitch >= box.x;
}

// Allocations begin in a context and are ended in any.
CUresult end_memory(uintptr_t start, Kind kind, Kind or_kind, CUresult unknown) {
  Context* context = nullptr;
  if (const CUresult refused = current(&context); refused != kCudaSuccess) return refused;
  const auto range = find_range(start);
  if (!range) return unknown;
  // As the real one: what was given to streams before is done first.
  if (range->context != nullptr && streams().context(range->context) != nullptr) {
    streams().wait(streams().context(range->context));
  }
  return end_range(start, kind, or_kind) ? CUresult{kCudaSuccess} : unknown;
}

CUresult make_memory(Kind kind, size_t size, unsigned flags, uintptr_t* made) {
  Context* context = nullptr;
  if (const CUresult refused = current(&context); refused != kCudaSuccess) return refused;
  if (size == 0) return kCudaInvalidValue;
  *made = allocate(kind, size, handle(context), context->device, flags);
  return *made == 0 ? kCudaOutOfMemory : kCudaSuccess;
}

// What is known about an address, by attribute; false where the attribute says nothing of such memory.
bool attribute_of(int attribute, CUdeviceptr pointer, const std::optional<Range>& range,
                  void* data) {
  if (!range) return false;
  const bool device_only = range->kind == Kind::kDevice || range->kind == Kind::kPooled;
  switch (attribute) {
    case kCudaContextOf:  // memory of a pool belongs to none
      *static_cast<CUcontext*>(data) = range->kind == Kind::kPooled ? nullptr : range->context;
      return true;
    case kCudaMemoryTypeOf:
      *static_cast<unsigned*>(data) = range->on_device() ? kCudaDevice : kCudaHost;
      return true;
    case kCudaDevicePointerOf: *static_cast<CUdeviceptr*>(data) = pointer; return true;
    case kCudaHostPointerOf:
      if (device_only) return false;
      *static_cast<void**>(data) = reinterpret_cast<void*>(static_cast<uintptr_t>(pointer));
      return true;
    case kCudaBufferIdOf: *static_cast<uint64_t*>(data) = range->id; return true;
    case kCudaIsManaged:
      *static_cast<unsigned*>(data) = range->kind == Kind::kManaged ? 1 : 0;
      return true;
    case kCudaDeviceOrdinalOf: *static_cast<int*>(data) = range->device; return true;
    case kCudaRangeStartOf: *static_cast<CUdeviceptr*>(data) = range->start; return true;
    case kCudaRangeSizeOf: *static_cast<size_t*>(data) = range->size; return true;
    case kCudaMemoryPoolOf:
      *static_cast<void**>(data) = range->kind == Kind::kPooled ? &stack : nullptr;
      return true;
    default: return false;
  }
}

// How the driver says that it knows nothing.
bool put_nothing(int attribute, void* data) {
  switch (attribute) {
    case kCudaContextOf:
    case kCudaDevicePointerOf:
    case kCudaHostPointerOf:
    case kCudaBufferIdOf:
    case kCudaRangeStartOf:
    case kCudaRangeSizeOf:
    case kCudaMemoryPoolOf: std::memset(data, 0, 8); return true;
    case kCudaMemoryTypeOf:
    case kCudaIsManaged: std::memset(data, 0, 4); return true;
    case kCudaDeviceOrdinalOf: *static_cast<int*>(data) = -2; return true;
    default: return false;
  }
}

int device_attribute(int attribute) {
  switch (attribute) {
    case 11: return INT32_MAX;  // the longest pitch
    case 19:                    // maps host memory
    case 31:                    // kernels at a time
    case 41:                    // one address space
    case 83:                    // managed memory
    case 89:                    // of which host and device may use parts at a time
    case 91:                    // registered memory has one address
    case 115: return 1;         // pools
    case 40: return 2;          // copy engines
    case 75: return 9;          // compute capability
    default: return 0;
  }
}

const char* error_name(CUresult error) {
  switch (error) {
    case kCudaSuccess: return "CUDA_SUCCESS";
    case kCudaInvalidValue: return "CUDA_ERROR_INVALID_VALUE";
    case kCudaOutOfMemory: return "CUDA_ERROR_OUT_OF_MEMORY";
    case kCudaNotInitialized: return "CUDA_ERROR_NOT_INITIALIZED";
    case kCudaDeinitialized: return "CUDA_ERROR_DEINITIALIZED";
    case kCudaInvalidDevice: return "CUDA_ERROR_INVALID_DEVICE";
    case kCudaInvalidContext: return "CUDA_ERROR_INVALID_CONTEXT";
    case kCudaInvalidHandle: return "CUDA_ERROR_INVALID_HANDLE";
    case kCudaNotFound: return "CUDA_ERROR_NOT_FOUND";
    case kCudaNotReady: return "CUDA_ERROR_NOT_READY";
    case kCudaIllegalAddress: return "CUDA_ERROR_ILLEGAL_ADDRESS";
    case kCudaContextIsDestroyed: return "CUDA_ERROR_CONTEXT_IS_DESTROYED";
    case kCudaAlreadyRegistered: return "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED";
    case kCudaNotRegistered: return "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED";
    case kCudaLaunchFailed: return "CUDA_ERROR_LAUNCH_FAILED";
    case kCudaNotPermitted: return "CUDA_ERROR_NOT_PERMITTED";
    case kCudaNotSupported: return "CUDA_ERROR_NOT_SUPPORTED";
    case kCudaUnknown: return "CUDA_ERROR_UNKNOWN";
    default: return nullptr;
  }
}

}  // namespace
}  // namespace tidelane::standin

using namespace tidelane::standin;  // NOLINT: the functions below are the library's face

#define STANDIN_ENTER()                                  \
  do {                                                   \
    const CUresult entered = enter(__func__);            \
    if (entered == kStandInIgnored) return kCudaSuccess; \
    if (entered != kCudaSuccess) return entered;         \
  } while (false)
#define STANDIN_TRY(call)                                                      \
  do {                                                                         \
    if (const CUresult failed = (call); failed != kCudaSuccess) return failed; \
  } while (false)

extern "C" {

STANDIN_EXPORT CUresult cuInit(unsigned flags) {
  STANDIN_ENTER();
  if (flags != 0) return kCudaInvalidValue;
  initialize();
  return kCudaSuccess;
}

STANDIN_EXPORT CUresult cuDriverGetVersion(int* version) {
  STANDIN_ENTER();
  *version = 12040;
  return kCudaSuccess;
}

STANDIN_EXPORT CUresult cuGetErrorName(CUresult error, const char** name) {
  STANDIN_ENTER();
  *name = error_name(error);
  return *name == nullptr ? kCudaInvalidValue : kCudaSuccess;
}

STANDIN_EXPORT CUresult cuGetErrorString(CUresult error, const char** text) {
  STANDIN_ENTER();
  *text = error_name(error) == nullptr ? nullptr : "an error of the stand-in for CUDA";
  return *text == nullptr ? kCudaInvalidValue : kCudaSuccess;
}

STANDIN_EXPORT CUresult cuGetProcAddress_v2(const char*, void** function, int, uint64_t,
                                            int* found) {
  STANDIN_ENTER();
  *function = nullptr;
  if (found != nullptr) *found = 1;  // no such symbol
  return kCudaNotFound;
}

STANDIN_EXPORT CUresult cuDeviceGetCount(int* count) {
  STANDIN_ENTER();
  *count = kDevices;
  return kCudaSuccess;
}

STANDIN_EXPORT CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  STANDIN_ENTER();
  if (ordinal < 0 || ordinal >= kDevices) return kCudaInvalidDevice;
  *device = ordinal;
  return kCudaSuccess;
}

STANDIN_EXPORT CUresult cuDeviceGetName(char* name, int size, CUdevice device) {
  STANDIN_ENTER();
  if (device < 0 || device >= kDevices) return kCudaInvalidDevice;
  std::snprintf(name, static_cast<size_t>(size), "stand-in %d", device);
  return kCudaSuccess;
}

STANDIN_EXPORT CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  STANDIN_ENTER();
  if (device < 0 || device >= kDevices) return kCudaInvalidDevice;
  *bytes = size_t{8} << 30;
  return kCudaSuccess;
}

STANDIN_EXPORT CUresult cuDeviceGetAttribute(int* value, int attribute, CUdevice device) {
  STANDIN_ENTER();
  if (device < 0 || device >= kDevices) return kCudaInvalidDevice;
  *value = device_attribute(attribute);
  return kCudaSuccess;
}

STANDIN_EXPORT CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  STANDIN_ENTER();
  if (device < 0 || device >= kDevices) return kCudaInvalidDevice;
  std::memset(uuid->bytes, device + 1, sizeof uuid->bytes);
  return kCudaSuccess;
}

STANDIN_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  STANDIN_ENTER();
  if (device < 0 || device >= kDevices) return kCudaInvalidDevice;
  *context = handle(streams().retain(device));
  return kCudaSuccess;
}

STANDIN_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  STANDIN_ENTER();
  if (device < 0 || device >= kDevices) return kCudaInvalidDevice;
  Context* ended = nullptr;
  STANDIN_TRY(streams().release(device, &ended));
  if (ended != nullptr) end_ranges_of(handle(ended));
  return kCudaSuccess;
}

STANDIN_EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  STANDIN_ENTER();
  if (device < 0 || device >= kDevices) return kCudaInvalidDevice;
  Context* const primary = streams().renew(device);
  if (primary != nullptr) end_ranges_of(handle(primary));
  return kCudaSuccess;
}

STANDIN_EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  STANDIN_ENTER();
  if (device < 0 || device >= kDevices) return kCudaInvalidDevice;
  *flags = 0;
  *active = streams().active(device) ? 1 : 0;
  return kCudaSuccess;
}

STANDIN_EXPORT CUresult cuCtxCreate_v2(CUcontext* context, unsigned, CUdevice device) {
  STANDIN_ENTER();
  if (device < 0 || device >= kDevices) return kCudaInvalidDevice;
  stack.push_back(streams().create_context(device));
  *context = handle(stack.back());
  return kCudaSuccess;
}

STANDIN_EXPORT CUresult cuCtxDestroy_v2(CUcontext context) {
  STANDIN_ENTER();
  Context* const known = streams().context(context);
  if (known == nullptr || known->primary) return kCudaInvalidContext;
  streams().end(known);
  end_ranges_of(context);
  if (!stack.empty() && stack.back() == known) stack.pop_back();
  return kCudaSuccess;
}

STANDIN_EXPORT CUresult cuCtxPushCurrent_v2(CUcontext context) {
  STANDIN_ENTER();
  Context* const known = streams().context(context);
  if (known == nullptr) return kCudaInvalidContext;
  stack.push_back(known);
  return kCudaSuccess;
}

// Pops also where a fault is planned: nothing that a caller could do would restore the stack otherwise.
STANDIN_EXPORT CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  const CUresult refused = enter(__func__);
  if (stack.empty())
    return refused != kCudaSuccess ? refused : misuse("a pop too many", kCudaInvalidContext);
  if (context != nullptr) *context = handle(stack.back());
  stack.pop_back();
  return refused;
}

STANDIN_EXPORT CUresult cuCtxGetCurrent(CUcontext* context) {
  STANDIN_ENTER();
  *context = stack.empty() ? nullptr : handle(stack.back());
  return kCudaSuccess;
}

STANDIN_EXPORT CUresult cuCtxSetCurrent(CUcontext context) {
  STANDIN_ENTER();
  Context* const known = streams().context(context);
  if (known == nullptr && context != nullptr) return kCudaInvalidContext;
  if (!stack.empty()) stack.pop_back();
  if (known != nullptr) stack.push_back(known);
  return kCudaSuccess;
}

STANDIN_EXPORT CUresult cuCtxGetDevice(CUdevice* device) {
  STANDIN_ENTER();
  if (stack.empty()) return kCudaInvalidContext;
  *device = stack.back()->device;
  return kCudaSuccess;
}

STANDIN_EXPORT CUresult cuCtxGetId(CUcontext context, unsigned long long* id) {
  STANDIN_ENTER();
  Context* known = streams().context(context);
  if (context == nullptr && !stack.empty()) known = stack.back();
  if (known == nullptr) return kCudaContextIsDestroyed;
  *id = known->id;
  return kCudaSuccess;
}

STANDIN_EXPORT CUresult cuCtxSynchronize() {
  STANDIN_ENTER();
  Context* context = nullptr;
  STANDIN_TRY(current(&context));
  return streams().wait(context);
}

STANDIN_EXPORT CUresult cuPointerGetAttribute(void* data, int attribute, CUdeviceptr pointer) {
  STANDIN_ENTER();
  return attribute_of(attribute, pointer, find_range(pointer), data) ? kCudaSuccess
                                                                     : kCudaInvalidValue;
}

STANDIN_EXPORT CUresult cuPointerGetAttributes(unsigned count, int* attributes, void** data,
                                               CUdeviceptr pointer) {
  STANDIN_ENTER();
  const auto range = find_range(pointer);
  for (unsigned i = 0; i < count; ++i) {
    if (attribute_of(attributes[i], pointer, range, data[i])) continue;
    if (!put_nothing(attributes[i], data[i])) return kCudaInvalidValue;
  }
  return kCudaSuccess;
}

STANDIN_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* pointer, size_t size) {
  STANDIN_ENTER();
  uintptr_t made = 0;
  STANDIN_TRY(make_memory(Kind::kDevice, size, 0, &made));
  *pointer = made;
  return kCudaSuccess;
}

STANDIN_EXPORT CUresult cuMemFree_v2(CUdeviceptr pointer) {
  STANDIN_ENTER();
  if (pointer == 0) return kCudaSuccess;
  return end_memory(pointer, Kind::kDevice, Kind::kManaged, kCudaInvalidValue);
}

STANDIN_EXPORT CUresult cuMemAllocManaged(CUdeviceptr* pointer, size_t size, unsigned flags) {
  STANDIN_ENTER();
  uintptr_t made = 0;
  STANDIN_TRY(make_memory(Kind::kManaged, size, flags, &made));
  *pointer = made;
  return kCudaSuccess;
}

STANDIN_EXPORT CUresult cuMemAllocAsync(CUdeviceptr* pointer, size_t size, CUstream given) {
  STANDIN_ENTER();
  Context* context = nullptr;
  Stream* stream = nullptr;
  STANDIN_TRY(here(given, &context, &stream));
  uintptr_t made = 0;
  STANDIN_TRY(make_memory(Kind::kPooled, size, 0, &made));
  *pointer = made;
  return kCudaSuccess;
}

STANDIN_EXPORT CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream given) {
  STANDIN_ENTER();
  Context* context = nullptr;
  Stream* stream = nullptr;
  STANDIN_TRY(here(given, &context, &stream));
  const auto range = find_range(pointer);
  if (!range || range->start != pointer || !range->on_device()) return kCudaInvalidValue;
  Work work;
  work.delay = delay();
  work.run = [pointer] {
    end_range(pointer, Kind::kPooled, Kind::kDevice);
    return CUresult{kCudaSuccess};
  };
  streams().give(stream, std::move(work));
  return kCudaSuccess;
}

STANDIN_EXPORT CUresult cuMemHostAlloc(void** pointer, size_t size, unsigned flags) {
  STANDIN_ENTER();
  uintptr_t made = 0;
  // With one address space for host and devices such memory is portable, asked for or not.
  STANDIN_TRY(make_memory(Kind::kHostAllocated, size, flags | kCudaPortable, &made));
  *pointer = reinterpret_cast<void*>(made);
  return kCudaSuccess;
}

STANDIN_EXPORT CUresult cuMemFreeHost(void* pointer) {
  STANDIN_ENTER();
  return end_memory(reinterpret_cast<uintptr_t>(pointer), Kind::kHostAllocated,
                    Kind::kHostAllocated, kCudaInvalidValue);
}

STANDIN_EXPORT CUresult cuMemHostRegister_v2(void* pointer, size_t size, unsigned flags) {
  STANDIN_ENTER();
  Context* context = nullptr;
  STANDIN_TRY(current(&context));
  return pin(pointer, size, handle(context), flags);
}

// Does not wait for copies: memory that one still uses is misuse.
STANDIN_EXPORT CUresult cuMemHostUnregister(void* pointer) {
  STANDIN_ENTER();
  Context* context = nullptr;
  STANDIN_TRY(current(&context));
  return end_range(reinterpret_cast<uintptr_t>(pointer), Kind::kHostRegistered)
             ? kCudaSuccess
             : kCudaNotRegistered;
}

STANDIN_EXPORT CUresult cuMemHostGetFlags(unsigned* flags, void* pointer) {
  STANDIN_ENTER();
  const auto range = find_range(reinterpret_cast<uintptr_t>(pointer));
  if (!range || !range->pinned()) return kCudaInvalidValue;
  *flags = range->flags;
  return kCudaSuccess;
}

STANDIN_EXPORT CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t size,
                                             CUstream stream) {
  STANDIN_ENTER();
  return copy_in({device_side(from, size), host_side(to, size), size}, stream, false);
}

STANDIN_EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t size,
                                             CUstream stream) {
  STANDIN_ENTER();
  return copy_in({host_side(from, size), device_side(to, size), size}, stream, false);
}

STANDIN_EXPORT CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t size) {
  STANDIN_ENTER();
  return copy_in({device_side(from, size), host_side(to, size), size}, nullptr, true);
}

STANDIN_EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t size) {
  STANDIN_ENTER();
  return copy_in({host_side(from, size), device_side(to, size), size}, nullptr, true);
}

STANDIN_EXPORT CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* asked, CUstream stream) {
  STANDIN_ENTER();
  Copy copy;
  const bool fits = to_side({asked->srcMemoryType, asked->srcHost, asked->srcDevice,
                             asked->srcPitch, asked->Height, asked->srcXInBytes, asked->srcY, 0},
                            &copy.from) &&
                    to_side({asked->dstMemoryType, asked->dstHost, asked->dstDevice,
                             asked->dstPitch, asked->Height, asked->dstXInBytes, asked->dstY, 0},
                            &copy.to);
  if (!fits) return kCudaInvalidValue;
  copy.width = asked->WidthInBytes;
  copy.height = asked->Height;
  return copy_in(copy, stream, false);
}

STANDIN_EXPORT CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* asked, CUstream stream) {
  STANDIN_ENTER();
  Copy copy;
  const bool fits =
      asked->srcLOD == 0 && asked->dstLOD == 0 && asked->reserved0 == nullptr &&
      asked->reserved1 == nullptr &&
      to_side({asked->srcMemoryType, asked->srcHost, asked->srcDevice, asked->srcPitch,
               asked->srcHeight, asked->srcXInBytes, asked->srcY, asked->srcZ},
              &copy.from) &&
      to_side({asked->dstMemoryType, asked->dstHost, asked->dstDevice, asked->dstPitch,
               asked->dstHeight, asked->dstXInBytes, asked->dstY, asked->dstZ},
              &copy.to);
  if (!fits) return kCudaInvalidValue;
  copy.width = asked->WidthInBytes;
  copy.height = asked->Height;
  copy.depth = asked->Depth;
  return copy_in(copy, stream, false);
}

STANDIN_EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t size,
                                        CUstream given) {
  STANDIN_ENTER();
  const std::vector<char> bytes(size, static_cast<char>(value));
  return StandInWriteLater(to, bytes.data(), size, given, 0);
}

STANDIN_EXPORT CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  STANDIN_ENTER();
  Context* context = nullptr;
  STANDIN_TRY(current(&context));
  if ((flags & ~unsigned{kCudaNonBlocking}) != 0) return kCudaInvalidValue;
  *stream = reinterpret_cast<CUstream>(streams().create(context, flags == 0));
  return kCudaSuccess;
}

STANDIN_EXPORT CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int) {
  STANDIN_ENTER();
  Context* context = nullptr;
  STANDIN_TRY(current(&context));
  if ((flags & ~unsigned{kCudaNonBlocking}) != 0) return kCudaInvalidValue;
  *stream = reinterpret_cast<CUstream>(streams().create(context, flags == 0));
  return kCudaSuccess;
}

STANDIN_EXPORT CUresult cuStreamDestroy_v2(CUstream given) {
  STANDIN_ENTER();
  Context* context = nullptr;
  STANDIN_TRY(current(&context));
  Stream* const stream = streams().stream(given, context);
  if (stream == nullptr) return misuse("the end of a stream that is none", kCudaInvalidHandle);
  return streams().end(stream);
}

STANDIN_EXPORT CUresult cuStreamWaitEvent(CUstream given, CUevent on, unsigned) {
  STANDIN_ENTER();
  Context* context = nullptr;
  Stream* stream = nullptr;
  STANDIN_TRY(here(given, &context, &stream));
  Event* const event = streams().event(on);
  if (event == nullptr) return misuse("a wait for an event that is none", kCudaInvalidHandle);
  return streams().wait_event(stream, event);
}

STANDIN_EXPORT CUresult cuStreamSynchronize(CUstream given) {
  STANDIN_ENTER();
  Stream* stream = nullptr;
  STANDIN_TRY(anywhere(given, &stream));
  return streams().wait(stream);
}

STANDIN_EXPORT CUresult cuStreamQuery(CUstream given) {
  STANDIN_ENTER();
  Stream* stream = nullptr;
  STANDIN_TRY(anywhere(given, &stream));
  return streams().query(stream);
}

STANDIN_EXPORT CUresult cuStreamGetCtx(CUstream given, CUcontext* context) {
  STANDIN_ENTER();
  const bool own = reinterpret_cast<uintptr_t>(given) <= kCudaPerThreadStream;
  if (own && stack.empty()) return kCudaInvalidContext;
  Stream* const stream = streams().stream(given, own ? stack.back() : nullptr);
  if (stream == nullptr) return misuse("the context of a stream that is none", kCudaInvalidHandle);
  *context = handle(stream->context);
  return kCudaSuccess;
}

STANDIN_EXPORT CUresult cuLaunchHostFunc(CUstream given, CUhostFn function, void* data) {
  STANDIN_ENTER();
  Context* context = nullptr;
  Stream* stream = nullptr;
  STANDIN_TRY(here(given, &context, &stream));
  Work work;
  work.delay = delay();
  work.run = [function, data] {
    const InHostFunction inside;
    function(data);
    return CUresult{kCudaSuccess};
  };
  streams().give(stream, std::move(work));
  return kCudaSuccess;
}

STANDIN_EXPORT CUresult cuEventCreate(CUevent* event, unsigned flags) {
  STANDIN_ENTER();
  Context* context = nullptr;
  STANDIN_TRY(current(&context));
  *event = reinterpret_cast<CUevent>(streams().create_event(context, flags));
  return kCudaSuccess;
}

STANDIN_EXPORT CUresult cuEventDestroy_v2(CUevent given) {
  STANDIN_ENTER();
  Context* context = nullptr;
  STANDIN_TRY(current(&context));
  Event* const event = streams().event(given);
  if (event == nullptr) return misuse("the end of an event that is none", kCudaInvalidHandle);
  return streams().end(event);
}

STANDIN_EXPORT CUresult cuEventRecord(CUevent given, CUstream in) {
  STANDIN_ENTER();
  Stream* stream = nullptr;
  STANDIN_TRY(anywhere(in, &stream));
  Event* const event = streams().event(given);
  if (event == nullptr) return misuse("a record of an event that is none", kCudaInvalidHandle);
  return streams().record(event, stream);
}

// Needs no current context: the driver's page of it names no such error.
STANDIN_EXPORT CUresult cuEventQuery(CUevent given) {
  STANDIN_ENTER();
  Event* const event = streams().event(given);
  if (event == nullptr) return misuse("a question about an event that is none", kCudaInvalidHandle);
  return streams().query(event);
}

STANDIN_EXPORT CUresult cuEventSynchronize(CUevent given) {
  STANDIN_ENTER();
  Context* context = nullptr;
  STANDIN_TRY(current(&context));
  Event* const event = streams().event(given);
  if (event == nullptr) return misuse("a wait for an event that is none", kCudaInvalidHandle);
  return streams().wait(event);
}

STANDIN_EXPORT CUresult cuEventElapsedTime(float* milliseconds, CUevent from, CUevent to) {
  STANDIN_ENTER();
  Event* const first = streams().event(from);
  Event* const second = streams().event(to);
  if (first == nullptr || second == nullptr) return kCudaInvalidHandle;
  return streams().elapsed(first, second, milliseconds);
}

STANDIN_EXPORT CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent from, CUevent to) {
  STANDIN_ENTER();
  Event* const first = streams().event(from);
  Event* const second = streams().event(to);
  if (first == nullptr || second == nullptr) return kCudaInvalidHandle;
  return streams().elapsed(first, second, milliseconds);
}

STANDIN_EXPORT CUresult StandInWriteLater(CUdeviceptr to, const void* bytes, size_t size,
                                          CUstream given, unsigned microseconds) {
  Context* context = nullptr;
  Stream* stream = nullptr;
  STANDIN_TRY(here(given, &context, &stream));
  STANDIN_TRY(check_device(to, size, context->device));
  const auto* const begin = static_cast<const char*>(bytes);
  Work work;
  work.delay = std::chrono::microseconds(microseconds) + delay();
  work.run = [to, copied = std::vector<char>(begin, begin + size)] {
    return fill(
        to, [&](char* at) { std::memcpy(at, copied.data(), copied.size()); }, copied.size());
  };
  streams().give(stream, std::move(work));
  return kCudaSuccess;
}

STANDIN_EXPORT size_t StandInContexts() { return stack.size(); }
STANDIN_EXPORT size_t StandInPending() { return streams().pending(); }

}  // extern "C"
