#include "engine/engine.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <new>

#include "base/counters.h"
#include "base/incidents.h"
#include "base/notices.h"
#include "base/processors.h"
#include "base/report.h"
#include "base/summary.h"
#include "base/trace.h"
#include "codec/deflate.h"
#include "device/claim.h"
#include "engine/roomy_device.h"
#include "engine/store_choice.h"
#include "extent/test_hooks.h"
#include "model/history_key.h"
#include "publish/names.h"
#include "publish/published_device.h"

namespace tidelane {
namespace {

// How often a name may come to mean another file while it is opened.
constexpr int kMostSwaps = 16;

// What the ranks of another program hold of a file is not awaited longer by who opens it.
constexpr auto kLongestForRanks = std::chrono::seconds(10);

// What waiting for closed files may help against: they hold descriptors, and memory.
bool RanOut(int error) { return error == EMFILE || error == ENFILE || error == ENOMEM; }

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

// Measured (docs/decisions/0018-mpi.md).
constexpr int kNicenessAmongRanks = 5;

constinit std::atomic<Engine*> made{nullptr};

// Set while files were opened that no Shutdown has seen the end of.
constinit std::atomic<Engine*> to_shut_down{nullptr};

constinit std::atomic<void (*)()> before_exit{nullptr};

// HDF5 lets a connector end only when nothing refers to it, which is not so after a failed close or H5dont_atexit: then
// nobody else would store what is left, or say what happened. Comes after all of the program's exit handlers.
__attribute__((destructor)) void ShutDownAtExit() {
  Engine* const engine = to_shut_down.load();
  if (engine == nullptr) return;
  if (auto* const work = before_exit.load(); work != nullptr) work();
  (void)engine->Shutdown();
}

}  // namespace

void SetBeforeExit(void (*work)()) { before_exit.store(work); }

// Forked processes end with _exit as a rule (Python's workers always do), which stores nothing: their flushes and closes
// wait, whatever the settings say. Whether that changed anything.
bool Engine::DeferNothing(FileSettings& settings) {
  const bool deferred = settings.close_deferred || settings.flush_deferred;
  settings.close_deferred = settings.flush_deferred = false;
  return deferred;
}

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
      staging_(arena_.cap() / 2),
      lanes_(config_.lanes_for_all()),
      cost_model_(std::make_shared<model::CostModel>(
          model::CostModel::Times{.ranks = model::RanksOfJob(), .start_ns = NowNs()})),
      forked_(!config_.forked_defers && IsForkedProcess()) {
#ifdef TIDELANE_BREAK
  enabled_mutations = config_.test_break;
#endif
  lanes_.SetMostComputing([this] { return FilterLanes(); });
  // A rank that is late keeps the others waiting, who may wait busily.
  if (model::RanksOfJob() > 1) lanes_.SetNiceness(kNicenessAmongRanks);
  lanes_.SetIdleWork([this] {
    return arena_.GrowAhead() ? std::chrono::nanoseconds::zero() : arena_.Trim(NowNs());
  });
  if (!config_.trace.empty()) EnableTrace();
  RecordWaits(!config_.summary.empty() || !config_.trace.empty());
  CountMax(Counter::kArenaCapBytes, arena_.cap());
  pthread_atfork(&Engine::PrepareFork, &Engine::ParentAfterFork, &Engine::ChildAfterFork);
}

unsigned Engine::FilterLanes() const {
  if (config_.lanes != 0) return config_.lanes;
  static const unsigned processors = std::min(ProcessorsForLanes(), kMostLanes);
  return std::max(processors, kLanes);
}

FileTable::Files Engine::Known() {
  MutexLock lock(registry_.mutex);
  return registry_.files.Known();
}

FileSettings Engine::SettingsForOpening(const CallContext& call) const {
  const FileSettings* own = call.file_settings();
  FileSettings settings = own == nullptr ? config_ : *own;
  if (forked_ && DeferNothing(settings)) Count(Fallback::kForked);
  return settings;
}

// Before the first large write there is no pause to tell from this, and no reason to ask for the time.
void Engine::NoteBuffered() {
  model::Pauses& pauses = cost_model_->pauses();
  if (pauses.last_end_ns() != 0) pauses.Buffered(NowNs());
}

FileEnvironment Engine::EnvironmentOfFiles() {
  return {.config = config_,
          .arena = arena_,
          .lanes = lanes_,
          .relieve_arena = [this] { RelieveArena(); },
          .cost_model = cost_model_,
          .wrote_through = [this](uint64_t bytes) { arena_prefault_->WroteThrough(bytes); },
          .prefetch_budget = prefetch_budget_,
          .make_store = DirectStoreOn};  // store_choice.h may choose another
}

std::unique_ptr<Device> Engine::DeviceOf(int fd) {
  return std::make_unique<RoomyDevice>(MakePosixDevice(fd),
                                       [this] { return closed_.DropNameless(false); });
}

// Readers that are to follow a file from its first byte on must see it.
bool Engine::MayPublish(const FileSettings& settings, const char* path,
                        const OpenOptions& options) {
  if (!settings.publish_atomic || !options.swmr) return settings.publish_atomic;
  if ((options.flags & O_CREAT) != 0) {
    Count(Fallback::kPublishSwmr);
    NoteNative(Fallback::kPublishSwmr, path);
  }
  return false;
}

Status Engine::OpenNew(const char* path, const OpenOptions& options, std::shared_ptr<File>& file,
                       const CallContext& call) {
  FileSettings settings = SettingsForOpening(call);
  if (options.home) {
    settings.close_in_tier = settings.close_deferred = false;
    settings.journal = Journal::kOff;
  }
  StoreChoice choice(path, (options.flags & O_TRUNC) != 0, settings, config_);
  OpenedName opened;
  if (Status status = OpenByName(path, options.flags, options.mode,
                                 MayPublish(settings, path, options), opened);
      !status.ok())
    return status;
  const bool hidden = opened.publication != nullptr;
  if (hidden) WatchExit(options.opener);
  struct stat status;
  if (fstat(opened.file.get(), &status) != 0)
    return Status::Failed(errno, "inspect").At(path, 0, 0);
  std::unique_ptr<Device> device = DeviceOf(opened.file.Release());
  if (hidden) {
    device = std::make_unique<PublishedDevice>(std::move(device), std::move(opened.publication),
                                               path, (options.flags & O_CREAT) != 0);
  }
  const bool writable = (options.flags & O_ACCMODE) != O_RDONLY;
  FileEnvironment environment = EnvironmentOfFiles();
  if (Status chosen = choice.Make(writable, hidden, options.swmr, status, *device, environment);
      !chosen.ok())
    return chosen;
  file = std::make_shared<File>(std::move(environment), std::move(device), IdentityIn(status), path,
                                writable, FileTraits{.at_its_name = !hidden});
  Count(Counter::kFilesOpened);
  if (writable) runs_.Recall(status.st_dev);
  file->SetSettings(settings);
  if (options.swmr) return file->WriteThrough(Fallback::kSwmrWrite);
  if (settings.mode == Mode::kSync) return file->WriteThrough(Fallback::kModeSync);
  if (writable && !hidden) {
    if (IdentityAt(path) != file->identity()) return file->WriteThrough(Fallback::kUnstableInode);
  }
  return {};
}

FileTable::Opener Engine::OpenerOf(const OpenOptions& options, const CallContext& call) {
  const bool inside = !call.is_flush_of_open();
  if (inside) any_inside_ = true;
  return {options.opener, inside};
}

Status Engine::Adopt(const char* path, const OpenOptions& options, std::shared_ptr<File>& file,
                     const CallContext& call) {
  std::shared_ptr<File> draining;
  {
    const FileName name = FileName::LeadsTo(path);
    MutexLock lock(registry_.mutex);
    draining = registry_.files.DrainingAt(name);
  }
  if (draining == nullptr || MutationEnabled("adopt")) return {};
  if (draining->traits().at_its_name) {  // what is not published yet is nobody else's
    if (Status may = MayOpen(path, options.flags, *draining); !may.ok()) return may;
  }
  // Where no lock keeps others out, the mark must be on storage when the open returns, and no older one come after it.
  if (!draining->locked() && draining->closing().WaitClosed(Wait::kOpen).ok()) return {};
  {
    MutexLock lock(registry_.mutex);
    if (!registry_.files.Reopen(draining, OpenerOf(options, call))) return {};
  }
  Count(Counter::kFilesAdopted);
  draining->SetSettings(SettingsForOpening(call));
  const bool sync = draining->settings().mode == Mode::kSync;
  Status status;
  if (options.swmr || sync)
    status = draining->WriteThrough(options.swmr ? Fallback::kSwmrWrite : Fallback::kModeSync);
  if (!status.ok()) {  // nobody will close what was not opened: it stays what it was
    closed_.GiveBack(draining, call);
    return status;
  }
  if (call.scope() != nullptr) call.scope()->SetAdopted(draining.get());
  file = draining;
  return {};
}

void Engine::DrainForAnother(const char* path, int opener) {
  {
    MutexLock lock(registry_.mutex);
    if (registry_.files.OnlyBy(opener)) return;
  }
  const FileName name = FileName::LeadsTo(path);
  for (const auto& known : Known()) {
    if (name.IsInodeOf(*known)) (void)known->drainer().Drain(Wait::kOpen);
  }
}

Status Engine::Open(const char* path, const OpenOptions& options, std::shared_ptr<File>& file,
                    const CallContext& call) {
  to_shut_down.store(this);
  refused_closes_.DropNameless(options.opener);
  (void)closed_.DropNameless();
  for (int swapped = 0;;) {
    Status status;
    try {
      status = OpenOnce(path, options, file, call);
    } catch (const std::bad_alloc&) {
      status = Status::Failed(ENOMEM, "open").At(path, 0, 0);
    }
    if (status.ok()) return status;
    file = nullptr;
    // Its name went to another file between two looks (or a server of files says so, again and again), or what is
    // missing may come back.
    const bool again = status.code() == ESTALE
                           ? ++swapped < kMostSwaps
                           : RanOut(status.code()) && closed_.AwaitOldest(Wait::kOpen);
    if (!again) return status;
  }
}

// Programs whose ranks share the file take no lock of it: what they have written is there for who opens it, as natively. But who only
// looks at the file of a program that was stopped is not stopped with it.
void Engine::AwaitRanks(const FileIdentity& identity) {
  if (MutationEnabled("ranks_outside")) return;
  const auto table = DirtyRangeTable::Watch(identity, TableFile::Missing::kLeave);
  if (table == nullptr || !table->OthersHold(0, UINT64_MAX)) return;
  const Waiting waiting(Wait::kOpen);
  static_cast<void>(table->AwaitOthers(0, UINT64_MAX, DirtyRangeTable::Whose::kOthers,
                                       DirtyRangeTable::Clock::now() + kLongestForRanks));
}

Status Engine::OpenOnce(const char* path, const OpenOptions& options, std::shared_ptr<File>& file,
                        const CallContext& call) {
  if ((options.flags & O_TRUNC) != 0) {
    if (Status status = closed_.MakeWayFor(path); !status.ok()) return status;
  } else if ((options.flags & O_EXCL) == 0) {
    if (Status status = Adopt(path, options, file, call); !status.ok() || file != nullptr)
      return status;
  }
  // It may just have finished: its lock must be gone before ours is tried.
  for (const auto& closed : closed_.At(path)) (void)closed->closing().WaitClosed(Wait::kOpen);
  DrainForAnother(path, options.opener);
  if (Status status = OpenNew(path, options, file, call); !status.ok()) return status;
  AwaitRanks(file->identity());
  // Where it is open already, HDF5 goes on with that, and reads it as storage has it now.
  FileTable::Files same;
  bool of_ranks = false;
  {
    MutexLock lock(registry_.mutex);
    same = registry_.files.OpenAs(file->identity());
    of_ranks = std::ranges::any_of(registry_.files.OpenAs(file->identity(), FileTable::By::kRanks),
                                   [](const auto& known) { return known->writable(); });
  }
  for (const auto& known : same) {
    known->reads().Forget();
    if (file->writable() && known->traits().kept_unlocked)
      KeepNothing(*known, Fallback::kMpiWritten);
  }
  // Ranks write it without a lock: nothing that is read may be kept.
  if (of_ranks) (void)file->WriteThrough(Fallback::kMpiTwice);
  if ((options.flags & O_ACCMODE) == O_RDONLY && !file->writes_through()) series_.Opened(*file);
  const FileTable::Opener opener = OpenerOf(options, call);
  MutexLock lock(registry_.mutex);
  if (opener.inside) registry_.files.NoteInside(file->identity(), opener.number);
  registry_.files.AddOpen(file, opener);
  return {};
}

Status Engine::Close(const std::shared_ptr<File>& file, const CallContext& call) {
  series_.Closing(*file);
  if (!file->traits().at_its_name) {
    // HDF5 closes inside its own open what it could not make; but also what it only compares with others.
    const bool adopted = call.scope() != nullptr && call.scope()->adopted() == file.get();
    if (call.is_flush_of_open() && !adopted) file->closing().Withhold(Withholding::kNotCreated);
    if (ExitsByError()) file->closing().Withhold(Withholding::kLeftOpen);
  }
  return closed_.Close(file, call, exiting_);
}

Status Engine::OpenShared(const char* path, const char* shown, std::shared_ptr<File>& file,
                          const CallContext& call) {
  to_shut_down.store(this);
  (void)DrainPath(path);  // what is lost of another file by this name is that one's to tell
  const int fd = ::open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return Status::Failed(errno, "open").At(path, 0, 0);
  std::unique_ptr<Device> device = DeviceOf(fd);
  struct stat status;
  if (fstat(fd, &status) != 0 || IdentityAt(path) != IdentityIn(status))
    return Status::Failed(EINVAL, "share").At(path, 0, 0);
  file = std::make_shared<File>(EnvironmentOfFiles(), std::move(device), IdentityIn(status), shown,
                                true, kSharedFile);
  Count(Counter::kFilesOpened);
  const FileSettings settings = SettingsForOpening(call);
  if (settings.journal != Journal::kOff) {
    Count(Fallback::kJournalMpi);
    NoteNative(Fallback::kJournalMpi, shown);
  }
  file->SetSettings(settings);
  FileTable::Files same;
  {
    MutexLock lock(registry_.mutex);
    same = registry_.files.OpenAs(file->identity());
    registry_.files.AddOpen(file, std::nullopt);
  }
  for (const auto& known : same) {
    if (known->traits().kept_unlocked) {
      KeepNothing(*known, Fallback::kMpiWritten);
    } else if (!known->traits().others_write) {
      (void)known->WriteThrough(Fallback::kMpiTwice);
    }
  }
  return {};
}

Status Engine::OpenForRanksToRead(const char* path, const char* shown, std::shared_ptr<File>& file,
                                  const CallContext& call) {
  to_shut_down.store(this);
  (void)DrainPath(path);
  const int fd = OpenAfterMove(AT_FDCWD, path, O_RDONLY);
  if (fd < 0) return Status::Failed(errno, "open").At(path, 0, 0);
  std::unique_ptr<Device> device = DeviceOf(fd);
  struct stat status;
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || IdentityAt(path) != IdentityIn(status))
    return Status::Failed(EINVAL, "share").At(path, 0, 0);
  file = std::make_shared<File>(EnvironmentOfFiles(), std::move(device), IdentityIn(status), shown,
                                false, kReadByRanks);
  {
    MutexLock lock(registry_.mutex);
    if (std::ranges::any_of(registry_.files.OpenAs(file->identity()),
                            [](const auto& known) { return known->writable(); })) {
      file = nullptr;
      return Status::Failed(EBUSY, "share").At(path, 0, 0);
    }
    registry_.files.AddOpen(file, std::nullopt);
  }
  Count(Counter::kFilesOpened);
  file->SetSettings(SettingsForOpening(call));
  series_.Opened(*file);
  file->reads().CheckTakenOver();
  return {};
}

std::vector<Status> Engine::DrainEach(Wait why) {
  (void)closed_.DropNameless();
  FileTable::Files closing;
  {
    MutexLock lock(registry_.mutex);
    closing = registry_.files.Closed();
    for (const auto& file : registry_.files.open()) {
      if (why == Wait::kExit) NoteLeftOpen(file->path());
    }
  }
  std::vector<Status> failures;
  std::vector<std::shared_ptr<File>> failed;
  for (const auto& file : closing) {
    Status status = file->closing().WaitClosed(why);
    if (status.ok()) continue;
    failures.push_back(std::move(status));
    failed.push_back(file);
  }
  for (const auto& file : Known()) {
    if (std::find(failed.begin(), failed.end(), file) != failed.end()) continue;
    if (Status status = file->drainer().Drain(why); !status.ok())
      failures.push_back(std::move(status));
  }
  return failures;
}

Status Engine::DrainAll(Wait why) {
  if (why == Wait::kExit) {
    exiting_ = true;
    lanes_.Stay(true);
  }
  const std::vector<Status> failures = DrainEach(why);
  return failures.empty() ? Status() : failures.front();
}

Status Engine::DrainInside(int opener, Wait why) {
  if (!any_inside_.load(std::memory_order_relaxed)) return {};
  FileTable::Files inside;
  {
    MutexLock lock(registry_.mutex);
    inside = registry_.files.Inside(opener);
  }
  Status first;
  for (const auto& file : inside) {
    Status status = file->drainer().Drain(why);
    if (first.ok()) first = std::move(status);
  }
  return first;
}

bool Engine::OpenedInside(const File& file) {
  if (!any_inside_.load(std::memory_order_relaxed)) return false;
  MutexLock lock(registry_.mutex);
  return registry_.files.IsInside(file);
}

Status Engine::DrainPath(const char* path) {
  for (const auto& closed : closed_.At(path)) {
    if (Status status = closed->closing().WaitClosed(Wait::kOpen); !status.ok()) return status;
  }
  const std::optional<FileIdentity> identity = IdentityBehind(path);
  for (const auto& file : Known()) {
    if (identity != file->identity()) continue;
    if (Status drained = file->drainer().Drain(Wait::kOpen); !drained.ok()) return drained;
  }
  return {};
}

FileTable::Files Engine::FilesAt(const char* path) {
  if (path == nullptr) {
    MutexLock lock(registry_.mutex);
    return registry_.files.All();
  }
  const FileName name = FileName::LeadsTo(path);
  MutexLock lock(registry_.mutex);
  return registry_.files.At(name);
}

Status Engine::Shutdown() {
  to_shut_down.store(nullptr);
  series_.Forget();
  exiting_ = false;
  lanes_.Stay(true);
  const std::vector<Status> failures = DrainEach(Wait::kExit);
  for (const Status& failure : failures) PrintAtExit(failure);
  const Status status = failures.empty() ? Status() : failures.front();
  for (const auto& file : Known()) {
    if (!file->drainer().drained()) NoteNotStored(file->path());
  }
  lanes_.Stay(false);
  cost_model_->End(NowNs());
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

void Engine::RelieveArena() {
  for (const auto& file : Known()) file->writes().RelieveArena();
}

}  // namespace tidelane
