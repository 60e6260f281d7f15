#include "engine/memory_of_runs.h"

#include <cerrno>
#include <cstdio>
#include <map>

#include "model/history.h"
#include "model/history_key.h"

namespace tidelane {
namespace {

// One says little, and would be all that a later run knows.
constexpr uint64_t kEpochsWorthKeeping = 2;

}  // namespace

std::string MemoryOfRuns::Folder() const {
  return config_.history == "auto" ? model::DefaultHistoryFolder() : config_.history;
}

void MemoryOfRuns::Say(const Status& status, bool always) {
  if (!always && config_.history == "auto") return;
  if (said_.exchange(true, std::memory_order_relaxed)) return;
  std::fprintf(stderr, "tidelane: TIDELANE_HISTORY: %s\n", status.Message().c_str());
}

void MemoryOfRuns::Recall(dev_t device) {
  const std::string folder = Folder();
  if (folder.empty() && config_.summary.empty()) return;
  if (cost_model_.Remembers(device)) return;
  const std::string name = model::FileSystemName(device);
  model::HistoryEntry entry;
  if (!folder.empty()) {
    const Status status = model::LoadHistory(folder, {name, model::ProgramName()}, entry);
    // These two are not about who may read what: something is wrong with a file of ours.
    if (!status.ok()) Say(status, status.code() == EBADMSG || status.code() == EPROTONOSUPPORT);
  }
  cost_model_.Remember(device, name, entry.learned, entry.runs);
}

void MemoryOfRuns::Keep() {
  const std::string folder = Folder();
  if (folder.empty() || model::RankInJob() != 0) return;
  std::map<std::string, model::Learned> all;
  for (auto& [name, learned] : cost_model_.TakeLearnings(kEpochsWorthKeeping))
    all[name].Merge(learned);
  for (auto& [name, learned] : cost_model_.reads().TakeLearnings(kEpochsWorthKeeping))
    all[name].reads.Merge(learned);
  for (const auto& [name, learned] : all) {
    const Status status = model::SaveHistory(folder, {name, model::ProgramName()}, learned);
    if (!status.ok()) Say(status, false);
  }
}

}  // namespace tidelane
