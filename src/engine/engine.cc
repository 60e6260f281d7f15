#include "engine/engine.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <iterator>

#include "base/counters.h"
#include "base/incidents.h"
#include "base/report.h"
#include "base/summary.h"
#include "base/trace.h"
#include "codec/deflate.h"
#include "engine/call_scope.h"
#include "extent/broken.h"
#include "model/history_key.h"

namespace tidelane {
namespace {

bool Identify(const struct stat& status, FileIdentity& identity) {
  identity.device = status.st_dev;
  identity.inode = status.st_ino;
  return S_ISREG(status.st_mode);
}

Config ConfigFromEnvironment(Status& status) {
  Config config;
  status = LoadConfig(config);
  if (!status.ok()) return Config();
  if (std::string why; !PrepareDeflate(config.deflate, why)) {
    std::fprintf(stderr, "tidelane: deflate=isal: %s; libdeflate compresses\n", why.c_str());
    config.deflate = DeflateWith::kLibdeflate;
  }
  return config;
}

constinit std::atomic<Engine*> made{nullptr};

// Set while files were opened that no Shutdown has seen the end of.
constinit std::atomic<Engine*> to_shut_down{nullptr};

// HDF5 lets a connector end only when nothing refers to it, which is not so after a failed close or H5dont_atexit: then
// nobody else would store what is left, or say what happened. Comes after all of the program's exit handlers.
__attribute__((destructor)) void ShutDownAtExit() {
  if (Engine* engine = to_shut_down.load(); engine != nullptr) (void)engine->Shutdown();
}

// Forked processes end with _exit as a rule (Python's workers always do), which stores nothing: their flushes and closes
// wait, whatever the settings say. Whether that changed anything.
bool DeferNothing(FileSettings& settings) {
  const bool deferred = settings.close_deferred || settings.flush_deferred;
  settings.close_deferred = settings.flush_deferred = false;
  return deferred;
}

// Nobody reads an error stack at the end of a program, and lost bytes must not go unsaid.
void TellAtExit(const Status& failure) {
  std::fprintf(stderr, "tidelane: at exit: %s\n", failure.Message().c_str());
}

}  // namespace

Engine& Engine::Get() {
  // Never destroyed: lanes may run until the process ends.
  static Engine* const engine = [] {
    auto* const it = new Engine();
    made.store(it, std::memory_order_release);
    return it;
  }();
  return *engine;
}

Engine* Engine::IfMade() { return made.load(std::memory_order_acquire); }

Engine::Engine()
    : config_(),
      config_status_([this] {
        Status status;
        config_ = ConfigFromEnvironment(status);
        return status;
      }()),
      arena_(config_.arena_bytes != 0 ? config_.arena_bytes : DefaultArenaBytes()),
      lanes_(config_.lanes),
      chooser_(std::make_shared<model::Chooser>(
          model::Chooser::Times{.ranks = model::RanksOfJob(), .start_ns = NowNs()})) {
#ifdef TIDELANE_BREAK
  broken_rules = config_.test_break;
#endif
  lanes_.SetIdleWork([this] { return arena_.GrowAhead(); });
  if (!config_.trace.empty()) EnableTrace();
  RecordWaits(!config_.summary.empty() || !config_.trace.empty());
  CountMax(Counter::kArenaCapBytes, arena_.cap());
  pthread_atfork(&Engine::PrepareFork, &Engine::ParentAfterFork, &Engine::ChildAfterFork);
}

std::vector<std::shared_ptr<File>> Engine::Known() {
  MutexLock lock(mutex_);
  std::vector<std::shared_ptr<File>> files = open_;
  files.insert(files.end(), draining_.begin(), draining_.end());
  return files;
}

bool Engine::IsKnown(const FileIdentity& identity) {
  MutexLock lock(mutex_);
  for (const auto* files : {&open_, &draining_, &leaving_}) {
    for (const auto& file : *files) {
      if (file->identity() == identity) return true;
    }
  }
  return false;
}

std::shared_ptr<File> Engine::FindDraining(const char* path) {
  {
    MutexLock lock(mutex_);
    if (draining_.empty() && leaving_.empty()) return nullptr;
  }
  struct stat status;
  FileIdentity identity;
  if (path == nullptr || stat(path, &status) != 0 || !Identify(status, identity)) return nullptr;
  MutexLock lock(mutex_);
  for (const auto* files : {&draining_, &leaving_}) {
    const auto it = std::find_if(files->begin(), files->end(),
                                 [&](const auto& file) { return file->identity() == identity; });
    if (it != files->end()) return *it;
  }
  return nullptr;
}

Status Engine::Retire(const std::shared_ptr<File>& file) {
  {
    MutexLock lock(mutex_);
    const auto it = std::find(draining_.begin(), draining_.end(), file);
    if (it == draining_.end()) return {};  // adopted, or somebody else was faster
    draining_.erase(it);
    leaving_.push_back(file);  // still found by who opens it: its lock is not gone yet
  }
  Status status = file->CloseDevice();
  {
    MutexLock lock(mutex_);
    std::erase(leaving_, file);
  }
  if (status.ok()) {
    ForgetNotStored(file->path());
  } else {
    std::fprintf(stderr, "tidelane: %s\n", status.Message().c_str());
  }
  return status;
}

void Engine::Finish(const std::shared_ptr<File>& file) { (void)Retire(file); }

Status Engine::MakeWayFor(const char* path) {
  const std::shared_ptr<File> file = FindDraining(path);
  if (file == nullptr) return {};
  Status status = file->WaitClosed(Wait::kOpen);
  // Its contents are about to go anyway: what could not be stored of them need not stand in the way.
  if (!status.ok()) (void)Retire(file);
  return {};
}

FileSettings Engine::SettingsForOpening() const {
  const CallScope* scope = CallScope::current();
  const FileSettings* own = scope == nullptr ? nullptr : scope->file_settings();
  FileSettings settings = own == nullptr ? config_ : *own;
  if (forked_ && DeferNothing(settings)) Count(Fallback::kForked);
  return settings;
}

File::Environment Engine::FileEnvironment() {
  return {config_,    arena_,
          lanes_,     [this] { RelieveArena(); },
          chooser_,   [this] { preparation_->WroteThrough(); },
          ahead_room_};
}

Status Engine::OpenNew(const char* path, const OpenOptions& options, std::shared_ptr<File>& file) {
  const int fd = ::open(path, options.flags | O_CLOEXEC, options.mode);
  if (fd < 0) return Status::Failed(errno, "open").At(path, 0, 0);
  struct stat status;
  FileIdentity identity;
  if (fstat(fd, &status) != 0) {
    const int error = errno;
    ::close(fd);
    return Status::Failed(error, "inspect").At(path, 0, 0);
  }
  const bool regular = Identify(status, identity);
  const bool writable = (options.flags & O_ACCMODE) != O_RDONLY;
  file = std::make_shared<File>(FileEnvironment(), MakePosixDevice(fd), identity, path, writable);
  Count(Counter::kFilesOpened);
  if (writable) runs_.Recall(identity.device);
  const FileSettings settings = SettingsForOpening();
  file->SetSettings(settings);
  if (options.swmr) return file->WriteThrough(Fallback::kSwmrWrite);
  if (settings.mode == Mode::kSync) return file->WriteThrough(Fallback::kModeSync);
  if (writable) {
    struct stat by_name;
    const bool stable = stat(path, &by_name) == 0 && by_name.st_ino == status.st_ino &&
                        by_name.st_dev == status.st_dev;
    if (!regular || !stable) return file->WriteThrough(Fallback::kUnstableInode);
  }
  return {};
}

Status Engine::Open(const char* path, const OpenOptions& options, std::shared_ptr<File>& file) {
  to_shut_down.store(this);
  if ((options.flags & O_TRUNC) != 0) {
    if (Status status = MakeWayFor(path); !status.ok()) return status;
  } else if (std::shared_ptr<File> draining = FindDraining(path);
             draining != nullptr && (options.flags & O_EXCL) == 0) {
    MutexLock lock(mutex_);
    const auto it = std::find(draining_.begin(), draining_.end(), draining);
    if (it != draining_.end() && !Broken("adopt") && draining->Adopt()) {
      draining_.erase(it);
      open_.push_back(draining);
      file = std::move(draining);
      Count(Counter::kFilesAdopted);
    }
  }
  if (file != nullptr) {
    file->SetSettings(SettingsForOpening());
    if (options.swmr) return file->WriteThrough(Fallback::kSwmrWrite);
    return file->settings().mode == Mode::kSync ? file->WriteThrough(Fallback::kModeSync)
                                                : Status();
  }
  // It may just have finished: its lock must be gone before ours is tried.
  if (std::shared_ptr<File> draining = FindDraining(path); draining != nullptr)
    (void)draining->WaitClosed(Wait::kOpen);
  if (Status status = OpenNew(path, options, file); !status.ok()) {
    file = nullptr;
    return status;
  }
  // Where it is open already, HDF5 goes on with that, and reads it as storage has it now.
  std::vector<std::shared_ptr<File>> same;
  {
    MutexLock lock(mutex_);
    std::ranges::copy_if(open_, std::back_inserter(same),
                         [&](const auto& known) { return known->identity() == file->identity(); });
  }
  for (const auto& known : same) known->ForgetRead();
  if ((options.flags & O_ACCMODE) == O_RDONLY && !file->writes_through()) series_.Opened(*file);
  MutexLock lock(mutex_);
  open_.push_back(file);
  return {};
}

Status Engine::OpenShared(const char* path, std::shared_ptr<File>& file) {
  to_shut_down.store(this);
  (void)DrainPath(path);  // what is lost of another file by this name is that one's to tell
  const int fd = ::open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return Status::Failed(errno, "open").At(path, 0, 0);
  struct stat status;
  struct stat by_name;
  FileIdentity identity;
  const bool usable = fstat(fd, &status) == 0 && Identify(status, identity) &&
                      stat(path, &by_name) == 0 && by_name.st_ino == status.st_ino;
  if (!usable) {
    ::close(fd);
    return Status::Failed(EINVAL, "share").At(path, 0, 0);
  }
  file = std::make_shared<File>(FileEnvironment(), MakePosixDevice(fd), identity, path, true,
                                File::Kind::kShared);
  Count(Counter::kFilesOpened);
  file->SetSettings(SettingsForOpening());
  MutexLock lock(mutex_);
  open_.push_back(file);
  return {};
}

Status Engine::Close(const std::shared_ptr<File>& file) {
  series_.Closing(*file);
  // A deferred file may be taken over by who opens it for writing: one that cannot be written is not kept for its reads.
  const bool reading = file->writable() && file->deferred_reads().any();
  const bool deferred = file->CloseMayBeDeferred() && (!file->drained() || reading);
  Status status;
  if (!deferred) status = file->Drain(Wait::kClose);
  // What could not be stored is not thrown away: the file stays, as a deferred one, for whoever tries again.
  const bool kept = deferred || !file->drained();
  {
    MutexLock lock(mutex_);
    open_.erase(std::find(open_.begin(), open_.end(), file));
    if (kept) {
      if (deferred) Count(Counter::kClosesDeferred);
      draining_.push_back(file);
      // Still under the registry's lock: who finds the file there must find it closing.
      file->DrainInBackground([this](const std::shared_ptr<File>& drained) { Finish(drained); });
    }
  }
  if (kept) {
    if (CallScope* scope = CallScope::current(); scope != nullptr && !status.ok())
      scope->Keep(file);
    return status;
  }
  const Status closed = file->CloseDevice();
  // HDF5 closes what a program left open, and looks at no result: nobody else would say it.
  if (!closed.ok() && exiting_) TellAtExit(closed);
  if (status.ok()) status = closed;
  if (!status.ok()) NoteNotStored(file->path());
  return status;
}

void Engine::RelieveArena() {
  for (const auto& file : Known()) file->RelieveArena();
}

std::vector<Status> Engine::DrainEach(Wait why) {
  std::vector<std::shared_ptr<File>> closing;
  {
    MutexLock lock(mutex_);
    closing = draining_;
    closing.insert(closing.end(), leaving_.begin(), leaving_.end());
    for (const auto& file : open_) {
      if (why == Wait::kExit) NoteLeftOpen(file->path());
    }
  }
  std::vector<Status> failures;
  std::vector<std::shared_ptr<File>> failed;
  for (const auto& file : closing) {
    Status status = file->WaitClosed(why);
    if (status.ok()) continue;
    failures.push_back(std::move(status));
    failed.push_back(file);
  }
  for (const auto& file : Known()) {
    if (std::find(failed.begin(), failed.end(), file) != failed.end()) continue;
    if (Status status = file->Drain(why); !status.ok()) failures.push_back(std::move(status));
  }
  return failures;
}

Status Engine::DrainAll(Wait why) {
  if (why == Wait::kExit) exiting_ = true;
  const std::vector<Status> failures = DrainEach(why);
  return failures.empty() ? Status() : failures.front();
}

std::vector<std::shared_ptr<File>> Engine::FilesAt(const char* path) {
  struct stat status;
  FileIdentity identity;
  if (path != nullptr && (stat(path, &status) != 0 || !Identify(status, identity))) return {};
  MutexLock lock(mutex_);
  std::vector<std::shared_ptr<File>> files;
  for (const auto* known : {&open_, &draining_, &leaving_}) {
    std::ranges::copy_if(*known, std::back_inserter(files), [&](const auto& file) {
      return path == nullptr || file->identity() == identity;
    });
  }
  return files;
}

Status Engine::DrainPath(const char* path) {
  struct stat status;
  FileIdentity identity;
  if (path == nullptr || stat(path, &status) != 0 || !Identify(status, identity)) return {};
  if (const std::shared_ptr<File> file = FindDraining(path); file != nullptr)
    return file->WaitClosed(Wait::kOpen);
  for (const auto& file : Known()) {
    if (file->identity() != identity) continue;
    if (Status drained = file->Drain(Wait::kOpen); !drained.ok()) return drained;
  }
  return {};
}

Status Engine::Shutdown() {
  to_shut_down.store(nullptr);
  series_.Forget();
  exiting_ = false;
  const std::vector<Status> failures = DrainEach(Wait::kExit);
  for (const Status& failure : failures) TellAtExit(failure);
  const Status status = failures.empty() ? Status() : failures.front();
  for (const auto& file : Known()) {
    if (!file->drained()) NoteNotStored(file->path());
  }
  chooser_->End(NowNs());
  if (Status written = WriteSummary(config_); !written.ok()) {
    std::fprintf(stderr, "tidelane: TIDELANE_SUMMARY: %s\n", written.Message().c_str());
  }
  if (!config_.trace.empty()) {
    if (Status written = WriteTrace(config_.trace); !written.ok())
      std::fprintf(stderr, "tidelane: TIDELANE_TRACE: %s\n", written.Message().c_str());
  }
  runs_.Keep();
  return status;
}

// fork copies memory and descriptors but no threads. Both sides must find whole files and free locks:
//   1. end reads and drain everything, so that no byte is on its way in two processes;
//   2. park the lanes, so that none is inside an allocator or a C library call;
//   3. take every lock in order, so that none is held by a thread that the child will not have;
//   4. release them on both sides; the child forgets its lanes, and the next write starts new ones.
void Engine::PrepareFork() TL_NO_ANALYSIS {
  Engine& engine = Get();
  for (const auto& file : engine.Known()) file->deferred_reads().AwaitAll();
  (void)engine.DrainAll(Wait::kOther);
  engine.lanes_.Pause();
  engine.mutex_.lock();
  engine.held_for_fork_ = engine.open_;
  engine.held_for_fork_.insert(engine.held_for_fork_.end(), engine.draining_.begin(),
                               engine.draining_.end());
  for (const auto& file : engine.held_for_fork_) file->LockForFork();
  engine.lanes_.LockForFork();
  engine.arena_.LockForFork();
  engine.chooser_->LockForFork();
}

void Engine::ParentAfterFork() TL_NO_ANALYSIS {
  Engine& engine = Get();
  engine.chooser_->UnlockAfterFork(false);
  engine.arena_.UnlockAfterFork();
  engine.lanes_.UnlockAfterFork();
  for (const auto& file : engine.held_for_fork_) file->UnlockAfterFork(false);
  engine.held_for_fork_.clear();
  engine.mutex_.unlock();
  engine.lanes_.Resume();
}

void Engine::ChildAfterFork() TL_NO_ANALYSIS {
  Engine& engine = Get();
  engine.chooser_->UnlockAfterFork(true);
  engine.arena_.UnlockAfterFork();
  engine.lanes_.ForgetThreadsAfterFork();
  engine.lanes_.UnlockAfterFork();
  engine.forked_ = true;
  for (const auto& file : engine.held_for_fork_) {
    file->UnlockAfterFork(true);
    FileSettings settings = file->settings();
    if (DeferNothing(settings)) file->SetSettings(settings);
  }
  engine.held_for_fork_.clear();
  engine.leaving_.clear();  // the lane that would have done it is not here
  engine.mutex_.unlock();
  ResetTraceAfterFork();
  ResetSummaryAfterFork();
}

}  // namespace tidelane
