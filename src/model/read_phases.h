/// \file
/// Phases of large reads: how long storage took for them, whether lanes had brought them before the program waited for
/// them, and what the program computed in between.
///
/// A pause of a millisecond or more ends a phase, a pause being time in which the program waited for no read of any size:
/// what it takes to open a dataset is part of the phase in which its elements are read, also before them. Phase and pause
/// are an epoch, and the equations are those of writes
/// (model/epoch.h): a read that the program makes is t_io, one that lanes make ahead of it (or after its call) is hidden
/// behind the computation before it, and costs a copy. Nothing is chosen by this: what to fetch, cache/access_predictor.h knows.
/// It is what the summary, the history and `tidelane predict --read` say of reads.
///
/// Whatever is neither storage's time, nor a copy, nor a wait for a read is computation: decoding is, and writing, behind
/// which a read can be hidden like behind anything else.
///
/// Thread safety: all functions may be called from any thread. Per read there are a few relaxed loads and stores; what
/// two threads note at once may be lost: it is a guess. The lock is taken once an epoch, and is a leaf.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/annotations.h"
#include "model/epoch.h"
#include "model/learned.h"
#include "model/tally.h"

namespace tidelane::model {

class ReadPhases {
 public:
  struct Times {
    uint64_t shortest_pause_ns = 1'000'000;  ///< between two large reads that makes two phases
    unsigned ranks = 1;                      ///< that read at the same time
  };
  ReadPhases() : ReadPhases(Times()) {}
  explicit ReadPhases(const Times& times) : times_(times) {}

  /// A large read of the program's began at `now_ns`.
  void Begin(uint64_t now_ns) {
    Burst(now_ns);
    if (burst_ns_.get() != begin_ns_.get()) NextPhase();
  }
  /// A small read, or one of metadata, was answered by storage while the program waited.
  void Small(uint64_t begin_ns, uint64_t end_ns) {
    Burst(begin_ns);
    (burst_ns_.get() == begin_ns_.get() ? small_ns_ : lead_ns_).Add(end_ns - begin_ns);
    last_end_ns_.Set(end_ns);
  }
  struct Read {
    uint64_t end_ns = 0;
    uint64_t bytes = 0;
    uint64_t copied_bytes =
        0;                 ///< of them, those that lanes had brought, where the copy was timed, and
    uint64_t copy_ns = 0;  ///< what that took
  };
  /// It has ended.
  void End(uint64_t device, const Read& read);

  enum class For { kProgram, kLater };
  struct Request {
    uint64_t begin_ns = 0;
    uint64_t end_ns = 0;
    uint64_t bytes = 0;
  };
  /// Storage has answered a request: for the program, which waits for it, or for later.
  void Answered(uint64_t device, For whom, const Request& request);
  /// The program waited for what others bring.
  void Waited(uint64_t ns);

  /// The program ends: its last epoch, and what was learned of each storage, go into the record (base/decisions.h).
  void Finish(uint64_t now_ns) TL_EXCLUDES(mutex_);
  /// What was learned since the last call, by the storages' names, where it was `epochs` or more.
  std::vector<std::pair<std::string, LearnedReads>> TakeLearnings(uint64_t epochs)
      TL_EXCLUDES(mutex_);

  /// fork: hold the lock across it; the child has seen nothing yet.
  void LockForFork() TL_NO_ANALYSIS { mutex_.lock(); }
  void UnlockAfterFork(bool child) TL_NO_ANALYSIS;

 private:
  static constexpr size_t kSlots =
      8;  // as the CostModel's: where two devices share one, the older is forgotten
  static constexpr uint64_t kLittle = uint64_t{256} * 1024;  // of a phase: says little of storage

  struct Device {
    Sum name;  // of the device, and 1 more; 0: none
    Sum reads, bytes, copied_bytes, copy_ns;
    Requests awaited, later;  // by the program, or not
    // Under the lock:
    LearnedReads known, untaken;  // of this run; and since TakeLearnings
    void Clear();
    // What the program read and storage was not asked for while it waited: lanes had brought it, or will.
    uint64_t HiddenBytes() const { return bytes.get() - std::min(awaited.bytes(), bytes.get()); }
  };
  struct Epoch {
    double seconds = 0, compute = 0, small = 0;
    bool last = false;
  };

  Device& Slot(uint64_t device) { return devices_[device % kSlots]; }
  // Reads without a pause between them. A burst of small ones alone is no phase.
  void Burst(uint64_t now_ns) {
    const uint64_t last_end = last_end_ns_.get();
    if (last_end != 0 && now_ns < last_end + times_.shortest_pause_ns) return;
    burst_ns_.Set(now_ns);
    lead_ns_.Set(0);
  }
  void NextPhase() TL_EXCLUDES(mutex_);
  void EndPhase(uint64_t now_ns, bool last) TL_REQUIRES(mutex_);
  void LookBack(Device& device, Epoch epoch) TL_REQUIRES(mutex_);
  std::optional<double> Expected(const Device& device, bool hidden) const TL_REQUIRES(mutex_);
  void Learn(const Device& device, const Epoch& epoch, LearnedReads& to) TL_REQUIRES(mutex_);
  void Tell(const Device& device) TL_REQUIRES(mutex_);
  void Take(Device& slot, uint64_t device) TL_EXCLUDES(mutex_);

  const Times times_;
  Sum begin_ns_;     // of the phase
  Sum burst_ns_;     // when the last burst of reads began: the phase, where it has large ones
  Sum last_end_ns_;  // of a read
  Sum waited_ns_;    // in this epoch
  Sum small_ns_;     // in this epoch, for small reads
  Sum lead_ns_;      // in the burst that may become the next phase
  std::array<Device, kSlots> devices_;
  Mutex mutex_;
};

}  // namespace tidelane::model
