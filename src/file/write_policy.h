/// \file
/// What is deferred of a file's writes, how long, and in which requests it is stored: by the file's settings, and by what its
/// storage was seen to take.
///
/// WriteCosts is the write side's only way to the cost model, bound to the file's device: what writes and waits took is told by it.
/// WritePolicy decides with it. Neither stores anything.
///
/// Invariant: nothing here changes what is stored, only when, by whom and in how many requests.
/// Thread safety: WriteCosts from any thread; WritePolicy has none, and is guarded by the file's mutex.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/config.h"
#include "base/counters.h"
#include "extent/pending_map.h"
#include "file/flush_planner.h"
#include "model/cost_model.h"

namespace tidelane {

class WriteCosts {
 public:
  using WriteBudget = model::CostModel::WriteBudget;

  WriteCosts(std::shared_ptr<model::CostModel> cost_model, uint64_t device)
      : cost_model_(std::move(cost_model)), device_(device) {}

  /// A large write of `size` bytes begins: how many bytes may be queued before more is written through. Memory
  /// can hold back `room` bytes, and holds `held`.
  WriteBudget Begin(uint64_t now_ns, const std::string& path, Mode mode, uint64_t room,
                    uint64_t held, uint64_t size) const;
  /// It ends; of its bytes so many were handed over, which took `copy_ns`.
  void End(uint64_t begin_ns, uint64_t end_ns, uint64_t copied_bytes, uint64_t copy_ns) const {
    cost_model_->End(device_, {begin_ns, end_ns, copied_bytes, copy_ns});
  }
  /// The program wants its bytes stored, and has waited for that.
  void Asked(uint64_t now_ns) const { cost_model_->Asked(now_ns); }
  void Waited(uint64_t ns) const { cost_model_->Waited(ns); }
  /// Bytes that storage takes in the time of a request; `unknown` before there was one.
  uint64_t WorthARequest(uint64_t unknown) const {
    return cost_model_->WorthARequest(device_, unknown);
  }
  uint64_t WorthARequest() const { return cost_model_->WorthARequest(device_); }
  /// Whether the program pauses, so that handing over pays though storage is quick.
  bool Defers() const;
  /// Whether storage is as quick as memory: before the first request its file system says so, or does not; then each request.
  bool Opened(bool promises_speed) const { return cost_model_->Opened(device_, promises_speed); }
  bool Stored(uint64_t bytes, uint64_t begin_ns, uint64_t end_ns) const;
  bool IsQuick() const;

 private:
  const std::shared_ptr<model::CostModel> cost_model_;
  const uint64_t device_;
};

class WritePolicy {
 public:
  /// `peers_may_wait`: other ranks may, for what is pending.
  WritePolicy(const WriteCosts& costs, bool peers_may_wait, const FileSettings& settings,
              bool promises_speed)
      : costs_(costs),
        peers_may_wait_(peers_may_wait),
        settings_(settings),
        quick_(costs.Opened(promises_speed)) {}

  const FileSettings& settings() const { return settings_; }
  void Set(const FileSettings& settings) { settings_ = settings; }
  void SetPaused(bool paused) { settings_.paused = paused; }
  void SetDelay(uint64_t us) { settings_.delay_us = us; }

  /// The program has asked for bytes to be kept for now.
  bool held_back() const {
    return !peers_may_wait_ && (settings_.paused || settings_.delay_us != 0);
  }
  LingerTerms Terms(uint64_t linger_us) const {
    return {.linger_us = linger_us,
            .delay_us = settings_.delay_us,
            .paused = settings_.paused,
            .others_wait = peers_may_wait_};
  }

  /// Requests go at memory's speed.
  bool quick() const { return quick_; }
  /// Deferring hides hardly anything here: what is large goes through, and who waits for a drain does it.
  bool StorageIsMemorySpeed() const { return quick_ && settings_.mode == Mode::kAuto; }
  /// Whether what the model does not allow to wait is written by the caller.
  bool WritesThrough(bool anywhere) const {
    if (held_back()) return false;
    return StorageIsMemorySpeed() || (anywhere && settings_.mode == Mode::kAuto);
  }
  /// Why, where it is.
  Fallback WhyThrough() const { return quick_ ? Fallback::kQuickStorage : Fallback::kCostModel; }
  /// Storage is quick and the program does not pause: it stores what it gathers, no thread is started. Of a shared file other
  /// ranks may wait for what is gathered, while the program does something else.
  bool ProgramStores() const {
    return !peers_may_wait_ && StorageIsMemorySpeed() && !held_back() && !costs_.Defers();
  }

  /// In which requests bytes are stored. `alone`: nobody else can write the file now, so gaps may be filled.
  RunLimits Runs(bool alone) const;

  /// A lane or the program stored so many bytes.
  void Stored(uint64_t bytes, uint64_t begin_ns, uint64_t end_ns) {
    quick_ = costs_.Stored(bytes, begin_ns, end_ns);
  }

 private:
  const WriteCosts& costs_;
  const bool peers_may_wait_;
  FileSettings settings_;
  bool quick_;
};

}  // namespace tidelane
