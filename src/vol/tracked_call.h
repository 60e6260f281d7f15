/// \file
/// A native call with what surrounds it: what it tells the driver, and the request it
/// leaves behind.
///
/// Invariant: a token is handed out only for a call that succeeded.
/// Thread safety: lives on the calling thread's stack, under HDF5's lock.
#pragma once

#include "file/call_scope.h"
#include "vol/library_state.h"

namespace tidelane::vol {

/// What a call can leave pending.
enum class Effect {
  kNothing,  ///< reads, queries
  kRelease,  ///< bytes out of HDF5's caches, perhaps; the file's content stays what it is
  kWrite,    ///< changes the file
  kData,     ///< changes a dataset's elements: always a request when one is asked for
  kDataNow,  ///< the same, stored when the call returns (without a request only)
  kFlush,    ///< waits, unless a request or the file's settings say otherwise
  kOpen,  ///< file create and open: their flush of the superblock need not wait, nor anybody for it
          ///< (it is stored last)
  kClose,  ///< file close that may be deferred
};

/// Whether chunks of a dataset that is open may afterwards be elsewhere, or others. A release of something else leaves
/// them where they are.
inline bool MayMoveChunks(Effect effect) {
  return effect != Effect::kNothing && effect != Effect::kRelease;
}

/// What the driver may do early while such a call runs (CallScope::Flag).
constexpr unsigned CallFlagsOf(Effect effect, bool has_request) {
  switch (effect) {
    case Effect::kFlush:
      return has_request ? CallScope::kFlushMayReturnEarly : CallScope::kFlushAsSet;
    case Effect::kOpen: return CallScope::kFlushMayBeSkipped;
    case Effect::kClose: return CallScope::kCloseMayBeDeferred | CallScope::kFlushMayReturnEarly;
    case Effect::kDataNow: return CallScope::kWriteThrough;
    case Effect::kNothing:
    case Effect::kRelease:
    case Effect::kWrite:
    case Effect::kData: break;
  }
  return CallScope::kNone;
}

/// True when the call needs no surroundings at all.
constexpr bool RunsPlain(Effect effect, void* const* request) {
  return effect == Effect::kNothing ||
         (request == nullptr && CallFlagsOf(effect, false) == CallScope::kNone);
}

class TrackedCall {
 public:
  /// `request` is where HDF5 wants the token, or null.
  TrackedCall(LibraryState& library, Effect effect, void** request);

  /// Call after the native call. A flush, a close and a dataset write always leave a token, so that
  /// event sets count them; other calls only when something is pending. `late` is a part of the token, if there is one.
  void Finish(bool succeeded, std::unique_ptr<DeferredPart> late = nullptr);

  CallScope& scope() { return scope_; }

 private:
  LibraryState& library_;
  const Effect effect_;
  void** const request_;
  CallScope scope_;
};

}  // namespace tidelane::vol
