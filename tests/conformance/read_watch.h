// Who reads what of storage: the program, or lanes for it. Lanes can be held up, and made to fail.
//
// Thread safety: all functions may be called from any thread; the one that made it is the program's.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "conformance/storage_gate.h"

namespace tidelane::testing {

inline constexpr uint64_t kLarge = 64 * 1024 + 1;  // dataset elements, not a block of metadata

// Reads, told apart by who makes them; the program's, if they are large.
class Watch {
 public:
  Watch() {
    storage::follow_reads([this](const storage::Call& call) {
      const bool program = std::this_thread::get_id() == program_;
      if (!program) by_lanes_ += call.size;
      if (program && call.size >= kLarge) by_program_ += call.size;
      if (!program) stand();
      storage::Fault fault;
      fault.delay = std::chrono::milliseconds(delay_ms.load());
      fault.error = program ? program_fails.load() : lanes_fail.load();
      return fault;
    });
  }
  ~Watch() {
    release();
    storage::follow_reads({});
  }

  uint64_t by_lanes() const { return by_lanes_; }
  uint64_t by_program() const { return by_program_; }
  // Waits until lanes have asked for so much, and for nothing more for a while.
  bool wait_for_lanes(uint64_t bytes) const {
    constexpr int kForAWhile = 5;  // a lane may stand still for one look, on a busy machine
    uint64_t before = 0;
    int same = 0;
    for (int i = 0; i < 1500 && same < kForAWhile; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      same = by_lanes_ >= bytes && by_lanes_ == before ? same + 1 : 0;
      before = by_lanes_;
    }
    return same == kForAWhile;
  }

  // From now on lanes' reads wait.
  void hold() {
    const std::lock_guard lock(mutex_);
    held_ = true;
  }
  void release() {
    const std::lock_guard lock(mutex_);
    held_ = false;
    changed_.notify_all();
  }
  // For calls that wait for lanes: somebody else has to let them go on meanwhile.
  std::thread release_after(std::chrono::milliseconds delay) {
    return std::thread([this, delay] {
      std::this_thread::sleep_for(delay);
      release();
    });
  }
  // Waits until a lane stands: false if none comes within some seconds.
  bool wait_held() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(30), [this] { return standing_ > 0; });
  }

  std::atomic<int> lanes_fail{0};
  std::atomic<int> program_fails{0};
  std::atomic<int> delay_ms{0};  // of each read

 private:
  void stand() {
    std::unique_lock lock(mutex_);
    if (!held_) return;
    ++standing_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !held_; });
    --standing_;
  }

  const std::thread::id program_ = std::this_thread::get_id();
  std::atomic<uint64_t> by_lanes_{0};
  std::atomic<uint64_t> by_program_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = false;
  int standing_ = 0;
};

}  // namespace tidelane::testing
