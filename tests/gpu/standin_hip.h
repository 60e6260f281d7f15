// A stand-in for AMD's HIP library, libamdhip64.so: the functions of it that the plugin uses, over the devices, streams and late copies of the
// stand-in for CUDA's driver (standin_cuda.h), which are in the same library, so that tests make their memory by those.
//
// What differs from CUDA's driver, and is as HIP has it:
//   - A thread has a current device, the first one unless told, and no context.
//   - Types of memory are numbered otherwise before HIP 6, and an address that HIP does not know is an error there.
//   - What a call returns is the thread's last error, until somebody asks for it.
//
// Nobody links the library: see standin_cuda.h. Thread safety: any thread may call anything.
#pragma once

#include <cstddef>

extern "C" {

using hipError_t = int;

struct hipPointerAttribute_t {
  int type;
  int device;
  void* devicePointer;
  void* hostPointer;
  int isManaged;
  unsigned allocationFlags;
};

hipError_t hipRuntimeGetVersion(int* version);
const char* hipGetErrorName(hipError_t error);
const char* hipGetErrorString(hipError_t error);
hipError_t hipGetLastError();
hipError_t hipGetDevice(int* device);
hipError_t hipSetDevice(int device);
hipError_t hipPointerGetAttributes(hipPointerAttribute_t* attributes, const void* pointer);
hipError_t hipStreamCreateWithFlags(void** stream, unsigned flags);
hipError_t hipStreamDestroy(void* stream);
hipError_t hipStreamGetDevice(void* stream, int* device);
hipError_t hipStreamWaitEvent(void* stream, void* event, unsigned flags);
hipError_t hipStreamSynchronize(void* stream);
hipError_t hipEventCreateWithFlags(void** event, unsigned flags);
hipError_t hipEventDestroy(void* event);
hipError_t hipEventRecord(void* event, void* stream);
hipError_t hipEventQuery(void* event);
hipError_t hipEventSynchronize(void* event);
hipError_t hipEventElapsedTime(float* milliseconds, void* from, void* to);
hipError_t hipMemcpyAsync(void* to, const void* from, size_t size, int kind, void* stream);
hipError_t hipMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                            size_t width, size_t height, int kind, void* stream);
hipError_t hipHostRegister(void* pointer, size_t size, unsigned flags);

}  // extern "C"
