#include "vol/work_holders.h"

#include <algorithm>
#include <atomic>

#include "base/annotations.h"

namespace tidelane::vol {

namespace {

struct Table {
  Mutex mutex;
  std::vector<WorkHolder> holders TL_GUARDED_BY(mutex);
};

// Never destroyed; the child of a fork has another one, since the parent's may have been in use.
constinit std::atomic<Table*> current{nullptr};
constinit std::atomic<size_t> closes_held{0};

Table& Holders() {
  if (Table* const table = current.load(std::memory_order_acquire); table != nullptr) return *table;
  Table* const made = new Table;
  Table* expected = nullptr;
  if (current.compare_exchange_strong(expected, made, std::memory_order_acq_rel)) return *made;
  delete made;
  return *expected;
}

}  // namespace

void NoteWorkHeld(int slot, const std::shared_ptr<File>& file, bool closes) {
  Table& table = Holders();
  MutexLock lock(table.mutex);
  const auto found = std::ranges::find_if(table.holders, [&](const WorkHolder& holder) {
    return holder.slot == slot && holder.file == file;
  });
  if (found == table.holders.end()) {
    table.holders.push_back({slot, file, 1, pthread_self(), closes});
  } else {
    ++found->pieces;
    found->writer = pthread_self();
    found->closes |= closes;
  }
  if (closes) closes_held.fetch_add(1, std::memory_order_relaxed);
}

void NoteWorkGone(int slot, const std::shared_ptr<File>& file) {
  Table& table = Holders();
  MutexLock lock(table.mutex);
  const auto found = std::ranges::find_if(table.holders, [&](const WorkHolder& holder) {
    return holder.slot == slot && holder.file == file;
  });
  if (found == table.holders.end() || --found->pieces != 0) return;
  if (found->closes) closes_held.fetch_sub(1, std::memory_order_relaxed);
  table.holders.erase(found);
}

bool AnyClosesHeld() { return closes_held.load(std::memory_order_relaxed) != 0; }

std::vector<WorkHolder> WorkHolders() {
  Table& table = Holders();
  MutexLock lock(table.mutex);
  return table.holders;
}

void ForgetWorkHolders() {
  current.store(nullptr, std::memory_order_release);
  closes_held.store(0, std::memory_order_relaxed);
}

}  // namespace tidelane::vol
