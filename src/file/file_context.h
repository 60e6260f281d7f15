/// \file
/// What all parts of one open file share and need no lock for: its surroundings, where its bytes rest, what is ours of it, its
/// lock, and how long it is.
///
/// Invariant: what is not atomic, or safe by itself, is set before a second thread has the file.
/// Thread safety: everything may be asked from any thread; what changes belongs to the program's side.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/config.h"
#include "device/device.h"
#include "file/file_lock.h"
#include "file/write_mode.h"
#include "file/write_policy.h"
#include "lane/lanes.h"
#include "model/cost_model.h"
#include "ranks/dirty_range_table.h"
#include "store/store.h"

namespace tidelane {

class File;
class PrefetchBudget;

/// What a file needs of its surroundings; configuration, arena and lanes outlive it.
struct FileEnvironment {
  const Config& config;
  Arena& arena;
  Lanes& lanes;
  /// Asked when the arena is full: give back what idle files hold.
  std::function<void()> relieve_arena = [] {};
  /// Of all files: a program's habits are its own, not its files'.
  std::shared_ptr<model::CostModel> cost_model = std::make_shared<model::CostModel>();
  /// Told when a large write went through because storage is as quick as memory.
  std::function<void(uint64_t file_bytes)> wrote_through = [](uint64_t) {};
  /// Of all files; nullptr: nothing is read ahead.
  std::shared_ptr<PrefetchBudget> prefetch_budget = nullptr;
  /// Where the bytes of a file rest.
  std::function<std::unique_ptr<Store>(const std::shared_ptr<Device>&)> make_store = DirectStoreOn;
};

/// What of a file is ours.
struct FileTraits {
  bool owns_size = true;  ///< nobody else makes it longer or shorter
  bool owns_superblock = true;
  bool others_write =
      false;  ///< whatever its lock says: nothing of it is kept, and gaps are not filled
  bool peers_may_wait = false;  ///< for what is pending: it is not held back
  bool may_defer_close = true;
  bool at_its_name = true;  ///< not hidden until it is published
  /// Without a lock what was read of it is kept, too, until storage or the program says that somebody changed it.
  bool kept_unlocked = false;
};
/// While we hold its lock, nobody else writes it.
inline constexpr FileTraits kOwnFile{};
/// Other processes write other bytes of it all the time (the ranks of an MPI program): only the bytes that are captured are ours, and its
/// close waits.
inline constexpr FileTraits kSharedFile{.owns_size = false,
                                        .owns_superblock = false,
                                        .others_write = true,
                                        .peers_may_wait = true,
                                        .may_defer_close = false};
/// The ranks of an MPI program only read it, and HDF5's mpio driver takes no lock.
inline constexpr FileTraits kReadByRanks{
    .owns_size = false, .owns_superblock = false, .may_defer_close = false, .kept_unlocked = true};

struct FileContext {
  using Whole = std::function<std::shared_ptr<File>()>;

  FileContext(FileEnvironment environment, std::unique_ptr<Device> open, FileIdentity which,
              std::string name, bool writes, const FileTraits& kind, Whole owner);

  const FileEnvironment env;
  const std::shared_ptr<Device> device;
  const std::unique_ptr<Store> store;
  const FileIdentity identity;
  const std::string path;
  const bool writable;
  const FileTraits traits;
  const WriteCosts costs;
  /// The size this file has, or will have when drained.
  std::atomic<uint64_t> eof;
  FileLock lock;
  WriteMode mode;
  /// Of a shared file: what this process has pending, for the others; nullptr: they do not ask.
  std::unique_ptr<DirtyRangeTable> dirty_ranges;
  /// The file, for who goes on with a part of it after a call.
  const Whole whole;

  /// Nobody else can write it now.
  bool HasExclusiveAccess() const { return !traits.others_write && lock.alone(); }
  /// Storage is shorter than it is to be.
  bool TooShort() const {
    return traits.owns_size && store->size() < eof.load(std::memory_order_relaxed);
  }
  void ExtendTo(uint64_t end) {
    if (end > eof.load(std::memory_order_relaxed)) eof.store(end, std::memory_order_relaxed);
  }
  /// A failure of its storage.
  Status Failure(int error, const char* what, uint64_t address, uint64_t size) const {
    return Status::Failed(error, what).At(path, address, size);
  }
};

}  // namespace tidelane
