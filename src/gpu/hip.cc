#include "gpu/hip.h"

#include "gpu/functions.h"

namespace tidelane::gpu {
namespace {

enum PointerAttribute : int { kMemoryType = 2, kIsManaged = 8, kDeviceOrdinal = 9 };
constexpr int kNewTypes = 60000000;  // from HIP 6 on the types of memory are numbered as CUDA's
constexpr int kInvalidValue = 1;
constexpr int kNotInitialized = 3;
constexpr int kNotReady = 600;
constexpr unsigned kOldDeviceMemory = 1;
constexpr unsigned kDeviceMemory = 2;
constexpr int kUp = 1;
constexpr int kDown = 2;
constexpr unsigned kNonBlocking = 1;
constexpr unsigned kWithTiming = 0;
constexpr unsigned kForAllDevices = 1;

struct Functions {
  int (*RuntimeGetVersion)(int*);
  const char* (*GetErrorName)(int);
  const char* (*GetErrorString)(int);
  int (*PointerGetAttribute)(void*, int, void*);
  int (*GetDevice)(int*);
  int (*SetDevice)(int);
  int (*StreamCreateWithFlags)(void**, unsigned);
  int (*EventElapsedTime)(float*, void*, void*);
  int (*StreamDestroy)(void*);
  int (*StreamWaitEvent)(void*, void*, unsigned);
  int (*StreamSynchronize)(void*);
  int (*EventCreateWithFlags)(void**, unsigned);
  int (*EventDestroy)(void*);
  int (*EventRecord)(void*, void*);
  int (*EventSynchronize)(void*);
  int (*EventQuery)(void*);
  int (*MemcpyAsync)(void*, const void*, size_t, int, void*);
  int (*Memcpy2DAsync)(void*, size_t, const void*, size_t, size_t, size_t, int, void*);
  int (*HostRegister)(void*, size_t, unsigned);
};

bool TakeAll(void* library, Functions& f) {
  return Take(library, "hipRuntimeGetVersion", f.RuntimeGetVersion) &&
         Take(library, "hipGetErrorName", f.GetErrorName) &&
         Take(library, "hipGetErrorString", f.GetErrorString) &&
         Take(library, "hipPointerGetAttribute", f.PointerGetAttribute) &&
         Take(library, "hipGetDevice", f.GetDevice) && Take(library, "hipSetDevice", f.SetDevice) &&
         Take(library, "hipStreamCreateWithFlags", f.StreamCreateWithFlags) &&
         Take(library, "hipStreamWaitEvent", f.StreamWaitEvent) &&
         Take(library, "hipStreamSynchronize", f.StreamSynchronize) &&
         Take(library, "hipEventCreateWithFlags", f.EventCreateWithFlags) &&
         Take(library, "hipEventRecord", f.EventRecord) &&
         Take(library, "hipEventDestroy", f.EventDestroy) &&
         Take(library, "hipEventElapsedTime", f.EventElapsedTime) &&
         Take(library, "hipStreamDestroy", f.StreamDestroy) &&
         Take(library, "hipEventSynchronize", f.EventSynchronize) &&
         Take(library, "hipEventQuery", f.EventQuery) &&
         Take(library, "hipMemcpyAsync", f.MemcpyAsync) &&
         Take(library, "hipMemcpy2DAsync", f.Memcpy2DAsync) &&
         Take(library, "hipHostRegister", f.HostRegister);
}

int DeviceOf(Context context) { return static_cast<int>(reinterpret_cast<uintptr_t>(context)) - 1; }
Context ContextOf(int device) {
  return reinterpret_cast<Context>(static_cast<uintptr_t>(device) + 1);
}

class Hip final : public Runtime {
 public:
  explicit Hip(const Functions& functions) : f_(functions) {
    int version = 0;
    if (f_.RuntimeGetVersion(&version) == 0 && version < kNewTypes) device_type_ = kOldDeviceMemory;
  }

  const char* name() const override { return "HIP"; }

  Found Find(const void* pointer, Context& context) override {
    void* const at = const_cast<void*>(pointer);
    unsigned type = 0;
    unsigned managed = 0;
    int device = -1;
    const int error = f_.PointerGetAttribute(&type, kMemoryType, at);
    if (error == kInvalidValue || error == kNotInitialized) return Found::kHost;
    if (error != 0) return Found::kUnknown;
    if (f_.PointerGetAttribute(&managed, kIsManaged, at) != 0) managed = 0;
    if (type != device_type_ && (managed & 0xff) == 0) return Found::kHost;
    if (f_.PointerGetAttribute(&device, kDeviceOrdinal, at) != 0 || device < 0) device = 0;
    context = ContextOf(device);
    return Found::kDevice;
  }
  bool Identify(Context, uint64_t&) override { return false; }

  int Enter(Context context) override {
    int before = -1;
    if (const int error = f_.GetDevice(&before); error != 0) return error;
    if (const int error = f_.SetDevice(DeviceOf(context)); error != 0) return error;
    device_before = before;
    return 0;
  }
  void Leave() override { f_.SetDevice(device_before); }

  int MakeStream(Stream& stream) override {
    return f_.StreamCreateWithFlags(&stream, kNonBlocking);
  }
  int MakeEvent(Event& event) override { return f_.EventCreateWithFlags(&event, kWithTiming); }
  bool Belongs(Stream stream, Context) override { return stream == nullptr; }
  bool Elapsed(Event from, Event to, uint64_t& ns) override {
    float milliseconds = 0;
    if (f_.EventElapsedTime(&milliseconds, from, to) != 0) return false;
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
    const auto* at = static_cast<const std::byte*>(from);
    if (box.IsLine()) return f_.MemcpyAsync(to, at, box.width, kDown, stream);
    int error = 0;
    for (uint64_t i = 0; i < box.depth && error == 0; ++i) {
      error = f_.Memcpy2DAsync(to + i * box.width * box.height, box.width,
                               at + i * box.slice * box.pitch, box.pitch, box.width, box.height,
                               kDown, stream);
    }
    return error;
  }

  int CopyUp(void* to, const std::byte* from, const Box& box, Stream stream) override {
    auto* at = static_cast<std::byte*>(to);
    if (box.IsLine()) return f_.MemcpyAsync(at, from, box.width, kUp, stream);
    int error = 0;
    for (uint64_t i = 0; i < box.depth && error == 0; ++i) {
      error = f_.Memcpy2DAsync(at + i * box.slice * box.pitch, box.pitch,
                               from + i * box.width * box.height, box.width, box.width, box.height,
                               kUp, stream);
    }
    return error;
  }

  int Pin(std::byte* begin, uint64_t size) override {
    return f_.HostRegister(begin, size, kForAllDevices);
  }

  std::string Describe(int error) const override {
    const char* const name = f_.GetErrorName(error);
    const char* const words = f_.GetErrorString(error);
    return std::string(name == nullptr ? "HIP error " + std::to_string(error) : name) +
           (words == nullptr ? "" : std::string(": ") + words);
  }

 private:
  static thread_local int device_before;  // Enter does not nest

  const Functions f_;
  unsigned device_type_ = kDeviceMemory;
};

thread_local int Hip::device_before = 0;

}  // namespace

Runtime* OpenHip(const char* path) { return OpenDriver<Hip>(path, TakeAll); }

}  // namespace tidelane::gpu
