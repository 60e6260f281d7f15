/// \file
/// The file beside a log: what goes there straight, its superblock with and without mark, and which of it is on storage.
///
/// Invariant: after a sync or a mark that failed nobody knows what storage has: from then on it is broken, and nothing is committed or moved any
/// more.
/// Thread safety: all functions may be called from any thread; one at a time writes the superblock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/annotations.h"
#include "log/mark.h"
#include "store/direct_store.h"

namespace tidelane::log {

/// Functions return 0 or an errno unless they say otherwise.
class MarkedFile {
 public:
  /// `syncs`: whether what is written is to survive the machine.
  MarkedFile(std::shared_ptr<Device> device, bool syncs)
      : device_(std::move(device)),
        syncs_(syncs),
        direct_(std::make_unique<DirectStore>(device_)) {}

  Device& device() { return *device_; }
  DirectStore& direct() { return *direct_; }
  const DirectStore& direct() const { return *direct_; }
  /// It may have another size now.
  void LookAgain() { direct_ = std::make_unique<DirectStore>(device_); }

  bool syncs() const { return syncs_; }
  int broken() const { return broken_.load(std::memory_order_relaxed); }
  /// What it says; for returning.
  int Break(int error) {
    broken_.store(error, std::memory_order_relaxed);
    return error;
  }

  /// Whether a sync of this program has succeeded.
  bool synced() const { return synced_.load(std::memory_order_relaxed); }
  /// Bytes went there.
  void Wrote() { unsynced_.store(true, std::memory_order_relaxed); }
  /// All that was written is on storage.
  int Sync() TL_EXCLUDES(mutex_) { return SyncIf(true); }
  /// The same, where something was written since the last one. Waits for one that is under way: what that is asked for is not stored before.
  int SyncWritten() TL_EXCLUDES(mutex_) { return SyncIf(false); }

  /// It has so many bytes, at least, of which the last ones are zeros: HDF5 refuses a file that ends before its superblock says. Cuts nothing,
  /// whoever writes beyond them meanwhile.
  int Lengthen(uint64_t end) {
    uint64_t size = 0;
    const int error = device_->Size(size);
    if (error != 0 || size >= end) return error;
    const std::byte zero{};
    Run run;
    run.begin = end - 1;
    run.end = end;
    Wrote();
    return direct_->WriteBytes(run, &zero);
  }
  int Put(const Superblock& superblock) {
    Run run;
    run.begin = superblock.base();
    run.end = superblock.end();
    Wrote();
    return direct_->WriteBytes(run, superblock.bytes().data());
  }
  /// The superblock that is there, once more. Another program may have put it there whose sync failed: then storage does not have it, and no sync
  /// would bring it there.
  int PutAgain() {
    Superblock own;
    const int error = Superblock::Find(*device_, own);
    return error != 0 || own.empty() ? error : Put(own);
  }
  /// Marks the file; `clean` is what it had. If that fails it may be marked all the same, and then it is made to be as it was.
  int Mark(const Superblock& clean, uint64_t id) {
    const int error = Put(clean.Marked(id));
    if (error == 0) return 0;
    const bool is_back = Put(clean.Closed()) == 0 && (!syncs_ || Sync() == 0);
    return is_back ? error : Break(error);
  }

 private:
  int SyncIf(bool always) TL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    // After one that failed, whoever asked for it: what others have written may be lost with it, and the next one says nothing of that.
    if (broken() != 0) return broken();
    if (!unsynced_.exchange(false, std::memory_order_relaxed) && !always) return 0;
    const int error = device_->Sync();
    if (error != 0) return Break(error);
    synced_.store(true, std::memory_order_relaxed);
    return 0;
  }

  const std::shared_ptr<Device> device_;
  const bool syncs_;
  std::unique_ptr<DirectStore> direct_;
  std::atomic<bool> unsynced_{true};  // who wrote it before asked for no sync
  std::atomic<bool> synced_{false};
  std::atomic<int> broken_{0};
  Mutex mutex_;  // one sync at a time
};

}  // namespace tidelane::log
