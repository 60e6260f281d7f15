// CUDA's driver as a program of its own has it: found at run time, declared here, so that no CUDA is needed to build this.
//
// Invariant: a function that the driver lacks is nullptr; what the tests cannot do without is there after open().
// Thread safety: open() once; then as the driver's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace tidelane::gpu_real {

using DevicePointer = unsigned long long;
using Stream = void*;
using Context = void*;

struct IpcHandle {
  char bytes[64];
};
struct Location {
  int type = 1;  // a device
  int id = 0;
};
struct AllocationProperties {
  int type = 1;  // pinned to the device
  int handle_types = 0;
  Location location;
  void* windows = nullptr;
  unsigned char flags[8] = {};
};
struct AccessDescription {
  Location location;
  int flags = 3;  // to read and write
};

constexpr int kNotReady = 600;

struct Functions {
  int (*Init)(unsigned);
  int (*GetErrorName)(int, const char**);
  int (*DeviceGet)(int*, int);
  int (*DeviceGetName)(char*, int, int);
  int (*DevicePrimaryCtxRetain)(Context*, int);
  int (*CtxCreate)(Context*, unsigned, int);
  int (*CtxSetCurrent)(Context);
  int (*CtxGetCurrent)(Context*);
  int (*CtxPushCurrent)(Context);
  int (*CtxPopCurrent)(Context*);
  int (*CtxSynchronize)();
  int (*MemAlloc)(DevicePointer*, size_t);
  int (*MemFree)(DevicePointer);
  int (*MemHostAlloc)(void**, size_t, unsigned);
  int (*MemFreeHost)(void*);
  int (*MemcpyHtoD)(DevicePointer, const void*, size_t);
  int (*MemcpyDtoH)(void*, DevicePointer, size_t);
  int (*MemsetD8Async)(DevicePointer, unsigned char, size_t, Stream);
  int (*StreamCreate)(Stream*, unsigned);
  int (*StreamSynchronize)(Stream);
  int (*StreamQuery)(Stream);
  // Not every driver has these.
  int (*MemcpyDtoDAsync)(DevicePointer, DevicePointer, size_t, Stream);
  int (*MemAllocManaged)(DevicePointer*, size_t, unsigned);
  int (*MemAllocAsync)(DevicePointer*, size_t, Stream);
  int (*MemFreeAsync)(DevicePointer, Stream);
  int (*MemGetAllocationGranularity)(size_t*, const AllocationProperties*, int);
  int (*MemCreate)(unsigned long long*, size_t, const AllocationProperties*, unsigned long long);
  int (*MemAddressReserve)(DevicePointer*, size_t, size_t, DevicePointer, unsigned long long);
  int (*MemMap)(DevicePointer, size_t, size_t, unsigned long long, unsigned long long);
  int (*MemSetAccess)(DevicePointer, size_t, const AccessDescription*, size_t);
  int (*MemUnmap)(DevicePointer, size_t);
  int (*MemRelease)(unsigned long long);
  int (*MemAddressFree)(DevicePointer, size_t);
  int (*IpcGetMemHandle)(IpcHandle*, DevicePointer);
  int (*IpcOpenMemHandle)(DevicePointer*, IpcHandle, unsigned);
  int (*IpcCloseMemHandle)(DevicePointer);
};

// After open().
const Functions& cuda();
// The first device, its primary context made the calling thread's. False: there is none, and why.
bool open(std::string& why);
const std::string& device_name();

// The driver lacks it, or a machine does not allow it: not a failure of what is tested.
struct Unavailable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::string describe(int error, const char* what);
void check(int error, const char* what);
void need(int error, const char* what);  // throws Unavailable
template <typename Function>
void need_function(Function function, const char* name) {
  if (function == nullptr) throw Unavailable(std::string("the driver has no ") + name);
}

// A context current for a while; nullptr: the one that is.
class InContext {
 public:
  explicit InContext(Context context);
  ~InContext();
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;

 private:
  const bool entered_;
};

// One more context of the device; the same for every call.
Context other_context();

inline DevicePointer address(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }
inline char* pointer(DevicePointer at) {
  return reinterpret_cast<char*>(static_cast<uintptr_t>(at));
}

}  // namespace tidelane::gpu_real
