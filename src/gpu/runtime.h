/// \file
/// The GPU's driver that the program has loaded, as far as copies need it: CUDA's or HIP's.
///
/// Invariant: a Runtime stays for the life of the process.
/// Thread safety: all functions may be called from any thread; what Enter makes current is the thread's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tidelane::gpu {

using Context = void*;  ///< where memory, streams and events belong; of HIP: a device
using Stream = void*;
using Event = void*;

/// Rows of a box in device memory and the same rows, one behind the other, in host memory.
struct Box {
  uint64_t width = 0;   ///< bytes of a row
  uint64_t height = 1;  ///< rows of a plane,
  uint64_t pitch = 0;   ///< and from one to the next, on the device
  uint64_t depth = 1;   ///< planes,
  uint64_t slice = 0;   ///< and rows from one plane to the next, on the device

  uint64_t bytes() const { return width * height * depth; }
  bool IsLine() const { return height == 1 && depth == 1; }
};

/// Functions return 0 or an error of the driver's, which Describe puts into words.
class Runtime {
 public:
  virtual ~Runtime() = default;

  virtual const char* name() const = 0;
  enum class Found : uint8_t { kHost, kDevice, kUnknown };
  /// Whether `pointer` is a device's memory, managed memory included, and the context that it belongs to (nullptr: none can be had,
  /// so that Enter will fail).
  virtual Found Find(const void* pointer, Context& context) = 0;
  /// A number that no other context has had in this process; false: nobody knows. The same pointer may come to be another context.
  virtual bool Identify(Context context, uint64_t& number) = 0;
  /// Whether it is the calling thread's: mostly so, and there is nothing to enter.
  virtual bool IsCurrent(Context) { return false; }
  /// Makes `context` the calling thread's, until Leave.
  virtual int Enter(Context context) = 0;
  virtual void Leave() = 0;

  // In the context that was entered.
  /// A stream that waits for no other one by itself.
  virtual int MakeStream(Stream& stream) = 0;
  virtual int MakeEvent(Event& event) = 0;
  /// Whether events of `context` can be put into `stream`; the default ones belong to whatever context is entered.
  virtual bool Belongs(Stream stream, Context context) = 0;
  /// Between two events that have come; false: nobody knows.
  virtual bool Elapsed(Event from, Event to, uint64_t& ns) = 0;
  virtual void DestroyStream(Stream stream) = 0;
  virtual void DestroyEvent(Event event) = 0;
  virtual int Record(Event event, Stream stream) = 0;
  /// What is put into `stream` from now on comes after `event`.
  virtual int Follow(Stream stream, Event event) = 0;
  virtual int Await(Event event) = 0;
  /// Whether `event` has come.
  virtual int IsDone(Event event, bool& done) = 0;
  virtual int AwaitStream(Stream stream) = 0;
  /// From the device into host memory, or the other way: begins.
  virtual int CopyDown(std::byte* to, const void* from, const Box& box, Stream stream) = 0;
  virtual int CopyUp(void* to, const std::byte* from, const Box& box, Stream stream) = 0;
  /// Has pages stay where they are, for copies by every device.
  virtual int Pin(std::byte* begin, uint64_t size) = 0;

  virtual std::string Describe(int error) const = 0;
};

/// Device memory: whose, and where it belongs.
struct Memory {
  Runtime* runtime = nullptr;
  Context context = nullptr;
};

/// While one lives, the context is the thread's.
class Entered {
 public:
  explicit Entered(const Memory& memory)
      : runtime_(*memory.runtime),
        was_inside_(runtime_.IsCurrent(memory.context)),
        error_(was_inside_ ? 0 : runtime_.Enter(memory.context)) {}
  ~Entered() {
    if (!was_inside_ && error_ == 0) runtime_.Leave();
  }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;
  int error() const { return error_; }

 private:
  Runtime& runtime_;
  const bool was_inside_;
  const int error_;
};

}  // namespace tidelane::gpu
