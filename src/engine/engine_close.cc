// What becomes of files that the program has closed: how many may be on their way to storage, who gives way to whom, and which are
// given up.
//
// A closed file costs a descriptor and memory until it is stored. So only a share of the descriptors may be held by closed files, who
// finds none left waits for the oldest, and what cannot be stored is dropped where nobody can miss it: where the file has no name.
#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <mutex>
#include <utility>

#include "base/counters.h"
#include "base/incidents.h"
#include "engine/engine.h"

namespace tidelane {
namespace {

// Of the descriptors that this process may have, closed files hold one in so many; the rest is the program's.
constexpr rlim_t kShareOfDescriptors = 4;
constexpr rlim_t kMostClosed = 1024;  // where there is hardly a limit

size_t MostClosed() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kMostClosed;
  return std::clamp<rlim_t>(limit.rlim_cur / kShareOfDescriptors, 1, kMostClosed);
}

}  // namespace

std::shared_ptr<File> Engine::FindDraining(const char* path) {
  {
    MutexLock lock(mutex_);
    if (draining_.empty() && leaving_.empty()) return nullptr;
  }
  FileIdentity identity;
  if (!IdentityOf(path, identity)) return nullptr;
  MutexLock lock(mutex_);
  for (const auto* files : {&draining_, &leaving_}) {
    const auto it = std::find_if(files->begin(), files->end(),
                                 [&](const auto& file) { return file->identity() == identity; });
    if (it != files->end()) return *it;
  }
  return nullptr;
}

bool Engine::ClaimLocked(const std::shared_ptr<File>& file) {
  const auto it = std::find(draining_.begin(), draining_.end(), file);
  if (it == draining_.end()) return false;  // adopted, or somebody else was faster
  leaving_.push_back(file);                 // still found by who opens it: its lock is not gone yet
  draining_.erase(it);
  return true;
}

Status Engine::CloseClaimed(const std::shared_ptr<File>& file) {
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

Status Engine::Retire(const std::shared_ptr<File>& file) {
  {
    MutexLock lock(mutex_);
    if (!ClaimLocked(file)) return {};
  }
  return CloseClaimed(file);
}

void Engine::Finish(const std::shared_ptr<File>& file) { (void)Retire(file); }

void Engine::KeepClosedLocked(const std::shared_ptr<File>& file, const CallContext& call) {
  draining_.push_back(file);
  std::erase(open_, file);
  openers_.erase(file.get());
  // Still under the registry's lock: who finds the file there must find it closing.
  file->DrainInBackground([this](const std::shared_ptr<File>& drained) { Finish(drained); }, call);
}

void Engine::GiveBack(const std::shared_ptr<File>& file, const CallContext& call) {
  MutexLock lock(mutex_);
  KeepClosedLocked(file, call);
}

Status Engine::MakeWayFor(const char* path) {
  const std::shared_ptr<File> file = FindDraining(path);
  if (file == nullptr) return {};
  if (Status may = MayOpen(path, O_RDWR, *file); !may.ok()) return may;
  Status status = file->WaitClosed(Wait::kOpen);
  if (status.ok()) return {};
  // Its contents are about to go anyway: what could not be stored of them need not stand in the way.
  {
    MutexLock lock(mutex_);
    if (!ClaimLocked(file)) return {};
  }
  file->GiveUp();
  (void)CloseClaimed(file);
  return {};
}

bool Engine::AwaitOldest(Wait why) {
  if (DropNameless(true)) return true;
  std::vector<std::shared_ptr<File>> closing;
  {
    MutexLock lock(mutex_);
    closing = leaving_;
    closing.insert(closing.end(), draining_.begin(), draining_.end());
  }
  return std::ranges::any_of(closing, [why](const auto& file) { return file->AwaitClosed(why); });
}

bool Engine::RoomForAnother() {
  const size_t most = MostClosed();
  for (;;) {
    {
      MutexLock lock(mutex_);
      if (draining_.size() + leaving_.size() < most) return true;
    }
    if (!AwaitOldest(Wait::kClose)) return false;
  }
}

// Storage that is full asks without waiting: who forks holds the lock until nothing is on its way. (Once a file is claimed,
// a fork waits for its end.)
bool Engine::DropNameless(bool may_wait) TL_NO_ANALYSIS {
  std::unique_lock<std::mutex> lock(mutex_.native(), std::defer_lock);
  if (may_wait) {
    lock.lock();
  } else if (!lock.try_lock()) {
    return false;
  }
  std::vector<std::shared_ptr<File>> given_up;
  std::ranges::copy_if(draining_, std::back_inserter(given_up),
                       [](const auto& file) { return file->stuck() && file->nameless(); });
  leaving_.reserve(leaving_.size() + given_up.size());
  for (const auto& file : given_up) ClaimLocked(file);
  lock.unlock();
  for (const auto& file : given_up) {
    file->GiveUp();
    (void)CloseClaimed(file);
  }
  return !given_up.empty();
}

Status Engine::Close(const std::shared_ptr<File>& file, const CallContext& call) {
  series_.Closing(*file);
  CallScope* const scope = call.scope();
  // HDF5 opens a file that it is to create, or is asked about, and closes it again: that changes nothing.
  if (scope != nullptr && scope->adopted() == file.get()) {
    scope->SetAdopted(nullptr);
    GiveBack(file, call);
    return {};
  }
  // A deferred file may be taken over by who opens it for writing: one that cannot be written is not kept for its reads.
  const bool reading = file->writable() && file->deferred_reads().any();
  // What failed is not waited for: the VOL face tells what is known before it comes here, when the close can still be repeated.
  bool deferred = file->CloseMayBeDeferred(call) && (!file->drained() || reading);
  if (deferred) deferred = RoomForAnother();
  Status status;
  if (!deferred) status = file->Drain(Wait::kClose);
  // What could not be stored is not thrown away: the file stays, as a deferred one, for whoever tries again.
  const bool kept = deferred || !file->drained();
  {
    MutexLock lock(mutex_);
    if (kept) {
      if (deferred) Count(Counter::kClosesDeferred);
      KeepClosedLocked(file, call);
    } else {
      std::erase(open_, file);
      openers_.erase(file.get());
    }
  }
  if (kept) {
    if (scope != nullptr && !status.ok()) scope->Keep(file);
    return status;
  }
  const Status closed = file->CloseDevice();
  // HDF5 closes what a program left open, and looks at no result: nobody else would say it.
  if (!closed.ok() && exiting_) PrintAtExit(closed);
  if (status.ok()) status = closed;
  if (!status.ok()) NoteNotStored(file->path());
  return status;
}

}  // namespace tidelane
