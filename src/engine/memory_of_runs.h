/// \file
/// What earlier runs learned is recalled when the first file of a storage is opened for writing, and what this one has
/// learned is kept when it ends.
///
/// Only the job's first rank keeps something: the others learned the same. A history that cannot be used costs at most
/// one line on stderr; the folder that nobody asked for, not even that, where it cannot be written.
///
/// Invariant: no failure here is the program's.
/// Thread safety: all functions may be called from any thread.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <string>

#include "base/config.h"
#include "base/status.h"
#include "model/cost_model.h"

namespace tidelane {

class MemoryOfRuns {
 public:
  MemoryOfRuns(const Config& config, model::CostModel& cost_model)
      : config_(config), cost_model_(cost_model) {}

  void Recall(dev_t device);
  void Keep();

 private:
  std::string Folder() const;
  void Say(const Status& status, bool always);

  const Config& config_;
  model::CostModel& cost_model_;
  std::atomic<bool> said_{false};
};

}  // namespace tidelane
