/// \file
/// What reads of one file cost, for the cost model: the read side's only way to it, bound to the file's device, as WriteCosts
/// (file/write_policy.h) is the write side's. What reads wait for is measured; only blocks are chosen by it.
///
/// Thread safety: all functions may be called from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "content/byte_source.h"
#include "model/cost_model.h"

namespace tidelane {

class ReadCosts {
 public:
  using Read = model::ReadPhases::Read;

  ReadCosts(std::shared_ptr<model::CostModel> cost_model, uint64_t device)
      : cost_model_(std::move(cost_model)), device_(device) {}

  /// Whether metadata is read by the block there.
  model::BlockWorth& blocks() const { return cost_model_->BlocksOn(device_); }

  /// A large read of the program's begins, and has ended.
  void Begin(uint64_t now_ns) const { phases().Begin(now_ns); }
  void End(const Read& read) const { phases().End(device_, read); }
  /// Storage has answered requests for one, on whoever's account.
  void Answered(Reader reader, const ReadTimes& times) const {
    const bool later = reader == Reader::kLater || reader == Reader::kAhead;
    using For = model::ReadPhases::For;
    phases().Answered(device_, later ? For::kLater : For::kProgram,
                      {.begin_ns = times.begin_ns, .end_ns = times.end_ns, .bytes = times.bytes});
  }
  /// The program waited for what lanes bring.
  void Waited(uint64_t ns) const { phases().Waited(ns); }
  /// A small read was answered by storage while the program waited.
  void Small(uint64_t begin_ns, uint64_t end_ns) const { phases().Small(begin_ns, end_ns); }

 private:
  model::ReadPhases& phases() const { return cost_model_->reads(); }

  const std::shared_ptr<model::CostModel> cost_model_;
  const uint64_t device_;
};

}  // namespace tidelane
