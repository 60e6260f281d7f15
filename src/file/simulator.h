/// \file
/// A simulated program on a file: random calls, and a byte array that says what the file must hold.
///
/// The simulator makes one call at a time from a fixed seed. With 0 lanes everything is
/// deterministic: runs go out when the simulator says so, and from inside a device call it may make
/// further program calls, so that they happen while a run is in flight. With lanes of their own, it
/// is the program's side of a stress test.
///
/// Checked at every read, also one that ends long after its call: the bytes. At every flush that reports success: the whole of storage.
/// After every failure: that it is told, and that a flush succeeds once storage has recovered.
///
/// Invariant: `model` is what a synchronous driver's file would hold after the calls made so far.
/// Thread safety: the simulator belongs to one thread; its fault plan may be asked by lanes.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "file/file_fixture.h"

namespace tidelane {

struct SimulatorOptions {
  unsigned seed = 1;
  unsigned lanes = 0;
  uint64_t arena_bytes = 256 * 1024;
  uint64_t file_bytes = 1u << 20;  ///< calls stay below
  uint64_t longest_write = 200'000;
  bool faults = false;      ///< writes and truncations fail now and then
  bool interleave = false;  ///< program calls while a device call is in progress (0 lanes only)
  bool write_through = false;
  bool timeless = false;  ///< nothing is chosen by how long something took
  uint64_t base_address = 0;
  bool existing = false;  ///< the file has contents and a superblock already
  /// Negative control: around the device, must be noticed.
  std::function<std::unique_ptr<Device>(std::unique_ptr<Device>)> wrap;
};

class Simulator {
 public:
  explicit Simulator(const SimulatorOptions& options);
  ~Simulator();

  void Run(unsigned steps);
  /// Storage recovers, everything is flushed, nothing may be missing.
  void Finish();
  /// What was wrong, empty if nothing was.
  const std::string& wrong() const { return wrong_; }

  struct Tally {
    uint64_t writes = 0, lent = 0, reads = 0, reads_later = 0, cuts = 0, grows = 0, flushes = 0,
             failures = 0, waits = 0, nested = 0;
    /// What storage was asked to do: how often, and one number over kinds, places and sizes in their order.
    uint64_t requests = 0, digest = 0;
  };
  const Tally& tally() const { return tally_; }

 private:
  using Rng = std::mt19937_64;

  /// A request that was not waited for yet, and the buffer that its call lent, if it did: scribbled over as soon as the
  /// request has ended, as a program may do.
  struct Issued {
    std::shared_ptr<Completion> completion;
    std::shared_ptr<std::string> lent;
    /// What a read that goes on after its call reads, and should have read.
    std::shared_ptr<std::string> read;
    std::string expected;
    uint64_t address = 0;
    void End() const {
      if (lent != nullptr) lent->assign(lent->size(), '!');
    }
  };

  Fault Plan(FaultPoint point, uint64_t address, uint64_t size);
  bool Pause();
  void Interleave(FaultPoint point, uint64_t address, uint64_t size);
  void Step();
  void Write(uint64_t address, uint64_t size);
  void WriteSuperblock();
  void Issue(CallScope& scope, std::shared_ptr<std::string> lent = nullptr);
  void Apply(uint64_t address, const std::string& bytes);
  void Read();
  void ReadLater();
  std::string Expected(uint64_t address, uint64_t size) const;
  void CheckRead(const Issued& issued);
  bool MayChange(uint64_t begin, uint64_t end) const;
  void Truncate(uint64_t size);
  void Flush();
  void FlushEarly();
  void WaitForOne();
  void Recover();
  Status FlushUnchecked();
  void RunLane();
  bool SuperblockFlying() const;
  void CheckStorage(const char* when);
  void Wrong(const std::string& what) {
    if (wrong_.empty()) wrong_ = what;
  }
  uint64_t Pick(uint64_t n) { return random_() % n; }
  uint64_t PickAddress(uint64_t size);
  uint64_t PickSize(uint64_t longest);
  bool RoomFor(uint64_t size) const;

  const SimulatorOptions options_;
  Rng random_;
  std::string model_;
  std::string wrong_;
  Tally tally_;
  uint64_t next_ = 0;           // where the last write ended
  unsigned depth_ = 0;          // device calls in progress, when interleaving
  bool program_calls_ = false;  // a call of the program is in progress: it makes no second one
  std::vector<std::pair<uint64_t, uint64_t>> flying_;  // what those device calls write
  unsigned flying_reads_ = 0;                          // how many of them read
  std::atomic<bool> failing_{false};
  std::atomic<uint64_t> fault_state_;
  std::atomic<uint64_t> failures_{0};
  std::deque<Issued> requests_;
  FileBench bench_;
  ElementPlaces places_;  // that its elements lie in
};

}  // namespace tidelane
