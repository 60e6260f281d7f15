#include "base/incidents.h"

#include <algorithm>

#include "base/counters.h"
#include "base/lasting_record.h"

namespace tidelane {
namespace {

constinit LastingRecord<Incidents> record;

}  // namespace

void FileNames::Add(const std::string& path) {
  if (std::find(listed_.begin(), listed_.end(), path) != listed_.end()) return;
  ++count_;
  if (listed_.size() < kListed) listed_.push_back(path);
}

void FileNames::Remove(const std::string& path) { count_ -= std::erase(listed_, path); }

void NoteError(const Status& status) {
  Count(Counter::kErrors);
  record.Change([&](Incidents& incidents) {
    incidents.last_error = status.Message();
    if (incidents.first_error.empty()) incidents.first_error = incidents.last_error;
  });
}

void NoteLeftOpen(const std::string& path) {
  record.Change([&](Incidents& incidents) { incidents.left_open.Add(path); });
}

void NoteNotStored(const std::string& path) {
  record.Change([&](Incidents& incidents) { incidents.not_stored.Add(path); });
}

void ForgetNotStored(const std::string& path) {
  record.Change([&](Incidents& incidents) { incidents.not_stored.Remove(path); });
}

Incidents ReadIncidents() { return record.Read(); }

void ResetIncidentsAfterFork() { record.ResetAfterFork(); }

}  // namespace tidelane
