/// \file
/// Storage for tests that keeps what was synced and loses anything else: a folder of files whose every change is an operation, and what
/// is left of them after a power cut, or after the end of a program.
///
/// A sync of a file makes what was done to it before durable, a sync of the folder what was made, renamed and removed. After a cut any of
/// the rest may have happened, or parts of it: writes in sectors of 512 bytes, a size without its bytes. After a sync that failed, what it
/// was asked for counts as stored, and some of it is not.
///
/// Invariant: what was synced with success is found after every cut, unless something that came later is.
/// Thread safety: all functions may be called from any thread, the hooks are; those are set before the first call.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/annotations.h"
#include "device/fault_device.h"
#include "log/folder.h"

namespace tidelane::log {

class PowerDisk : public std::enable_shared_from_this<PowerDisk> {
 public:
  using Rng = std::mt19937_64;
  using Bytes = std::vector<std::byte>;

  /// `power`: whether cuts are of power; otherwise what was not synced is not remembered as such.
  explicit PowerDisk(bool power) : power_(power) {}

  /// A file that was always there.
  void Add(const std::string& name, Bytes bytes) TL_EXCLUDES(mutex_);
  /// One that a program makes now.
  void Create(const std::string& name) TL_EXCLUDES(mutex_);
  bool Has(const std::string& name) const TL_EXCLUDES(mutex_);
  std::vector<std::string> Names() const TL_EXCLUDES(mutex_);
  Bytes Contents(const std::string& name) const TL_EXCLUDES(mutex_);
  std::unique_ptr<Device> Open(const std::string& name) TL_EXCLUDES(mutex_);
  /// `most`: of each file that is opened there; what is written beyond finds no room.
  std::unique_ptr<Folder> MakeFolder(uint64_t most = UINT64_MAX);

  /// What another program finds after the end of this one: all that was written.
  std::shared_ptr<PowerDisk> AfterEnd() const TL_EXCLUDES(mutex_);
  /// What is found after a power cut, of what may be.
  std::shared_ptr<PowerDisk> AfterCut(Rng& random) const TL_EXCLUDES(mutex_);

  /// Operations that have changed something.
  uint64_t changes() const TL_EXCLUDES(mutex_);

  /// Called after every operation that changes something, with no lock held.
  std::function<void()> after_change;
  /// Asked before every operation, as a fault device's; of a folder's, address and size are 0.
  FaultPlan plan;
  /// Writes are seen half done now and then.
  bool halves = false;

 private:
  friend class PowerDevice;
  friend class PowerFolder;

  struct Change {
    bool is_size = false;
    uint64_t address = 0;  // or the size
    Bytes bytes;
  };
  struct File {
    Bytes bytes;    // as programs see it
    Bytes durable;  // of it
    std::vector<Change> unsynced;
    bool claimed = false;
  };
  struct EntryChange {
    std::string gone;  // if not empty
    std::string name;  // if not empty: it is `file` now
    uint64_t file = 0;
  };
  using Entries = std::map<std::string, uint64_t>;

  static void Apply(const EntryChange& change, Entries& entries);
  static void Apply(const Change& change, Bytes& bytes);
  static void ApplyTorn(const Change& change, Rng& random, Bytes& bytes);
  static Bytes Survived(const File& file, Rng& random);
  Fault Ask(FaultPoint point, uint64_t address, uint64_t size) {
    return plan ? plan(point, address, size) : Fault{};
  }
  void Changed() {
    if (after_change) after_change();
  }
  void Do(uint64_t file, Change change) TL_EXCLUDES(mutex_);
  int Sync(uint64_t file) TL_EXCLUDES(mutex_);
  int DoEntry(const EntryChange& change) TL_EXCLUDES(mutex_);
  int SyncEntries() TL_EXCLUDES(mutex_);

  const bool power_;
  mutable Mutex mutex_;
  std::map<uint64_t, File> files_ TL_GUARDED_BY(mutex_);
  Entries entries_ TL_GUARDED_BY(mutex_);
  Entries durable_entries_ TL_GUARDED_BY(mutex_);
  std::vector<EntryChange> unsynced_entries_ TL_GUARDED_BY(mutex_);
  uint64_t next_file_ TL_GUARDED_BY(mutex_) = 1;
  uint64_t changes_ TL_GUARDED_BY(mutex_) = 0;
  Rng random_ TL_GUARDED_BY(mutex_){1};  // what of a failed sync was stored
};

}  // namespace tidelane::log
