#include "extent/epochs.h"

#include <algorithm>
#include <utility>

namespace tidelane {

void Epochs::Push(Entry& entry, Entry*& list) {
  entry.next = list;
  list = &entry;
}

Epochs::Entry& Epochs::Pop(Entry*& list) {
  Entry& entry = *list;
  list = std::exchange(entry.next, nullptr);
  return entry;
}

// Those that waited only for a finished one are finished, too. The list is in the entries: it takes no memory, and no stack.
void Epochs::EraseDone(Entry& done) {
  Entry* finished = nullptr;
  Push(done, finished);
  while (finished != nullptr) {
    Entry& entry = Pop(finished);
    for (const uint64_t older : entry.superseded) {
      const auto waiting = entries_.find(older);
      if (waiting == entries_.end()) continue;
      --waiting->second.waits_for;
      if (waiting->second.done()) Push(waiting->second, finished);
    }
    entries_.erase(entry.epoch);
  }
}

void Epochs::Remove(uint64_t epoch) {
  const auto it = entries_.find(epoch);
  if (it == entries_.end()) return;
  // Once per extent: what is not the last one must cost nothing.
  --it->second.pending;
  if (it->second.done()) EraseDone(it->second);
}

void Epochs::Supersede(uint64_t older, uint64_t newer) {
  if (older == newer || newer == kUntracked) return;
  std::vector<uint64_t>& superseded = EntryOf(newer).superseded;
  if (std::find(superseded.begin(), superseded.end(), older) != superseded.end()) return;
  superseded.push_back(older);
  ++EntryOf(older).waits_for;
}

void Epochs::Fail(uint64_t epoch, const Status& status) {
  const auto first = entries_.find(epoch);
  if (first == entries_.end() || !first->second.error.ok()) return;
  first->second.error = status;
  // So have those whose bytes a failed one replaced.
  Entry* failed = nullptr;
  Push(first->second, failed);
  while (failed != nullptr) {
    for (const uint64_t older : Pop(failed).superseded) {
      const auto it = entries_.find(older);
      if (it == entries_.end() || !it->second.error.ok()) continue;
      it->second.error = status;
      Push(it->second, failed);
    }
  }
}

void Epochs::ForgetFailures() {
  for (auto& [epoch, entry] : entries_) entry.error = Status();
}

Epochs::State Epochs::StateOf(uint64_t epoch, Status& error) const {
  const auto it = entries_.find(epoch);
  if (it == entries_.end()) return State::kDone;
  if (it->second.error.ok()) return State::kPending;
  error = it->second.error;
  return State::kFailed;
}

Epochs::State Epochs::StateUpTo(uint64_t epoch, Status& error) const {
  State state = State::kDone;
  for (auto it = entries_.begin(); it != entries_.end() && it->first <= epoch; ++it) {
    state = State::kPending;
    if (it->second.error.ok()) continue;
    error = it->second.error;
    return State::kFailed;
  }
  return state;
}

}  // namespace tidelane
