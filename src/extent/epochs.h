/// \file
/// How far each epoch of a file has come: extents not yet stored, and the first failure.
///
/// An epoch is the set of extents that one tracked call captured. When a later write replaces bytes of an older epoch
/// before they were stored, the older epoch is done only when the newer one is: its bytes exist nowhere else.
///
/// Invariant: an epoch has an entry exactly while it has pending extents or waits for a newer epoch.
/// Thread safety: none; guarded by the file's mutex.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/status.h"

namespace tidelane {

class Epochs {
 public:
  enum class State { kDone, kPending, kFailed };

  /// The epoch of bytes that no request waits for (the superblock); older than every barrier.
  static constexpr uint64_t kUntracked = 0;

  void Add(uint64_t epoch) { ++EntryOf(epoch).pending; }
  /// One extent of `epoch` is stored or gone. Finished entries disappear, with all that waited only for them.
  void Remove(uint64_t epoch);
  /// Bytes of `older` were replaced by bytes of `newer` before they were stored; call before Remove(older).
  void Supersede(uint64_t older, uint64_t newer);
  /// A write of an extent of `epoch` failed: so did those whose bytes it replaced.
  void Fail(uint64_t epoch, const Status& status);
  /// A retry is about to begin.
  void ForgetFailures();

  State StateOf(uint64_t epoch, Status& error) const;
  /// Of all epochs up to and including `epoch`.
  State StateUpTo(uint64_t epoch, Status& error) const;
  bool empty() const { return entries_.empty(); }

 private:
  struct Entry {
    uint64_t pending = 0;
    uint64_t waits_for = 0;            // how many newer epochs
    std::vector<uint64_t> superseded;  // older epochs that wait for this one
    Status error;
    uint64_t epoch = 0;
    Entry* next = nullptr;  // in the list of who goes through several
    bool done() const { return pending == 0 && waits_for == 0; }
  };
  Entry& EntryOf(uint64_t epoch) {
    Entry& entry = entries_[epoch];
    entry.epoch = epoch;
    return entry;
  }
  static void Push(Entry& entry, Entry*& list);
  static Entry& Pop(Entry*& list);
  void EraseDone(Entry& done);

  std::map<uint64_t, Entry> entries_;
};

}  // namespace tidelane
