/// \file
/// All files of the process: who is open, who drains, and what everybody may wait for.
///
/// Opens and closes of our driver come here, as do barriers (fork, exit, opens by other drivers). A file is known by
/// (device, inode), so a reopen by another name finds a file that is still draining.
///
/// Invariants:
///  1. A file whose close was deferred is in the registry, holding its descriptor and lock, until every byte is stored.
///  2. Opening such a file adopts it (descriptor, lock, pending map) if open(2) would open it; creating over it (O_TRUNC) waits for it.
///  3. The engine is never destroyed: lanes may run until the process ends.
/// Thread safety: all functions may be called from any thread. Lock order: registry, then file, then lanes, then arena.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/status.h"
#include "buffer/arena.h"
#include "buffer/staging.h"
#include "device/device.h"
#include "engine/arena_prefault.h"
#include "engine/closed_files.h"
#include "engine/memory_of_runs.h"
#include "engine/refused_closes.h"
#include "engine/registry.h"
#include "engine/series_prefetcher.h"
#include "file/file.h"
#include "lane/lanes.h"
#include "model/cost_model.h"

namespace tidelane {

struct OpenOptions {
  int flags = 0;  ///< open(2)'s
  mode_t mode = 0666;
  bool swmr = false;  ///< opened for SWMR writing or reading: write through, no read-ahead
  bool home = false;  ///< what waits of it elsewhere is brought to its place
  int opener = 0;  ///< which copy of HDF5: what one has open is on storage before another opens it
};

/// Whether this process came from a fork, and called no exec since, as the system knows it.
bool IsForkedProcess();

/// What is to be done before Engine::Shutdown where that comes at the process's exit.
void SetBeforeExit(void (*work)());

class Engine {
 public:
  /// The engine, made on first use from the environment. Check `config_status()` before relying on settings.
  static Engine& Get();
  /// nullptr before first use.
  static Engine* IfMade();

  const Config& config() const { return config_; }
  /// What LoadConfig said; the faces refuse to initialize with it when it failed.
  const Status& config_status() const { return config_status_; }

  Status Open(const char* path, const OpenOptions& options, std::shared_ptr<File>& file,
              const CallContext& call = {});
  /// A file that others have open and write, too (kSharedFile), through a descriptor of our own. `shown`: its name, in words.
  Status OpenShared(const char* path, const char* shown, std::shared_ptr<File>& file,
                    const CallContext& call = {});
  /// One that ranks only read (kReadByRanks), likewise. Fails with EBUSY where this process has it open for writing.
  Status OpenForRanksToRead(const char* path, const char* shown, std::shared_ptr<File>& file,
                            const CallContext& call = {});
  /// Called by the driver's close: ClosedFiles::Close.
  Status Close(const std::shared_ptr<File>& file, const CallContext& call = {});
  ClosedFiles& closed_files() { return closed_; }
  RefusedCloses& refused_closes() { return refused_closes_; }

  /// Waits until every captured byte of every file is stored; the first error, if any. `why`: on whose account.
  Status DrainAll(Wait why);
  /// The same for the files that this copy of HDF5 has opened by itself (sources of virtual datasets, external links): the program has
  /// no identifier of them that it could flush.
  Status DrainInside(int opener, Wait why) TL_EXCLUDES(registry_.mutex);
  /// Whether HDF5 has opened it so, beside the program or alone, and may have it open yet.
  bool OpenedInside(const File& file) TL_EXCLUDES(registry_.mutex);
  /// The same for the file that `path` names, if it is known here. For opens by other drivers and deletes.
  Status DrainPath(const char* path);

  /// The files known here that the path names, or that were opened by it; every one for nullptr.
  FileTable::Files FilesAt(const char* path) TL_EXCLUDES(registry_.mutex);

  /// End of a libhdf5's life: drains, then writes the summary and the trace (again, if it happens again). Happens at the
  /// latest when the process exits.
  Status Shutdown();

  Arena& arena() { return arena_; }
  /// Where elements wait that come from a GPU, or go to one.
  StagingMemory& staging() { return staging_; }
  /// Has lanes store what they can, so that memory becomes free.
  void RelieveArena() TL_EXCLUDES(registry_.mutex);
  Lanes& lanes() { return lanes_; }
  /// How many threads the lanes may have where they run filters.
  unsigned FilterLanes() const;
  /// The program writes, and somebody else keeps the bytes for now: it does not pause.
  void NoteBuffered();

 private:
  Engine();
  FileSettings SettingsForOpening(const CallContext& call) const;
  FileEnvironment EnvironmentOfFiles();
  std::unique_ptr<Device> DeviceOf(int fd);
  static bool DeferNothing(FileSettings& settings);
  static bool MayPublish(const FileSettings& settings, const char* path,
                         const OpenOptions& options);
  Status OpenOnce(const char* path, const OpenOptions& options, std::shared_ptr<File>& file,
                  const CallContext& call);
  Status Adopt(const char* path, const OpenOptions& options, std::shared_ptr<File>& file,
               const CallContext& call) TL_EXCLUDES(registry_.mutex);
  void DrainForAnother(const char* path, int opener) TL_EXCLUDES(registry_.mutex);
  FileTable::Opener OpenerOf(const OpenOptions& options, const CallContext& call);
  Status OpenNew(const char* path, const OpenOptions& options, std::shared_ptr<File>& file,
                 const CallContext& call);
  static void AwaitRanks(const FileIdentity& identity);
  std::vector<Status> DrainEach(Wait why)
      TL_EXCLUDES(registry_.mutex);  ///< the failures, a file each
  FileTable::Files Known() TL_EXCLUDES(registry_.mutex);
  static void PrepareFork();
  static void ParentAfterFork();
  static void ChildAfterFork();

  Config config_;
  const Status config_status_;
  Arena arena_;
  StagingMemory staging_;
  Lanes lanes_;
  const std::shared_ptr<PrefetchBudget> prefetch_budget_ =
      std::make_shared<PrefetchBudget>(arena_, config_.read_ahead_limit);
  SeriesPrefetcher series_{lanes_, prefetch_budget_, [this](const FileIdentity& identity) {
                             MutexLock lock(registry_.mutex);
                             return registry_.files.Knows(identity);
                           }};
  const std::shared_ptr<model::CostModel> cost_model_;
  MemoryOfRuns runs_{config_, *cost_model_};
  const std::shared_ptr<ArenaPrefault> arena_prefault_ =
      std::make_shared<ArenaPrefault>(arena_, lanes_, *cost_model_);
  RefusedCloses refused_closes_;
  Registry registry_;
  ClosedFiles closed_{registry_};
  std::atomic<bool> any_inside_{false};  // ever opened for a call of another file's
  std::atomic<bool> exiting_{false};     // between the drain at a libhdf5's end and its Shutdown
  // This process came from a fork, and called no exec since; set before it has a second thread.
  bool forked_;
  FileTable::Files held_for_fork_ TL_GUARDED_BY(registry_.mutex);
};

}  // namespace tidelane
