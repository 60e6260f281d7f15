/// \file
/// For the engine's tests: a file on a memory device, with a plan of faults, a record of what
/// storage saw, and an arena and lanes of its own.
///
/// Invariant: with 0 lanes nothing happens by itself, so a test decides when each run goes out.
/// Thread safety: the record is guarded; the rest belongs to the test's thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/config.h"
#include "device/fault_device.h"
#include "file/call_scope.h"
#include "file/completion.h"
#include "file/file.h"
#include "lane/lanes.h"

namespace tidelane {

/// One call that storage saw.
struct Call {
  FaultPoint point;
  uint64_t address;
  uint64_t size;
  bool operator==(const Call&) const = default;
};

/// As the driver reads it, for calls that a test makes in a CallScope.
/// While one lives, what this thread writes from byte 1 on are one dataset's elements.
struct OneDataset {
  OneDataset() { places.Add({1, UINT64_MAX}); }

  ElementPlaces places;
  const ElementsIn elements{&places};
};

inline CallContext InProgress() { return CallContext::Current(); }

class FileBench {
 public:
  explicit FileBench(unsigned lanes = 0, uint64_t arena_bytes = 4u << 20)
      : arena_(arena_bytes), storage_(std::make_shared<MemoryFile>()), lanes_(lanes) {
    config_.linger_us = 500;
    config_.mode = Mode::kAsync;
  }

  /// Opens (again): the storage is the same. The contents may be put there first.
  void Open(const std::string& contents = "") {
    if (!contents.empty()) {
      const auto* bytes = reinterpret_cast<const std::byte*>(contents.data());
      storage_->bytes.assign(bytes, bytes + contents.size());
    }
    auto plan = [this](FaultPoint point, uint64_t address, uint64_t size) {
      if (record_) {
        MutexLock lock(mutex_);
        calls_.push_back({point, address, size});
      }
      return plan_ ? plan_(point, address, size) : Fault{};
    };
    FileEnvironment environment{config_,
                                arena_,
                                lanes_,
                                [this] {
                                  if (file_ != nullptr) file_->writes().RelieveArena();
                                },
                                cost_model_ = std::make_shared<model::CostModel>(chooser_times_),
                                [](uint64_t) {},
                                prefetch_budget_};
    if (make_store_) environment.make_store = make_store_;
    auto device = MakeFaultDevice(MakeMemoryDevice(storage_), std::move(plan));
    if (wrap_) device = wrap_(std::move(device));
    file_ = std::make_shared<File>(std::move(environment), std::move(device), FileIdentity{1, 1},
                                   "memory.h5", true, kind_);
  }

  Status Write(uint64_t address, const std::string& text) {
    return file_->Write(address, text.size(), text.data(), InProgress());
  }
  std::string Read(uint64_t address, uint64_t size, bool raw = true) {
    std::string text(size, '?');
    const Status status = file_->Read(address, size, text.data(), raw, InProgress());
    return status.ok() ? text : status.Message();
  }
  std::string Stored() const {
    return {reinterpret_cast<const char*>(storage_->bytes.data()), storage_->bytes.size()};
  }
  void RunLanes() {
    while (lanes_.RunQueued()) {
    }
  }
  /// Takes what storage saw since the last call, reads left out.
  std::vector<Call> TakeChanges() {
    MutexLock lock(mutex_);
    std::vector<Call> changes;
    for (const Call& call : calls_) {
      if (call.point != FaultPoint::kRead) changes.push_back(call);
    }
    calls_.clear();
    return changes;
  }

  Config config_;
  /// Before Open. Copies cost next to nothing: what is chosen must not depend on this machine's memory.
  model::CostModel::Times chooser_times_{
      .calibrate = [](model::CopyCost& cost) { cost.Add(1 << 20, 1 << 20, 1e-7); }};
  std::shared_ptr<model::CostModel> cost_model_;  ///< of the last Open
  Arena arena_;
  std::shared_ptr<PrefetchBudget>
      prefetch_budget_;  ///< before Open; nullptr: nothing is read ahead
  std::shared_ptr<MemoryFile> storage_;
  /// Before Open; empty: the file itself.
  std::function<std::unique_ptr<Store>(const std::shared_ptr<Device>&)> make_store_;
  FileTraits kind_ = kOwnFile;  ///< before Open
  FaultPlan plan_;              ///< set while no lane works
  bool record_ = true;          ///< keep the list for TakeChanges
  std::function<std::unique_ptr<Device>(std::unique_ptr<Device>)>
      wrap_;  ///< a device around the device

 private:
  Mutex mutex_;
  std::vector<Call> calls_ TL_GUARDED_BY(mutex_);

 public:
  Lanes lanes_;  ///< after all that a lane at work may use: its threads end first
  std::shared_ptr<File> file_;
};

/// Fails writes while it says so.
class FailingWrites {
 public:
  explicit FailingWrites(FileBench& bench, int code = ENOSPC, uint64_t written_first = 0) {
    bench.plan_ = [this, code, written_first](FaultPoint point, uint64_t, uint64_t) {
      return failing && point == FaultPoint::kWrite ? Fault{code, written_first} : Fault{};
    };
  }
  std::atomic<bool> failing{true};
};

/// Where two contents first differ; empty when they do not. (Printing megabytes helps nobody.)
inline std::string Difference(const std::string& stored, const std::string& wanted) {
  if (stored == wanted) return "";
  const size_t common = std::min(stored.size(), wanted.size());
  size_t at = 0;
  while (at < common && stored[at] == wanted[at]) ++at;
  const auto value = [at](const std::string& bytes) {
    return at < bytes.size() ? std::to_string(static_cast<unsigned char>(bytes[at]))
                             : std::string("the end");
  };
  return "byte " + std::to_string(at) + " is " + value(stored) + " instead of " + value(wanted) +
         " (sizes " + std::to_string(stored.size()) + ", " + std::to_string(wanted.size()) + ")";
}

/// A superblock of version 2 or 3 as HDF5 writes it: 48 bytes with 8-byte offsets.
inline std::string Superblock(char mark, uint64_t end = UINT64_MAX) {
  std::string bytes("\x89HDF\r\n\x1a\n", 8);
  bytes += '\3';
  bytes += '\10';
  bytes += '\10';
  bytes.resize(48, mark);
  constexpr size_t kEnd = 28;  // of the file, little-endian
  for (size_t i = 0; i < sizeof end; ++i) bytes[kEnd + i] = static_cast<char>(end >> 8 * i);
  return bytes;
}

}  // namespace tidelane
