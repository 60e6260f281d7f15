/// \file
/// The marker beside a file (tier/entry.h), written by a lane: where the file lies storage is slow, and nobody needs the marker before the file is
/// marked.
///
/// Invariant: it is written once, by whoever comes first, a lane or who waits for it; not after it was withdrawn.
/// Thread safety: all functions may be called from any thread.
#pragma once

#include <memory>
#include <utility>

#include "base/annotations.h"
#include "lane/lanes.h"
#include "publish/directory_entry.h"
#include "tier/entry.h"

namespace tidelane::tier {

class Announcement final : public LaneTask {
 public:
  /// `is_there`: another program has written it.
  Announcement(Marker marker, std::shared_ptr<const DirectoryEntry> beside, bool is_there)
      : marker_(std::move(marker)),
        beside_(std::move(beside)),
        state_(is_there ? State::kThere : State::kWanted) {}

  void RunOne() override { static_cast<void>(Finish()); }
  /// The marker is there: 0; or an errno, and the next call tries again.
  int Finish() TL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (state_ != State::kWanted) return 0;
    const int error = marker_.Write(*beside_);
    if (error == 0) state_ = State::kThere;
    return error;
  }
  /// It goes, and does not come any more.
  void Withdraw() TL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    state_ = State::kWithdrawn;
    Marker::Remove(*beside_, marker_.entry);
  }

 private:
  enum class State : unsigned char { kWanted, kThere, kWithdrawn };

  const Marker marker_;
  const std::shared_ptr<const DirectoryEntry> beside_;
  Mutex mutex_;
  State state_ TL_GUARDED_BY(mutex_);
};

}  // namespace tidelane::tier
