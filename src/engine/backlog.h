/// \file
/// How much may wait for storage that is as quick as memory, learned from how the program writes.
///
/// On such storage a write is a copy. Deferring it costs a second one, which pays only if the program does something else
/// meanwhile: a program that only writes would be slower, one that computes between its steps waits several times less.
/// So what was seen decides. Large writes come in *bursts*; after a pause, as much may be queued as lanes could have
/// stored during that pause. Where the program asked for storage before a burst could have been stored behind its back
/// (it closes or flushes at once), or has not paused yet, nothing waits: the caller writes it.
///
/// How quick a device is, its requests tell; until the first one, the kind of its file system does.
///
/// Thread safety: all functions may be called from any thread. What two threads note at once may be lost: it is a guess.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tidelane {

class Backlog {
 public:
  struct Times {
    uint64_t shortest_pause_ns = 1'000'000;  ///< between two large writes that makes two bursts
    uint64_t quick_request_ns = 50'000;  ///< storage that answers as memory does, whatever the size
  };
  Backlog() : Backlog(Times()) {}
  explicit Backlog(const Times& times);

  /// A file was opened on `device`, whose file system promises memory's speed or does not. Returns QuickOn.
  bool Opened(uint64_t device, bool promises);
  /// A large write begins; returns how many bytes may be queued before more is written through. `most`: whatever the
  /// pause was.
  uint64_t Begin(uint64_t now_ns, uint64_t bytes, uint64_t most);
  /// It has ended.
  void End(uint64_t now_ns) { last_end_ns_.store(now_ns, std::memory_order_relaxed); }
  /// The program asks for what it wrote to be stored.
  void Asked(uint64_t now_ns);
  /// How much the next burst may be, if the program has paused since the last one and did not wait for it; else 0.
  uint64_t Expected(uint64_t now_ns) const;
  /// Whether large writes of the burst may be queued.
  bool Defers() const { return allowance_.load(std::memory_order_relaxed) != 0; }
  /// What was written in the burst so far.
  uint64_t burst_bytes() const { return burst_bytes_.load(std::memory_order_relaxed); }
  /// Whether the program has paused since the last large write.
  bool Pausing(uint64_t now_ns) const;
  /// So much was stored on `device`; returns whether that was as quick as memory.
  bool Stored(uint64_t device, uint64_t bytes, uint64_t ns);
  /// Whether `device` was as quick as memory the last time; before that, what was promised.
  bool QuickOn(uint64_t device) const {
    return Slot(device).load(std::memory_order_relaxed) == (Name(device) | 1);
  }

 private:
  // Few devices are written to at a time; where two share a slot, the older one is forgotten.
  static constexpr size_t kSlots = 8;
  static constexpr uint64_t kLittle = uint64_t{256} * 1024;  // of a burst: nothing to hide
  static uint64_t Name(uint64_t device) { return (device + 1) << 1; }
  std::atomic<uint64_t>& Slot(uint64_t device) { return devices_[device % kSlots]; }
  const std::atomic<uint64_t>& Slot(uint64_t device) const { return devices_[device % kSlots]; }

  const Times times_;
  std::atomic<uint64_t> allowance_{0};  // for the burst, when it could be told; else 0
  std::atomic<uint64_t> last_end_ns_{0};
  std::atomic<uint64_t> burst_bytes_{0};
  std::atomic<uint64_t> ns_per_mib_;
  std::array<std::atomic<uint64_t>, kSlots> devices_{};  // the name, and in its last bit: quick
  std::atomic<bool> asked_{false};  // since the burst began, before it could be stored
};

}  // namespace tidelane
