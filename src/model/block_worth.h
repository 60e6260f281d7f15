/// \file
/// Whether it pays, on one storage, to read a block around a small read: what blocks took longer than the reads alone would have,
/// against the requests that were not made because a block had their bytes.
///
/// How far apart a program's small reads lie nobody knows beforehand, and on storage that moves few bytes a second a block of
/// 64 KiB takes as long as dozens of them. So blocks keep an account in nanoseconds: while it is overdrawn none is read, and each
/// read that is made alone pays in a thirty-second of its time. That, and one block, is the most that blocks can lose. What they
/// have gained counts for little more than a block, so that other places which the program goes on to are seen soon.
///
/// Times are those of a machine that does other things, too. So a second account is in reads: blocks which answer less than one more
/// read each are not worth their bytes, whatever they seem to take.
///
/// Thread safety: all functions may be called from any thread; what two threads note at once may be lost: it is a guess.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace tidelane::model {

class BlockWorth {
 public:
  /// Storage that answers a small read in less is memory: a block would only be one more copy.
  static constexpr int64_t kSlowNs = 30'000;

  /// A small read went to storage by itself.
  void ReadAlone(uint64_t ns) {
    const int64_t took = Limited(ns), average = Get(average_ns_);
    Set(average_ns_, average == 0 ? took : (average * 3 + took) / 4);
    Follow(alone_ns_, took);
    if (const int64_t left = Get(left_ns_); left < 0)
      SetLeft(std::min<int64_t>(left + took / kShare, 0));
    if (Get(answers_) < 0) Earn(1);
  }
  /// A block was read for one.
  void Filled(uint64_t ns) {
    // The first one may have been kept by something else.
    const bool first = Get(block_ns_) == 0;
    Follow(block_ns_, first ? std::min(Limited(ns), kFirst * Get(alone_ns_)) : Limited(ns));
    // A read alone takes no longer.
    Set(average_ns_, std::min(Get(average_ns_), Limited(ns)));
    SetLeft(Get(left_ns_) - std::max<int64_t>(Get(block_ns_) - Get(alone_ns_), 0));
    Earn(-kShare);
  }
  /// One was answered by a block.
  void Answered() {
    SetLeft(Get(left_ns_) + Get(alone_ns_));
    Earn(kShare);
  }
  /// Of other storage nothing is known.
  void Forget() {
    for (std::atomic<int64_t>* value :
         {&average_ns_, &alone_ns_, &block_ns_, &left_ns_, &answers_, &asked_})
      Set(*value, 0);
  }

  /// Whether a read that no block answers is worth one. Now and then it is not, where it else would be: what a read alone takes
  /// must be known, and the first one may have taken long for reasons of its own.
  bool Pays() {
    if (Get(average_ns_) <= kSlowNs || Get(left_ns_) < 0 || Get(answers_) < 0) return false;
    const int64_t asked = Get(asked_) + 1;
    Set(asked_, asked);
    return asked % kProbe != 0 && asked != kProbe / 4 && asked != kProbe / 16;
  }

 private:
  static constexpr int64_t kShare =
      32;  // of the time of reads made alone, for blocks that may be in vain
  static constexpr int64_t kMost = 32;  // reads' time: more is neither kept nor owed
  static constexpr int64_t kMostAnswers = 4;
  static constexpr int64_t kProbe = 64;
  static constexpr int64_t kFirst = 8;
  static int64_t Limited(uint64_t ns) {
    return static_cast<int64_t>(std::min<uint64_t>(ns, 1'000'000'000'000));
  }
  static int64_t Get(const std::atomic<int64_t>& ns) { return ns.load(std::memory_order_relaxed); }
  static void Set(std::atomic<int64_t>& ns, int64_t value) {
    ns.store(value, std::memory_order_relaxed);
  }
  // The quickest of late: what a busy machine adds is no price of a block, and no gain.
  static void Follow(std::atomic<int64_t>& quickest, int64_t took) {
    const int64_t before = Get(quickest);
    Set(quickest,
        before == 0 || took < before ? took : before + std::min(took - before, before) / 4);
  }
  void SetLeft(int64_t ns) {
    const int64_t most = kMost * Get(alone_ns_);
    Set(left_ns_, std::clamp(ns, -most, most));
  }

  void Earn(int64_t shares) {
    Set(answers_,
        std::clamp(Get(answers_) + shares, -kMostAnswers * kShare, kMostAnswers * kShare));
  }

  std::atomic<int64_t> average_ns_{0};  // of small reads made alone; 0: there was none
  std::atomic<int64_t> alone_ns_{0};    // of one,
  std::atomic<int64_t> block_ns_{0};    // and of a block, lately
  std::atomic<int64_t> left_ns_{0};
  std::atomic<int64_t> answers_{0};  // in shares of a read
  std::atomic<int64_t> asked_{0};
};

}  // namespace tidelane::model
