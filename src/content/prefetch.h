/// \file
/// What lanes fetch of one file before the program reads it (content/read_ahead.h), made by the first read that is worth it, or
/// taken over from before the file was opened.
///
/// Thread safety: pieces() and Drop from any thread; Stop also from a lane that closes the file; the rest belongs to the program's side.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/activity.h"
#include "content/byte_source.h"
#include "content/read_ahead.h"

namespace tidelane {

class Prefetch {
 public:
  /// `room`: memory for all files; nullptr: nothing is fetched.
  Prefetch(Lanes& lanes, std::shared_ptr<PrefetchBudget> room)
      : lanes_(lanes), room_(std::move(room)) {}

  bool possible() const { return room_ != nullptr && !room_->none(); }
  bool started() const { return owner_ != nullptr; }
  /// What was fetched in this process, and not in the one that it was forked from; nullptr: nothing.
  PrefetchBuffer* pieces() const {
    ReadAhead* const ahead = ahead_.load(std::memory_order_acquire);
    return ahead == nullptr || !ahead->ours() ? nullptr : &ahead->pieces();
  }
  /// Called by lanes as long as the device is open: Stop comes before its end.
  void Start(AheadFetcher::Fetch fetch) {
    Start(std::make_shared<PrefetchBuffer>(room_->slab_size()), std::move(fetch));
  }
  /// These bytes were fetched before the file was opened, when it was at `version`. Only of files that are only read.
  void TakeOver(std::shared_ptr<PrefetchBuffer> pieces, const FileVersion& version,
                AheadFetcher::Fetch fetch) {
    Start(std::move(pieces), std::move(fetch));
    taken_version_ = version;
    taken_over_ = true;
  }
  /// The file is locked: nobody changes it from now on, and whatever was done to it before shows.
  void CheckTakenOver(const ByteSource& source) {
    if (std::exchange(taken_over_, false) && source.watched() != taken_version_)
      Drop(0, UINT64_MAX);
  }
  /// The program has read these bytes of a file that ends at `eof`.
  void Note(uint64_t address, uint64_t size, uint64_t eof);
  /// These bytes change.
  void Drop(uint64_t begin, uint64_t end) {
    if (ReadAhead* ahead = ahead_.load(std::memory_order_acquire); ahead != nullptr)
      ahead->pieces().Drop(begin, end);
  }
  /// Waits for lanes that are fetching; nobody fetches any more.
  void Stop();

 private:
  void Start(std::shared_ptr<PrefetchBuffer> pieces, AheadFetcher::Fetch fetch) {
    owner_ = std::make_unique<ReadAhead>(lanes_, room_, std::move(pieces), std::move(fetch));
    ahead_.store(owner_.get(), std::memory_order_release);
  }

  Lanes& lanes_;
  const std::shared_ptr<PrefetchBudget> room_;
  std::unique_ptr<ReadAhead> owner_;
  std::atomic<ReadAhead*> ahead_{nullptr};
  bool taken_over_ = false;  // what lies there is of `taken_version_`; until the lock is held
  FileVersion taken_version_;
};

}  // namespace tidelane
