/// \file
/// One record under a lock; it is made with the first incident and never destroyed.
///
/// Thread safety: as incidents.h; the lock is a leaf.
#include "base/incidents.h"

#include <algorithm>
#include <new>
#include <type_traits>

#include "base/annotations.h"
#include "base/counters.h"

namespace tidelane {
namespace {

struct Record {
  Mutex mutex;
  Incidents* incidents TL_GUARDED_BY(mutex) = nullptr;

  Incidents& Get() TL_REQUIRES(mutex) {
    if (incidents == nullptr) incidents = new Incidents;
    return *incidents;
  }
};

// Trivially destructible, so it outlives static destruction.
constinit Record record;
static_assert(std::is_trivially_destructible_v<Record>);

}  // namespace

void FileNames::Add(const std::string& path) {
  if (std::find(listed_.begin(), listed_.end(), path) != listed_.end()) return;
  ++count_;
  if (listed_.size() < kListed) listed_.push_back(path);
}

void FileNames::Remove(const std::string& path) { count_ -= std::erase(listed_, path); }

void NoteError(const Status& status) {
  Count(Counter::kErrors);
  MutexLock lock(record.mutex);
  Incidents& incidents = record.Get();
  incidents.last_error = status.Message();
  if (incidents.first_error.empty()) incidents.first_error = incidents.last_error;
}

void NoteLeftOpen(const std::string& path) {
  MutexLock lock(record.mutex);
  record.Get().left_open.Add(path);
}

void NoteNotStored(const std::string& path) {
  MutexLock lock(record.mutex);
  record.Get().not_stored.Add(path);
}

void ForgetNotStored(const std::string& path) {
  MutexLock lock(record.mutex);
  record.Get().not_stored.Remove(path);
}

Incidents ReadIncidents() {
  MutexLock lock(record.mutex);
  return record.Get();
}

void ResetIncidentsAfterFork() {
  // Another thread may have been inside; it is not here. What it held is left to it.
  new (&record) Record();
}

}  // namespace tidelane
