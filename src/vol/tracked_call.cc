#include "vol/tracked_call.h"

namespace tidelane::vol {

TrackedCall::TrackedCall(LibraryState& library, Effect effect, void** request)
    : library_(library),
      effect_(effect),
      request_(effect == Effect::kOpen ? nullptr : request),
      scope_(CallFlagsOf(effect, request != nullptr), request_ != nullptr) {
  if (effect == Effect::kFlush) ++library.flushes;
}

void TrackedCall::Finish(bool succeeded, std::unique_ptr<DeferredPart> late) {
  if (request_ == nullptr || !succeeded) return;
  std::shared_ptr<Completion> completion = scope_.TakeCompletion();
  const bool always =
      effect_ == Effect::kData || effect_ == Effect::kFlush || effect_ == Effect::kClose;
  if (completion != nullptr || always || late != nullptr) {
    *request_ = library_.requests.Issue(std::move(completion), std::move(late));
  }
}

}  // namespace tidelane::vol
