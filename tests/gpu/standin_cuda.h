// A stand-in for the CUDA driver's library, libcuda.so.1, for machines without a device: the part of its interface that
// the plugin and these tests use, declared here as the driver's own header has it, and functions that steer the stand-in.
//
// What it promises is what a program may not rely on with the real one:
//   - Device memory is mapped without any permission: a processor that touches it gets SIGSEGV. Its bytes are reached
//     by copies of the driver only.
//   - Copies and events are made late, by a thread for each stream, each after a delay.
//   - Calls without the right current context are refused, also where only some versions of the driver do so.
//   - A child of fork() that makes any call is aborted with a line on stderr.
//   - What is undefined with the real one (a stream after its end, memory unpinned under a copy) is refused and counted
//     as misuse.
//
// Nobody links the library: programs load it and find the functions by name, so that these declarations serve as types.
//
// Thread safety: any thread may call anything, as with the real one. What is set by StandIn functions counts for all.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUarray = struct CUarray_st*;
using CUhostFn = void (*)(void*);

struct CUuuid {
  char bytes[16];
};

struct CUDA_MEMCPY2D {
  size_t srcXInBytes, srcY;
  int srcMemoryType;
  const void* srcHost;
  CUdeviceptr srcDevice;
  CUarray srcArray;
  size_t srcPitch;
  size_t dstXInBytes, dstY;
  int dstMemoryType;
  void* dstHost;
  CUdeviceptr dstDevice;
  CUarray dstArray;
  size_t dstPitch;
  size_t WidthInBytes, Height;
};

struct CUDA_MEMCPY3D {
  size_t srcXInBytes, srcY, srcZ, srcLOD;
  int srcMemoryType;
  const void* srcHost;
  CUdeviceptr srcDevice;
  CUarray srcArray;
  void* reserved0;
  size_t srcPitch, srcHeight;
  size_t dstXInBytes, dstY, dstZ, dstLOD;
  int dstMemoryType;
  void* dstHost;
  CUdeviceptr dstDevice;
  CUarray dstArray;
  void* reserved1;
  size_t dstPitch, dstHeight;
  size_t WidthInBytes, Height, Depth;
};
static_assert(sizeof(CUDA_MEMCPY2D) == 128 && sizeof(CUDA_MEMCPY3D) == 200);

// As the driver's header numbers them.
enum {
  kCudaSuccess = 0,
  kCudaInvalidValue = 1,
  kCudaOutOfMemory = 2,
  kCudaNotInitialized = 3,
  kCudaDeinitialized = 4,
  kCudaInvalidDevice = 101,
  kCudaInvalidContext = 201,
  kCudaInvalidHandle = 400,
  kCudaNotFound = 500,
  kCudaNotReady = 600,
  kCudaIllegalAddress = 700,
  kCudaContextIsDestroyed = 709,
  kCudaAlreadyRegistered = 712,
  kCudaNotRegistered = 713,
  kCudaLaunchFailed = 719,
  kCudaNotPermitted = 800,
  kCudaNotSupported = 801,
  kCudaUnknown = 999,
};
inline constexpr CUresult kStandInIgnored = -1;
enum { kCudaHost = 1, kCudaDevice = 2, kCudaArray = 3, kCudaUnified = 4 };  // types of memory
enum {
  kCudaContextOf = 1,
  kCudaMemoryTypeOf = 2,
  kCudaDevicePointerOf = 3,
  kCudaHostPointerOf = 4,
  kCudaBufferIdOf = 7,
  kCudaIsManaged = 8,
  kCudaDeviceOrdinalOf = 9,
  kCudaRangeStartOf = 11,
  kCudaRangeSizeOf = 12,
  kCudaMemoryPoolOf = 17,
};
enum { kCudaNonBlocking = 1 };                      // flags of streams
enum { kCudaBlockingSync = 1, kCudaNoTiming = 2 };  // flags of events
enum { kCudaPortable = 1, kCudaMapped = 2 };        // flags of pinned memory
inline constexpr uintptr_t kCudaLegacyStream = 1;   // as is NULL
inline constexpr uintptr_t kCudaPerThreadStream = 2;

CUresult cuInit(unsigned flags);
CUresult cuDriverGetVersion(int* version);
CUresult cuGetErrorName(CUresult error, const char** name);
CUresult cuGetErrorString(CUresult error, const char** text);
CUresult cuGetProcAddress_v2(const char* name, void** function, int version, uint64_t flags,
                             int* found);
CUresult cuDeviceGetCount(int* count);
CUresult cuDeviceGet(CUdevice* device, int ordinal);
CUresult cuDeviceGetName(char* name, int size, CUdevice device);
CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device);
CUresult cuDeviceGetAttribute(int* value, int attribute, CUdevice device);
CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device);
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device);
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active);
CUresult cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device);
CUresult cuCtxDestroy_v2(CUcontext context);
CUresult cuCtxPushCurrent_v2(CUcontext context);
CUresult cuCtxPopCurrent_v2(CUcontext* context);
CUresult cuCtxGetCurrent(CUcontext* context);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuCtxGetDevice(CUdevice* device);
CUresult cuCtxGetId(CUcontext context, unsigned long long* id);
CUresult cuCtxSynchronize();
CUresult cuPointerGetAttribute(void* data, int attribute, CUdeviceptr pointer);
CUresult cuPointerGetAttributes(unsigned count, int* attributes, void** data, CUdeviceptr pointer);
CUresult cuMemAlloc_v2(CUdeviceptr* pointer, size_t size);
CUresult cuMemFree_v2(CUdeviceptr pointer);
CUresult cuMemAllocManaged(CUdeviceptr* pointer, size_t size, unsigned flags);
CUresult cuMemAllocAsync(CUdeviceptr* pointer, size_t size, CUstream stream);
CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream);
CUresult cuMemHostAlloc(void** pointer, size_t size, unsigned flags);
CUresult cuMemFreeHost(void* pointer);
CUresult cuMemHostRegister_v2(void* pointer, size_t size, unsigned flags);
CUresult cuMemHostUnregister(void* pointer);
CUresult cuMemHostGetFlags(unsigned* flags, void* pointer);
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t size, CUstream stream);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t size, CUstream stream);
CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t size);
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t size);
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream);
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* copy, CUstream stream);
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t size, CUstream stream);
CUresult cuStreamCreate(CUstream* stream, unsigned flags);
CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority);
CUresult cuStreamDestroy_v2(CUstream stream);
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuStreamQuery(CUstream stream);
CUresult cuStreamGetCtx(CUstream stream, CUcontext* context);
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data);
CUresult cuEventCreate(CUevent* event, unsigned flags);
CUresult cuEventDestroy_v2(CUevent event);
CUresult cuEventRecord(CUevent event, CUstream stream);
CUresult cuEventQuery(CUevent event);
CUresult cuEventSynchronize(CUevent event);
CUresult cuEventElapsedTime(float* milliseconds, CUevent from, CUevent to);
CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent from, CUevent to);

// Steering. None of these counts as a call of the driver.

// How long each piece of work waits before it is done; 200 us unless told.
void StandInDelay(unsigned microseconds);
// The `nth` next call of the function (1: the next), and `times` - 1 after it, return `error` and do nothing; kStandInIgnored: they
// say that they did it.
void StandInFail(const char* function, int nth, int times, CUresult error);
// The same of a copy that is made later: the call succeeds, the copy does not happen, and who waits for it is told the error:
// once, or if it is sticky, every call in that context from then on.
void StandInFailLater(const char* function, int nth, CUresult error, int sticky);
// The `nth` next copy, by whatever function, does not happen, and nobody is told.
void StandInDropCopy(int nth);
// From now on calls in children of fork() are refused, as the real driver does, and not the end of them.
void StandInRefuseInChildren();
// Forgets faults that did not happen; whether there were any.
int StandInFaultsLeft();
// Calls of a function so far, or with nullptr of all.
uint64_t StandInCalls(const char* function);
// The functions called so far, each with how often, as lines "name count"; truncated to the size. How long the whole is.
size_t StandInCounters(char* text, size_t size);
// A kernel on the stream of the current context that takes so long, and then has written the bytes.
CUresult StandInWriteLater(CUdeviceptr to, const void* bytes, size_t size, CUstream stream,
                           unsigned microseconds);
// The bytes of memory as they are now, past all streams. 0 if the memory has not so many.
int StandInPeek(CUdeviceptr from, void* to, size_t size);
int StandInPoke(CUdeviceptr to, const void* from, size_t size);
// Contexts on the calling thread's stack.
size_t StandInContexts();
// Pinned host memory now.
size_t StandInPinned();
// Asynchronous copies whose host memory was not pinned, so that the caller waited.
uint64_t StandInPageable();
// Work that waits for its turn, in all streams.
size_t StandInPending();
// Calls that are undefined with the real driver, and a line on the last.
uint64_t StandInMisuses();
const char* StandInLastMisuse();
// Counters, faults and delay as they were at the beginning; memory, streams and contexts stay.
void StandInReset();

}  // extern "C"
