#include "file/failure_state.h"

#include <new>

#include "base/incidents.h"

namespace tidelane {

std::atomic<unsigned> FailureState::unreported_files_{0};

void FailureState::Note(Status error) {
  try {
    NoteError(error);
  } catch (const std::bad_alloc&) {  // the summary will not have its words; whoever asks has them
  }
  error_ = std::move(error);
  if (!std::exchange(unreported_, true)) unreported_files_.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace tidelane
