/// \file
/// A simulated program that writes a journalled file, on storage that loses what it may (power_disk.h), and what of the file must be found
/// after any end of it.
///
/// From a fixed seed: random calls of a store, commits, closes, failures of storage; lives after another, of which some end in the middle.
/// After every change of storage, ends are made up, and the file is recovered as who opens it next would: it must be, byte by byte, what
/// the last acknowledged commit saw, or one that was begun later. So must the file itself be as HDF5 without Tidelane would read it,
/// if its superblock lets it; and what who may only read sees; and what recoveries come to that are cut themselves. With a tier the log
/// takes all bytes, and stays: the next life goes on with it, and movers are interrupted before.
///
/// Invariant: `images_` are what the program saw at each commit of this life, and before it.
/// Thread safety: the program belongs to one thread; lanes may change storage beside it.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/annotations.h"
#include "log/logged_store.h"
#include "log/power_disk.h"

namespace tidelane::log {

struct PowerOptions {
  uint64_t seed = 1;
  Journal journal = Journal::kPower;
  enum class Moves { kWithCommits, kWhenFull, kLater, kByLanes } moves = Moves::kWithCommits;
  bool tier = false;      ///< the log stays when the file is closed
  bool full = false;      ///< and where it lies there is little room
  bool faults = false;    ///< storage fails now and then
  unsigned lives = 4;     ///< openings of the file
  unsigned calls = 40;    ///< of each
  unsigned ends = 3;      ///< that are made up after every change
  uint64_t base = 0;      ///< where the superblock lies
  unsigned version = 0;   ///< of the superblock
  bool existing = false;  ///< the file is there
};

/// Of the file's log, if it is marked: beside it, or else in a tier that may be `full`.
std::string NameOfLog(PowerDisk& disk, bool full);

class PowerProgram {
 public:
  explicit PowerProgram(const PowerOptions& options);
  ~PowerProgram();
  PowerProgram(const PowerProgram&) = delete;
  PowerProgram& operator=(const PowerProgram&) = delete;

  void Run();
  /// What was wrong, empty if nothing was.
  std::string wrong() const TL_EXCLUDES(mutex_);

  struct Tally {
    uint64_t states = 0, recovered = 0, chains = 0, cut_recoveries = 0, only_read = 0, foreign = 0,
             commits = 0, failed_commits = 0, failed_calls = 0, closes = 0, none = 0, continued = 0,
             moved_on = 0, went_on = 0;
    void operator+=(const Tally& other);
  };
  Tally tally() const TL_EXCLUDES(mutex_);

 private:
  using Bytes = PowerDisk::Bytes;
  using Rng = PowerDisk::Rng;

  // What the file is at a commit.
  struct Image {
    Bytes bytes;
    bool none = false;   // nothing was committed
    bool whole = false;  // its superblock tells the size
  };
  struct View {
    Bytes bytes;
    bool recovered = false;  // from a mark
  };

  void Live();
  bool OpenFile();
  void MovePart();
  void Call();
  void Write();
  void WriteSuperblock(bool among_others);
  void Cut();
  void CommitNow(bool closing);
  void EndLife();
  void CheckRead();
  void Resync(int error, uint64_t begin, uint64_t end);
  void Put(uint64_t address, const Bytes& bytes);
  Bytes RandomBytes(uint64_t size);
  Bytes NewSuperblock(uint64_t end);
  uint64_t EndInModel() const;

  Fault Plan(FaultPoint point, uint64_t size) TL_EXCLUDES(mutex_);
  void AfterChange() TL_EXCLUDES(mutex_);
  void CheckEnd(const std::shared_ptr<PowerDisk>& found) TL_REQUIRES(mutex_);
  bool CheckRaw(const PowerDisk& found) TL_REQUIRES(mutex_);
  void CheckCutRecovery(const PowerDisk& found) TL_REQUIRES(mutex_);
  enum class How : uint8_t { kWrites, kReads, kGoesOn };
  void CheckReopened(const std::shared_ptr<PowerDisk>& disk, How how, const char* words)
      TL_REQUIRES(mutex_);
  std::shared_ptr<PowerDisk> MadeUp(const PowerDisk& disk) TL_REQUIRES(mutex_);
  void KeepEnd() TL_REQUIRES(mutex_);
  void CheckForeign(const PowerDisk& found, const Superblock& marked) TL_REQUIRES(mutex_);
  void CheckPart(const PowerDisk& found, const Superblock& marked) TL_REQUIRES(mutex_);
  std::optional<View> Reopen(const std::shared_ptr<PowerDisk>& disk, How how,
                             std::string& why) const;
  std::string Differs(const View& view) const TL_REQUIRES(mutex_);
  std::string DiffersFrom(const View& view, const Image& image) const;
  void Wrong(const std::string& what) TL_REQUIRES(mutex_);
  Image Now(bool none) const;
  LoggedFile Parts(const std::shared_ptr<PowerDisk>& disk, std::unique_ptr<Device> file,
                   How how) const;
  uint64_t Pick(uint64_t n) { return random_() % n; }
  bool power() const { return options_.journal == Journal::kPower; }

  const PowerOptions options_;
  Rng random_;
  std::atomic<bool> failing_{false};
  std::shared_ptr<PowerDisk> disk_;
  std::shared_ptr<Lanes> lanes_;
  std::unique_ptr<LoggedStore> store_;
  Bytes model_;
  bool has_superblock_ = false;
  bool durable_ = true;              // what this life has found there
  std::vector<uint64_t> rewritten_;  // where the last write began
  Progress progress_;                // of a mover
  Bytes moved_;                      // what the file had then
  bool finished_ = false;
  unsigned life_ = 0;
  unsigned call_ = 0;

  mutable Mutex mutex_;
  Rng fault_random_ TL_GUARDED_BY(mutex_);
  Rng end_random_ TL_GUARDED_BY(mutex_);
  std::vector<Image> images_ TL_GUARDED_BY(mutex_);       // from the acknowledged one on
  std::shared_ptr<PowerDisk> end_ TL_GUARDED_BY(mutex_);  // one that was made up, for the next life
  std::vector<Image> images_of_end_ TL_GUARDED_BY(mutex_);
  bool end_is_durable_ TL_GUARDED_BY(mutex_) = true;
  bool lost_ TL_GUARDED_BY(mutex_) = false;  // storage has lost something that programs see
  std::map<std::string, Bytes> old_log_ TL_GUARDED_BY(mutex_);  // another state's
  std::string wrong_ TL_GUARDED_BY(mutex_);
  Tally tally_ TL_GUARDED_BY(mutex_);
};

}  // namespace tidelane::log
