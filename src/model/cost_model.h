/// \file
/// The automatic mode: for each I/O phase, on each storage, whether large writes are handed to lanes or written by the
/// program, learned from how the program writes and computes and from how quick storage and copies are.
///
/// A program's large writes come in *phases*; a pause of a millisecond or more ends one, and phase and pause are an
/// *epoch*. When the next one begins, the last one is looked back upon: what did its writes keep the program waiting,
/// and what would they have in the other mode? Weighted averages of the two decide (src/model/epoch.h has the
/// equations), with hysteresis: a mode is left when the other one would have cost clearly less.
///
/// - *Storage as quick as memory*: a write is a copy, and handing it over costs a second one. It pays where the program
///   pauses, for as many bytes as lanes can store in that pause; nothing is known of the first phase, so it is written
///   through unless an earlier run knew (model/history.h). Phases of a few MiB always are.
/// - *Slower storage*: handed over unless that was found to cost more.
/// Who asks for its bytes at once (a close, a flush, a request) hides nothing, however long it pauses afterwards. How
/// quick a device is, its requests tell; until the first one, the kind of its file system does.
///
/// Thread safety: all functions may be called from any thread. Per write there are a few relaxed loads and stores; what
/// two threads note at once may be lost: it is a guess. The lock is taken once an epoch, and is a leaf.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/annotations.h"
#include "base/config.h"
#include "base/decisions.h"
#include "model/block_worth.h"
#include "model/epoch.h"
#include "model/learned.h"
#include "model/pauses.h"
#include "model/read_phases.h"
#include "model/tally.h"

namespace tidelane::model {

class CostModel {
 public:
  /// Bytes of a phase, on storage as quick as memory. Writing less takes no longer than touching fresh memory for it and
  /// starting a lane, which also slows down every malloc from then on.
  static constexpr uint64_t kWorthALane = uint64_t{4} << 20;

  struct Times {
    uint64_t shortest_pause_ns = 1'000'000;  ///< between two large writes that makes two phases
    uint64_t quick_request_ns = 50'000;  ///< storage that answers as memory does, whatever the size
    void (*calibrate)(CopyCost&) = CalibrateCopy;  ///< where nothing was copied yet
    unsigned ranks = 1;                            ///< that write at the same time
    uint64_t start_ns = 0;                         ///< of the program
  };
  CostModel() : CostModel(Times()) {}
  explicit CostModel(const Times& times);

  /// A file was opened on `device`, whose file system promises memory's speed or does not. Returns QuickOn.
  bool Opened(uint64_t device, bool promises);
  /// Whether `Remember` was called for it.
  bool Remembers(uint64_t device) TL_EXCLUDES(mutex_);
  /// The device's name, and what `runs` earlier runs learned on it.
  void Remember(uint64_t device, std::string name, const Learned& learned, uint64_t runs)
      TL_EXCLUDES(mutex_);

  struct Place {
    uint64_t device = 0;
    const std::string& file;
    Mode mode = Mode::kAuto;
    uint64_t room = UINT64_MAX;  ///< bytes that memory can hold back
    uint64_t held = 0;           ///< and holds
  };
  struct WriteBudget {
    uint64_t bytes = UINT64_MAX;  ///< as much may be queued before more is written through
    bool anywhere = false;        ///< also where storage is slower than memory just now
  };
  /// A large write begins.
  WriteBudget Begin(uint64_t now_ns, const Place& place, uint64_t bytes);
  struct Written {
    uint64_t begin_ns = 0;
    uint64_t end_ns = 0;
    uint64_t copied_bytes = 0;  ///< handed over, and
    uint64_t copy_ns = 0;       ///< what that took
  };
  /// It has ended.
  void End(uint64_t device, const Written& written);

  /// The program asks for what it wrote to be stored.
  void Asked(uint64_t now_ns);
  /// And waited for it.
  void Waited(uint64_t ns);

  /// How much the next phase may be, if the program has paused since the last one and did not wait for it; else 0.
  uint64_t Expected(uint64_t now_ns) const;
  /// Whether large writes of this phase may be queued.
  bool Defers(uint64_t device) const {
    return Slot(device).allowance.load(std::memory_order_relaxed) != 0;
  }
  /// What was written in the phase so far.
  uint64_t phase_bytes() const { return phase_bytes_.get(); }
  /// Whether it pauses.
  Pauses& pauses() { return pauses_; }

  /// What it reads: measured, and not chosen.
  ReadPhases& reads() { return reads_; }
  /// Whether it reads metadata by the block there.
  BlockWorth& BlocksOn(uint64_t device) { return Slot(device).blocks; }

  /// `device` took from `begin_ns` to `end_ns` to store so much; returns whether it is as quick as memory.
  /// One slow request makes no slow storage, three of eight do (model/tally.h).
  bool Stored(uint64_t device, uint64_t bytes, uint64_t begin_ns, uint64_t end_ns);
  /// Whether `device` is as quick as memory; before the first request, what was promised.
  bool QuickOn(uint64_t device) const {
    return Slot(device).name.load(std::memory_order_relaxed) == (Name(device) | 1);
  }

  /// Bytes that `device` stores in the time that a request costs there: pieces that are much smaller are better joined by
  /// whoever can. From 4 KiB to 1 MiB; `unseen` until a small request has been made.
  uint64_t WorthARequest(uint64_t device, uint64_t unseen) const;
  /// The same, with a guess by the kind of file system.
  uint64_t WorthARequest(uint64_t device) const {
    return WorthARequest(device, QuickOn(device) ? kLeastPiece : kUsualPiece);
  }

  /// The program ends: its last epoch, and what was learned of each storage, go into the record (base/decisions.h).
  void End(uint64_t now_ns) TL_EXCLUDES(mutex_);
  /// What this run has learned since the last call, by the storages' names, where it was `epochs` or more.
  std::vector<std::pair<std::string, Learned>> TakeLearnings(uint64_t epochs = 1)
      TL_EXCLUDES(mutex_);

  /// fork: hold the lock across it; the child has seen nothing yet.
  void LockForFork() TL_NO_ANALYSIS;
  void UnlockAfterFork(bool child) TL_NO_ANALYSIS;

 private:
  // Few devices are written to at a time; where two share a slot, the older one is forgotten.
  static constexpr size_t kSlots = 8;
  static constexpr uint64_t kLittle = uint64_t{256} * 1024;  // of a phase: nothing to hide
  // Pieces of their own requests: a page, what striped file systems are good at, the largest request that lanes make.
  static constexpr uint64_t kLeastPiece = 4 * 1024, kUsualPiece = 256 * 1024,
                            kMostPiece = 1024 * 1024;

  // What happens in a phase.
  struct Tally {
    Sum bytes, writes, copied_bytes, copy_ns, visible_ns;
    void Clear();
  };
  struct Device {
    std::atomic<uint64_t> name{0};  // of the device, and in its last bit: quick
    std::atomic<uint64_t> allowance{0};
    std::atomic<uint64_t> usual{UINT64_MAX};  // bytes of a phase for which that holds
    std::atomic<bool> anywhere{false};
    std::atomic<uint64_t> room{UINT64_MAX};
    std::atomic<Mode> mode{Mode::kAuto};
    std::atomic<uint64_t> ns_per_mib{0};  // 0: nothing large was stored yet
    std::atomic<uint64_t> request_ns{0};  // the quickest small one; 0: none yet
    RecentSpeed speed;
    Tally tally;
    Requests stored;  // since the last epoch began
    BlockWorth blocks;
    // Under the lock:
    std::string title, file;
    uint64_t earlier_runs = 0;
    bool remembered = false;
    std::optional<bool> async;  // as it was decided last
    Learned known, own;         // with earlier runs, and without
    double left = 0;            // seconds of storage's work, had everything been handed over
    uint64_t held = 0;          // in memory when the phase began
    RecentMean log_bytes;       // of its phases
    std::optional<EpochForecast> forecast;
  };
  struct Pause {
    uint64_t begin_ns = 0;  // of the phase before it
    double seconds = 0;     // of phase and pause
    double compute = 0;
    bool asks = false;  // for its bytes,
    double slack = 0;   // so long after the phase
    double waits = 0;
    bool last = false;
  };
  // Of a phase, in seconds: storage's time if the program writes, lanes', the copy's, and what memory holds.
  struct Pace {
    double sync = 0, lanes = 0, copy = 0, room = 0;
  };

  static uint64_t Name(uint64_t device) { return (device + 1) << 1; }
  Device& Slot(uint64_t device) { return devices_[device % kSlots]; }
  const Device& Slot(uint64_t device) const { return devices_[device % kSlots]; }
  bool IsQuick(const Device& device) const {
    return (device.name.load(std::memory_order_relaxed) & 1) != 0;
  }
  // As far as it is known.
  uint64_t NsPerMib(const Device& device) const;
  // Its phases are too short for a lane.
  bool NothingToHide(const Device& device) const TL_REQUIRES(mutex_) {
    return IsQuick(device) && device.known.bytes.mean() < kWorthALane;
  }
  void NextEpoch(uint64_t now_ns) TL_EXCLUDES(mutex_);
  void EndPhase(uint64_t now_ns, bool last) TL_REQUIRES(mutex_);
  void LookBack(Device& device, const Pause& pause, double share) TL_REQUIRES(mutex_);
  void LearnRates(const Device& device, Learned& to, double waited) TL_REQUIRES(mutex_);
  void LearnHabits(const Device& device, Learned& to, const Pause& pause, double waited)
      TL_REQUIRES(mutex_);
  Pace PaceOf(const Device& device, double bytes, double write_bytes) const TL_REQUIRES(mutex_);
  bool HidesEnough(const Device& device) const TL_REQUIRES(mutex_);
  Queue Deferred(const Device& device, const Pace& pace, const Pause& pause, double share) const
      TL_REQUIRES(mutex_);
  void Forecast(Device& device) const TL_REQUIRES(mutex_);
  void Decide(Device& device) TL_REQUIRES(mutex_);
  void Tell(const Device& device) TL_REQUIRES(mutex_);

  const Times times_;
  Sum phase_begin_ns_;
  Pauses pauses_;
  Sum phase_bytes_;
  Sum asked_ns_;                          // first in this epoch; 0: not yet
  std::atomic<bool> asked_early_{false};  // before the phase could have been stored
  Sum waited_ns_;                         // in this epoch, and of that
  Sum waited_since_end_ns_;
  ReadPhases reads_;
  std::array<Device, kSlots> devices_;
  Mutex mutex_;
  uint64_t epoch_ TL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tidelane::model
