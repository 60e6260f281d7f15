#include "extent/epochs.h"

#include <algorithm>
#include <new>

namespace tidelane {

void Epochs::Release(std::map<uint64_t, Entry>::iterator done) {
  for (const uint64_t older : done->second.superseded) {
    const auto waiting = entries_.find(older);
    if (waiting != entries_.end()) --waiting->second.waits_for;
  }
  entries_.erase(done);
}

void Epochs::EraseIfDone(std::map<uint64_t, Entry>::iterator entry) {
  if (entry->second.superseded.empty()) {
    entries_.erase(entry);
    return;
  }
  try {
    // Depth is bounded by the number of epochs that overwrote one another; a worklist keeps the stack flat.
    std::vector<uint64_t> finished{entry->first};
    while (!finished.empty()) {
      const auto it = entries_.find(finished.back());
      finished.pop_back();
      if (it == entries_.end() || !it->second.done()) continue;
      finished.insert(finished.end(), it->second.superseded.begin(), it->second.superseded.end());
      Release(it);
    }
  } catch (const std::bad_alloc&) {
    EraseAllDone();
  }
}

void Epochs::EraseAllDone() {
  for (auto it = entries_.begin(); it != entries_.end();) {
    if (!it->second.done()) {
      ++it;
      continue;
    }
    Release(it);
    it = entries_.begin();  // older ones may be done now
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
  const auto first = entries_.find(epoch);
  if (first == entries_.end() || !first->second.error.ok()) return;
  first->second.error = status;
  if (first->second.superseded.empty()) return;
  // Each round fails those whose bytes a failed one replaced; there are few rounds, and no memory is needed.
  for (bool more = true; more;) {
    more = false;
    for (const auto& [newer, entry] : entries_) {
      if (entry.error.ok()) continue;
      for (const uint64_t older : entry.superseded) {
        const auto it = entries_.find(older);
        if (it == entries_.end() || !it->second.error.ok()) continue;
        it->second.error = status;
        more = true;
      }
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
