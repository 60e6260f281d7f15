#include "gpu/cuda.h"

#include <map>
#include <memory>

#include "base/annotations.h"
#include "gpu/functions.h"

namespace tidelane::gpu {
namespace {

using DevicePointer = unsigned long long;

enum PointerAttribute : int {
  kContext = 1,
  kMemoryType = 2,
  kIsManaged = 8,
  kDeviceOrdinal = 9,
};
constexpr int kNotReady = 600;
constexpr unsigned kHostMemory = 1;
constexpr unsigned kDeviceMemory = 2;
constexpr unsigned kNonBlocking = 1;     // CU_STREAM_NON_BLOCKING
constexpr unsigned kWithTiming = 0;      // CU_EVENT_DEFAULT
constexpr unsigned kForAllContexts = 1;  // CU_MEMHOSTREGISTER_PORTABLE

struct Side2D {
  size_t x_bytes = 0;
  size_t y = 0;
  unsigned memory_type = 0;
  const void* host = nullptr;
  DevicePointer device = 0;
  void* array = nullptr;
  size_t pitch = 0;
};
struct Copy2D {
  Side2D from;
  Side2D to;
  size_t width_bytes = 0;
  size_t height = 0;
};
struct Side3D {
  size_t x_bytes = 0;
  size_t y = 0;
  size_t z = 0;
  size_t level = 0;
  unsigned memory_type = 0;
  const void* host = nullptr;
  DevicePointer device = 0;
  void* array = nullptr;
  void* reserved = nullptr;
  size_t pitch = 0;
  size_t height = 0;
};
struct Copy3D {
  Side3D from;
  Side3D to;
  size_t width_bytes = 0;
  size_t height = 0;
  size_t depth = 0;
};

struct Functions {
  int (*GetErrorName)(int, const char**);
  int (*GetErrorString)(int, const char**);
  int (*PointerGetAttributes)(unsigned, int*, void**, DevicePointer);
  int (*DeviceGet)(int*, int);
  int (*DevicePrimaryCtxRetain)(void**, int);
  int (*CtxPushCurrent)(void*);
  int (*CtxPopCurrent)(void**);
  int (*StreamCreateWithPriority)(void**, unsigned, int);
  int (*CtxGetId)(void*, unsigned long long*);  // since CUDA 12; nullptr before
  int (*CtxGetCurrent)(void**);
  int (*CtxGetDevice)(int*);
  int (*StreamGetCtx)(void*, void**);             // may lack
  int (*EventElapsedTime)(float*, void*, void*);  // may lack
  int (*StreamDestroy)(void*);
  int (*StreamWaitEvent)(void*, void*, unsigned);
  int (*StreamSynchronize)(void*);
  int (*EventCreate)(void**, unsigned);
  int (*EventDestroy)(void*);
  int (*EventRecord)(void*, void*);
  int (*EventSynchronize)(void*);
  int (*EventQuery)(void*);
  int (*MemcpyDtoHAsync)(void*, DevicePointer, size_t, void*);
  int (*MemcpyHtoDAsync)(DevicePointer, const void*, size_t, void*);
  int (*Memcpy2DAsync)(const Copy2D*, void*);
  int (*Memcpy3DAsync)(const Copy3D*, void*);
  int (*MemHostRegister)(void*, size_t, unsigned);
};

bool TakeAll(void* library, Functions& f) {
  static_cast<void>(Take(library, "cuCtxGetId", f.CtxGetId));
  static_cast<void>(Take(library, "cuStreamGetCtx", f.StreamGetCtx));
  static_cast<void>(Take(library, "cuEventElapsedTime", f.EventElapsedTime));
  return Take(library, "cuGetErrorName", f.GetErrorName) &&
         Take(library, "cuGetErrorString", f.GetErrorString) &&
         Take(library, "cuPointerGetAttributes", f.PointerGetAttributes) &&
         Take(library, "cuDeviceGet", f.DeviceGet) &&
         Take(library, "cuCtxGetCurrent", f.CtxGetCurrent) &&
         Take(library, "cuCtxGetDevice", f.CtxGetDevice) &&
         Take(library, "cuDevicePrimaryCtxRetain", f.DevicePrimaryCtxRetain) &&
         Take(library, "cuCtxPushCurrent_v2", f.CtxPushCurrent) &&
         Take(library, "cuCtxPopCurrent_v2", f.CtxPopCurrent) &&
         Take(library, "cuStreamCreateWithPriority", f.StreamCreateWithPriority) &&
         Take(library, "cuStreamWaitEvent", f.StreamWaitEvent) &&
         Take(library, "cuStreamSynchronize", f.StreamSynchronize) &&
         Take(library, "cuEventCreate", f.EventCreate) &&
         Take(library, "cuEventRecord", f.EventRecord) &&
         Take(library, "cuEventDestroy_v2", f.EventDestroy) &&
         Take(library, "cuStreamDestroy_v2", f.StreamDestroy) &&
         Take(library, "cuEventSynchronize", f.EventSynchronize) &&
         Take(library, "cuEventQuery", f.EventQuery) &&
         Take(library, "cuMemcpyDtoHAsync_v2", f.MemcpyDtoHAsync) &&
         Take(library, "cuMemcpyHtoDAsync_v2", f.MemcpyHtoDAsync) &&
         Take(library, "cuMemcpy2DAsync_v2", f.Memcpy2DAsync) &&
         Take(library, "cuMemcpy3DAsync_v2", f.Memcpy3DAsync) &&
         Take(library, "cuMemHostRegister_v2", f.MemHostRegister);
}

DevicePointer Address(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

class Cuda final : public Runtime {
 public:
  explicit Cuda(const Functions& functions) : f_(functions) {}

  const char* name() const override { return "CUDA"; }

  Found Find(const void* pointer, Context& context) override {
    unsigned type = 0;
    unsigned managed = 0;  // the driver writes one byte or four
    int ordinal = -1;
    context = nullptr;
    int asked[] = {kContext, kMemoryType, kIsManaged, kDeviceOrdinal};
    void* answers[] = {&context, &type, &managed, &ordinal};
    const int error = f_.PointerGetAttributes(4, asked, answers, Address(pointer));
    if (error != 0) return Found::kUnknown;
    if (type != kDeviceMemory && (managed & 0xff) == 0) return Found::kHost;
    // Pooled and mapped memory belongs to a device, and to no context of it.
    if (context == nullptr) context = ContextOf(ordinal < 0 ? 0 : ordinal);
    return Found::kDevice;
  }
  bool Identify(Context context, uint64_t& number) override {
    unsigned long long id = 0;
    if (f_.CtxGetId == nullptr || f_.CtxGetId(context, &id) != 0) return false;
    number = id;
    return true;
  }

  bool IsCurrent(Context context) override {
    void* current = nullptr;
    return context != nullptr && f_.CtxGetCurrent(&current) == 0 && current == context;
  }
  int Enter(Context context) override { return f_.CtxPushCurrent(context); }
  void Leave() override {
    void* popped = nullptr;
    f_.CtxPopCurrent(&popped);
  }

  int MakeStream(Stream& stream) override {
    return f_.StreamCreateWithPriority(&stream, kNonBlocking, 0);
  }
  int MakeEvent(Event& event) override { return f_.EventCreate(&event, kWithTiming); }
  bool Belongs(Stream stream, Context context) override {
    constexpr uintptr_t kLastDefault = 2;  // NULL and CU_STREAM_LEGACY, CU_STREAM_PER_THREAD
    if (reinterpret_cast<uintptr_t>(stream) <= kLastDefault) return true;
    void* of = nullptr;
    return f_.StreamGetCtx != nullptr && f_.StreamGetCtx(stream, &of) == 0 && of == context;
  }
  bool Elapsed(Event from, Event to, uint64_t& ns) override {
    float milliseconds = 0;
    if (f_.EventElapsedTime == nullptr || f_.EventElapsedTime(&milliseconds, from, to) != 0)
      return false;
    ns = static_cast<uint64_t>(static_cast<double>(milliseconds) * 1e6);
    return true;
  }
  void DestroyStream(Stream stream) override { f_.StreamDestroy(stream); }
  void DestroyEvent(Event event) override { f_.EventDestroy(event); }
  int Record(Event event, Stream stream) override { return f_.EventRecord(event, stream); }
  int Follow(Stream stream, Event event) override { return f_.StreamWaitEvent(stream, event, 0); }
  int Await(Event event) override { return f_.EventSynchronize(event); }
  int IsDone(Event event, bool& done) override {
    const int error = f_.EventQuery(event);
    done = error == 0;
    return error == kNotReady ? 0 : error;
  }
  int AwaitStream(Stream stream) override { return f_.StreamSynchronize(stream); }

  int CopyDown(std::byte* to, const void* from, const Box& box, Stream stream) override {
    if (box.IsLine()) return f_.MemcpyDtoHAsync(to, Address(from), box.width, stream);
    if (box.depth == 1) {
      const Copy2D copy{.from = OnDevice2D(from, box),
                        .to = OnHost2D(to, box),
                        .width_bytes = box.width,
                        .height = box.height};
      return f_.Memcpy2DAsync(&copy, stream);
    }
    const Copy3D copy{.from = OnDevice3D(from, box),
                      .to = OnHost3D(to, box),
                      .width_bytes = box.width,
                      .height = box.height,
                      .depth = box.depth};
    return f_.Memcpy3DAsync(&copy, stream);
  }

  int CopyUp(void* to, const std::byte* from, const Box& box, Stream stream) override {
    if (box.IsLine()) return f_.MemcpyHtoDAsync(Address(to), from, box.width, stream);
    if (box.depth == 1) {
      const Copy2D copy{.from = OnHost2D(from, box),
                        .to = OnDevice2D(to, box),
                        .width_bytes = box.width,
                        .height = box.height};
      return f_.Memcpy2DAsync(&copy, stream);
    }
    const Copy3D copy{.from = OnHost3D(from, box),
                      .to = OnDevice3D(to, box),
                      .width_bytes = box.width,
                      .height = box.height,
                      .depth = box.depth};
    return f_.Memcpy3DAsync(&copy, stream);
  }

  int Pin(std::byte* begin, uint64_t size) override {
    return f_.MemHostRegister(begin, size, kForAllContexts);
  }

  std::string Describe(int error) const override {
    const char* name = nullptr;
    const char* words = nullptr;
    f_.GetErrorName(error, &name);
    f_.GetErrorString(error, &words);
    return std::string(name == nullptr ? "CUDA error " + std::to_string(error) : name) +
           (words == nullptr ? "" : std::string(": ") + words);
  }

 private:
  static Side2D OnDevice2D(const void* at, const Box& box) {
    return {.memory_type = kDeviceMemory, .device = Address(at), .pitch = box.pitch};
  }
  static Side2D OnHost2D(const void* at, const Box& box) {
    return {.memory_type = kHostMemory, .host = at, .pitch = box.width};
  }
  static Side3D OnDevice3D(const void* at, const Box& box) {
    return {.memory_type = kDeviceMemory,
            .device = Address(at),
            .pitch = box.pitch,
            .height = box.slice};
  }
  static Side3D OnHost3D(const void* at, const Box& box) {
    return {.memory_type = kHostMemory, .host = at, .pitch = box.width, .height = box.height};
  }

  // The program's own where it works in one of that device: its default stream is the one that fills the memory.
  Context ContextOf(int ordinal) TL_EXCLUDES(mutex_) {
    void* current = nullptr;
    int device = -1;
    int wanted = -2;
    if (f_.CtxGetCurrent(&current) == 0 && current != nullptr && f_.CtxGetDevice(&device) == 0 &&
        f_.DeviceGet(&wanted, ordinal) == 0 && device == wanted) {
      return current;
    }
    return PrimaryOf(ordinal);
  }

  // Kept for the life of the process: a copy may be on its way at any time.
  Context PrimaryOf(int ordinal) TL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const auto known = primaries_.find(ordinal);
    if (known != primaries_.end()) return known->second;
    int device = 0;
    Context primary = nullptr;
    if (f_.DeviceGet(&device, ordinal) != 0 || f_.DevicePrimaryCtxRetain(&primary, device) != 0)
      return nullptr;
    primaries_[ordinal] = primary;
    return primary;
  }

  const Functions f_;
  Mutex mutex_;
  std::map<int, Context> primaries_ TL_GUARDED_BY(mutex_);
};

}  // namespace

Runtime* OpenCuda(const char* path) { return OpenDriver<Cuda>(path, TakeAll); }

}  // namespace tidelane::gpu
