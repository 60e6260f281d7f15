#include "extent/epochs.h"

#include <algorithm>

namespace tidelane {

void Epochs::EraseIfDone(std::map<uint64_t, Entry>::iterator entry) {
  // Depth is bounded by the number of epochs that overwrote one another; a worklist keeps the stack flat.
  std::vector<uint64_t> finished{entry->first};
  while (!finished.empty()) {
    const auto it = entries_.find(finished.back());
    finished.pop_back();
    if (it == entries_.end() || it->second.pending != 0 || it->second.waits_for != 0) continue;
    for (const uint64_t older : it->second.superseded) {
      const auto waiting = entries_.find(older);
      if (waiting == entries_.end()) continue;
      --waiting->second.waits_for;
      finished.push_back(older);
    }
    entries_.erase(it);
  }
}

void Epochs::Remove(uint64_t epoch) {
  const auto it = entries_.find(epoch);
  if (it == entries_.end()) return;
  // Once per extent: what is not the last one must cost nothing.
  if (--it->second.pending == 0 && it->second.waits_for == 0) EraseIfDone(it);
}

void Epochs::Supersede(uint64_t older, uint64_t newer) {
  if (older == newer || newer == kUntracked) return;
  std::vector<uint64_t>& superseded = entries_[newer].superseded;
  if (std::find(superseded.begin(), superseded.end(), older) != superseded.end()) return;
  superseded.push_back(older);
  ++entries_[older].waits_for;
}

void Epochs::Fail(uint64_t epoch, const Status& status) {
  std::vector<uint64_t> failed{epoch};
  while (!failed.empty()) {
    const auto it = entries_.find(failed.back());
    failed.pop_back();
    if (it == entries_.end() || !it->second.error.ok()) continue;
    it->second.error = status;
    failed.insert(failed.end(), it->second.superseded.begin(), it->second.superseded.end());
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
