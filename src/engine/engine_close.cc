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

FileTable::Files Engine::ClosedAt(const char* path) {
  {
    MutexLock lock(mutex_);
    if (files_.closed() == 0) return {};
  }
  const FileName name = FileName::LeadsTo(path);
  MutexLock lock(mutex_);
  return files_.ClosedAt(name);
}

Status Engine::CloseClaimed(const std::shared_ptr<File>& file) {
  Status status = file->CloseDevice();
  {
    MutexLock lock(mutex_);
    files_.Remove(file);
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
    if (!files_.StartLeaving(file)) return {};
  }
  return CloseClaimed(file);
}

void Engine::Finish(const std::shared_ptr<File>& file) { (void)Retire(file); }

void Engine::KeepClosedLocked(const std::shared_ptr<File>& file, const CallContext& call) {
  files_.StartDraining(file);
  // Still under the registry's lock: who finds the file there must find it closing.
  file->DrainInBackground([this](const std::shared_ptr<File>& drained) { Finish(drained); }, call);
}

void Engine::GiveBack(const std::shared_ptr<File>& file, const CallContext& call) {
  MutexLock lock(mutex_);
  KeepClosedLocked(file, call);
}

Status Engine::MakeWayFor(const char* path) {
  for (const auto& file : ClosedAt(path)) {
    if (Status status = MakeWayOf(path, file); !status.ok()) return status;
  }
  return {};
}

Status Engine::MakeWayOf(const char* path, const std::shared_ptr<File>& file) {
  if (Status may = MayOpen(path, O_RDWR, *file); !may.ok()) return may;
  if (file->WaitClosed(Wait::kOpen).ok()) return {};
  // Its contents are about to go anyway: what could not be stored of them need not stand in the way.
  {
    MutexLock lock(mutex_);
    if (!files_.StartLeaving(file)) return {};
  }
  file->GiveUp();
  (void)CloseClaimed(file);
  return {};
}

bool Engine::AwaitOldest(Wait why) {
  if (DropNameless(true)) return true;
  FileTable::Files closing;
  {
    MutexLock lock(mutex_);
    closing = files_.Closed();
  }
  return std::ranges::any_of(closing, [why](const auto& file) { return file->AwaitClosed(why); });
}

bool Engine::RoomForAnother() {
  const size_t most = MostClosed();
  for (;;) {
    {
      MutexLock lock(mutex_);
      if (files_.closed() < most) return true;
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
  FileTable::Files given_up;
  std::ranges::copy_if(files_.draining(), std::back_inserter(given_up),
                       [](const auto& file) { return file->stuck() && file->nameless(); });
  for (const auto& file : given_up) files_.StartLeaving(file);
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
      files_.Remove(file);
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
