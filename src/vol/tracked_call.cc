#include "vol/tracked_call.h"

namespace tidelane::vol {

namespace {

unsigned PermissionsOf(Effect effect, bool has_request) {
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

}  // namespace

bool RunsPlain(Effect effect, void** request) {
  if (effect == Effect::kNothing) return true;
  return request == nullptr && PermissionsOf(effect, false) == CallScope::kNone;
}

TrackedCall::TrackedCall(Instance& instance, Effect effect, void** request)
    : instance_(instance),
      effect_(effect),
      request_(effect == Effect::kOpen ? nullptr : request),
      scope_(PermissionsOf(effect, request != nullptr), request_ != nullptr) {
  if (effect == Effect::kFlush) ++instance.flushes;
}

void TrackedCall::Finish(bool succeeded) {
  if (request_ == nullptr || !succeeded) return;
  std::shared_ptr<Completion> completion = scope_.TakeCompletion();
  const bool always =
      effect_ == Effect::kData || effect_ == Effect::kFlush || effect_ == Effect::kClose;
  if (completion != nullptr || always) *request_ = instance_.requests.Issue(std::move(completion));
}

}  // namespace tidelane::vol
