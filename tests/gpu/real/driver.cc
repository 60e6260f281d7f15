// The driver's functions, by name: see driver.h.
#include "gpu/real/driver.h"

#include <dlfcn.h>

namespace tidelane::gpu_real {
namespace {

Functions functions{};
std::string name;

template <typename Function>
bool take(void* library, const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, symbol));
  return function != nullptr;
}

// Where a name has a number at its end, that is the version whose arguments are 64 bits wide.
bool take_needed(void* library) {
  Functions& f = functions;
  return take(library, "cuInit", f.Init) && take(library, "cuGetErrorName", f.GetErrorName) &&
         take(library, "cuDeviceGet", f.DeviceGet) &&
         take(library, "cuDeviceGetName", f.DeviceGetName) &&
         take(library, "cuDevicePrimaryCtxRetain", f.DevicePrimaryCtxRetain) &&
         take(library, "cuCtxSetCurrent", f.CtxSetCurrent) &&
         take(library, "cuCtxGetCurrent", f.CtxGetCurrent) &&
         take(library, "cuCtxPushCurrent_v2", f.CtxPushCurrent) &&
         take(library, "cuCtxPopCurrent_v2", f.CtxPopCurrent) &&
         take(library, "cuCtxSynchronize", f.CtxSynchronize) &&
         take(library, "cuMemAlloc_v2", f.MemAlloc) && take(library, "cuMemFree_v2", f.MemFree) &&
         take(library, "cuMemHostAlloc", f.MemHostAlloc) &&
         take(library, "cuMemFreeHost", f.MemFreeHost) &&
         take(library, "cuMemcpyHtoD_v2", f.MemcpyHtoD) &&
         take(library, "cuMemcpyDtoH_v2", f.MemcpyDtoH) &&
         take(library, "cuMemsetD8Async", f.MemsetD8Async) &&
         take(library, "cuStreamCreate", f.StreamCreate) &&
         take(library, "cuStreamSynchronize", f.StreamSynchronize) &&
         take(library, "cuStreamQuery", f.StreamQuery);
}

void take_others(void* library) {
  Functions& f = functions;
  take(library, "cuCtxCreate_v2", f.CtxCreate);
  take(library, "cuMemcpyDtoDAsync_v2", f.MemcpyDtoDAsync);
  take(library, "cuMemAllocManaged", f.MemAllocManaged);
  take(library, "cuMemAllocAsync", f.MemAllocAsync);
  take(library, "cuMemFreeAsync", f.MemFreeAsync);
  take(library, "cuMemGetAllocationGranularity", f.MemGetAllocationGranularity);
  take(library, "cuMemCreate", f.MemCreate);
  take(library, "cuMemAddressReserve", f.MemAddressReserve);
  take(library, "cuMemMap", f.MemMap);
  take(library, "cuMemSetAccess", f.MemSetAccess);
  take(library, "cuMemUnmap", f.MemUnmap);
  take(library, "cuMemRelease", f.MemRelease);
  take(library, "cuMemAddressFree", f.MemAddressFree);
  take(library, "cuIpcGetMemHandle", f.IpcGetMemHandle);
  take(library, "cuIpcOpenMemHandle_v2", f.IpcOpenMemHandle);
  take(library, "cuIpcCloseMemHandle", f.IpcCloseMemHandle);
}

}  // namespace

const Functions& cuda() { return functions; }
const std::string& device_name() { return name; }

bool open(std::string& why) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    why = dlerror();
    return false;
  }
  if (!take_needed(library)) {
    why = "the driver lacks functions that are needed here";
    return false;
  }
  take_others(library);
  int device = 0;
  Context context = nullptr;
  int error = functions.Init(0);
  if (error == 0) error = functions.DeviceGet(&device, 0);
  if (error == 0) error = functions.DevicePrimaryCtxRetain(&context, device);
  if (error == 0) error = functions.CtxSetCurrent(context);
  if (error != 0) {
    why = describe(error, "no device can be used");
    return false;
  }
  char text[256] = {};
  if (functions.DeviceGetName(text, sizeof text, device) == 0) name = text;
  return true;
}

std::string describe(int error, const char* what) {
  const char* words = nullptr;
  functions.GetErrorName(error, &words);
  return std::string(what) + ": " + (words == nullptr ? std::to_string(error) : words);
}

void check(int error, const char* what) {
  if (error != 0) throw std::runtime_error(describe(error, what));
}

void need(int error, const char* what) {
  if (error != 0) throw Unavailable(describe(error, what));
}

InContext::InContext(Context context) : entered_(context != nullptr) {
  if (entered_) check(functions.CtxPushCurrent(context), "cuCtxPushCurrent");
}

InContext::~InContext() {
  Context popped = nullptr;
  if (entered_) functions.CtxPopCurrent(&popped);
}

Context other_context() {
  static Context context = nullptr;
  if (context != nullptr) return context;
  need_function(functions.CtxCreate, "cuCtxCreate");
  int device = 0;
  check(functions.DeviceGet(&device, 0), "cuDeviceGet");
  need(functions.CtxCreate(&context, 0, device), "cuCtxCreate");
  Context popped = nullptr;
  check(functions.CtxPopCurrent(&popped), "cuCtxPopCurrent");
  return context;
}

}  // namespace tidelane::gpu_real
