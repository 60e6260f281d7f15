#include "gpu/hip.h"

#include <algorithm>

#include "gpu/functions.h"

namespace tidelane::gpu {
namespace {

struct PointerAttributes {
  int type;
  int device;
  void* on_device;
  void* on_host;
  int is_managed;
  unsigned flags;
  std::byte later[64];  // what later versions may have more
};
constexpr int kNewTypes = 60000000;  // from HIP 6 on the types of memory are numbered as CUDA's
constexpr int kInvalidValue = 1;
constexpr int kNotReady = 600;
constexpr int kOldDeviceMemory = 1;
constexpr int kDeviceMemory = 2;
constexpr int kUp = 1;
constexpr int kDown = 2;
constexpr unsigned kNonBlocking = 1;
constexpr unsigned kWithTiming = 0;
constexpr unsigned kForAllDevices = 1;

struct Functions {
  int (*RuntimeGetVersion)(int*);
  const char* (*GetErrorName)(int);
  const char* (*GetErrorString)(int);
  int (*GetLastError)();
  int (*PointerGetAttributes)(PointerAttributes*, const void*);
  int (*GetDevice)(int*);
  int (*SetDevice)(int);
  int (*StreamCreateWithFlags)(void**, unsigned);
  int (*StreamGetDevice)(void*, int*);  // may lack
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
  static_cast<void>(Take(library, "hipStreamGetDevice", f.StreamGetDevice));
  return Take(library, "hipRuntimeGetVersion", f.RuntimeGetVersion) &&
         Take(library, "hipGetErrorName", f.GetErrorName) &&
         Take(library, "hipGetErrorString", f.GetErrorString) &&
         Take(library, "hipGetLastError", f.GetLastError) &&
         Take(library, "hipPointerGetAttributes", f.PointerGetAttributes) &&
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
    PointerAttributes found{};
    const int error = Ours(f_.PointerGetAttributes(&found, pointer));
    if (error == kInvalidValue) return Found::kHost;
    if (error != 0) return Found::kUnknown;
    if (found.type != device_type_ && found.is_managed == 0) return Found::kHost;
    context = ContextOf(std::max(found.device, 0));
    return Found::kDevice;
  }
  bool Identify(Context, uint64_t&) override { return false; }

  bool IsCurrent(Context context) override {
    int current = -1;
    return Ours(f_.GetDevice(&current)) == 0 && current == DeviceOf(context);
  }
  int Enter(Context context) override {
    int before = -1;
    if (const int error = Ours(f_.GetDevice(&before)); error != 0) return error;
    if (const int error = Ours(f_.SetDevice(DeviceOf(context))); error != 0) return error;
    device_before = before;
    return 0;
  }
  void Leave() override { Ours(f_.SetDevice(device_before)); }

  int MakeStream(Stream& stream) override {
    return Ours(f_.StreamCreateWithFlags(&stream, kNonBlocking));
  }
  int MakeEvent(Event& event) override {
    return Ours(f_.EventCreateWithFlags(&event, kWithTiming));
  }
  bool Belongs(Stream stream, Context context) override {
    constexpr uintptr_t kLastDefault = 2;  // NULL and hipStreamLegacy, hipStreamPerThread
    if (reinterpret_cast<uintptr_t>(stream) <= kLastDefault) return true;
    int of = -1;
    return f_.StreamGetDevice != nullptr && Ours(f_.StreamGetDevice(stream, &of)) == 0 &&
           of == DeviceOf(context);
  }
  bool Elapsed(Event from, Event to, uint64_t& ns) override {
    float milliseconds = 0;
    if (Ours(f_.EventElapsedTime(&milliseconds, from, to)) != 0) return false;
    ns = static_cast<uint64_t>(static_cast<double>(milliseconds) * 1e6);
    return true;
  }
  void DestroyStream(Stream stream) override { Ours(f_.StreamDestroy(stream)); }
  void DestroyEvent(Event event) override { Ours(f_.EventDestroy(event)); }
  int Record(Event event, Stream stream) override { return Ours(f_.EventRecord(event, stream)); }
  int Follow(Stream stream, Event event) override {
    return Ours(f_.StreamWaitEvent(stream, event, 0));
  }
  int Await(Event event) override { return Ours(f_.EventSynchronize(event)); }
  int IsDone(Event event, bool& done) override {
    const int error = Ours(f_.EventQuery(event));
    done = error == 0;
    return error == kNotReady ? 0 : error;
  }
  int AwaitStream(Stream stream) override { return Ours(f_.StreamSynchronize(stream)); }

  int CopyDown(std::byte* to, const void* from, const Box& box, Stream stream) override {
    const auto* at = static_cast<const std::byte*>(from);
    if (box.IsLine()) return Ours(f_.MemcpyAsync(to, at, box.width, kDown, stream));
    int error = 0;
    for (uint64_t i = 0; i < box.depth && error == 0; ++i) {
      error = f_.Memcpy2DAsync(to + i * box.width * box.height, box.width,
                               at + i * box.slice * box.pitch, box.pitch, box.width, box.height,
                               kDown, stream);
    }
    return Ours(error);
  }

  int CopyUp(void* to, const std::byte* from, const Box& box, Stream stream) override {
    auto* at = static_cast<std::byte*>(to);
    if (box.IsLine()) return Ours(f_.MemcpyAsync(at, from, box.width, kUp, stream));
    int error = 0;
    for (uint64_t i = 0; i < box.depth && error == 0; ++i) {
      error = f_.Memcpy2DAsync(at + i * box.slice * box.pitch, box.pitch,
                               from + i * box.width * box.height, box.width, box.width, box.height,
                               kUp, stream);
    }
    return Ours(error);
  }

  int Pin(std::byte* begin, uint64_t size) override {
    return Ours(f_.HostRegister(begin, size, kForAllDevices));
  }

  std::string Describe(int error) const override {
    const char* const name = f_.GetErrorName(error);
    const char* const words = f_.GetErrorString(error);
    return std::string(name == nullptr ? "HIP error " + std::to_string(error) : name) +
           (words == nullptr ? "" : std::string(": ") + words);
  }

 private:
  // The program asks for its last error after its kernels, and is not to find ours there.
  int Ours(int error) {
    if (error != 0) f_.GetLastError();
    return error;
  }

  static thread_local int device_before;  // Enter does not nest

  const Functions f_;
  int device_type_ = kDeviceMemory;
};

thread_local int Hip::device_before = 0;

}  // namespace

Runtime* OpenHip(const char* path) { return OpenDriver<Hip>(path, TakeAll); }

}  // namespace tidelane::gpu
