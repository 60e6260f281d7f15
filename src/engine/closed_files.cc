#include "engine/closed_files.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <iterator>
#include <mutex>
#include <utility>

#include "base/counters.h"
#include "base/incidents.h"
#include "extent/test_hooks.h"
#include "publish/publication.h"
#include "publish/unpublished.h"

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

// Nothing is written through what it opens: what storage says of that is for the summary.
Status MayOpen(const char* path, int flags, const File& file) {
  const int fd = ::open(path, (flags & ~(O_TRUNC | O_CREAT | O_EXCL)) | O_CLOEXEC);
  if (fd < 0) return Status::Failed(errno, "open").At(path, 0, 0);
  struct stat status;
  const bool same = fstat(fd, &status) == 0 && IdentityIn(status) == file.identity();
  if (::close(fd) != 0) NoteError(Status::Failed(errno, "close").At(path, 0, 0));
  return same ? Status() : Status::Failed(ESTALE, "open").At(path, 0, 0);
}

void PrintAtExit(const Status& failure) {
  std::fprintf(stderr, "tidelane: at exit: %s\n", failure.Message().c_str());
}

FileTable::Files ClosedFiles::At(const char* path) {
  {
    MutexLock lock(registry_.mutex);
    if (registry_.files.closed() == 0) return {};
  }
  const FileName name = FileName::LeadsTo(path);
  MutexLock lock(registry_.mutex);
  return registry_.files.ClosedAt(name);
}

Status ClosedFiles::CloseClaimed(const std::shared_ptr<File>& file) {
  Status status = file->closing().CloseDevice();
  {
    MutexLock lock(registry_.mutex);
    registry_.files.Remove(file);
  }
  if (status.ok()) {
    ForgetNotStored(file->path());
  } else {
    std::fprintf(stderr, "tidelane: %s\n", status.Message().c_str());
  }
  return status;
}

void ClosedFiles::Stored(const std::shared_ptr<File>& file) {
  {
    MutexLock lock(registry_.mutex);
    if (!registry_.files.StartLeaving(file)) return;
  }
  (void)CloseClaimed(file);
}

void ClosedFiles::KeepLocked(const std::shared_ptr<File>& file, const CallContext& call) {
  registry_.files.StartDraining(file);
  // Still under the registry's lock: who finds the file there must find it closing.
  file->closing().Begin([this](const std::shared_ptr<File>& drained) { Stored(drained); }, call);
}

void ClosedFiles::GiveBack(const std::shared_ptr<File>& file, const CallContext& call) {
  MutexLock lock(registry_.mutex);
  KeepLocked(file, call);
}

Status ClosedFiles::MakeWayFor(const char* path) {
  for (const auto& file : At(path)) {
    if (Status status = MakeWayOf(path, file); !status.ok()) return status;
  }
  return {};
}

Status ClosedFiles::MakeWayOf(const char* path, const std::shared_ptr<File>& file) {
  // Of one that is not published yet nobody else's permissions count.
  if (file->traits().at_its_name) {
    if (Status may = MayOpen(path, O_RDWR, *file); !may.ok()) return may;
  }
  if (file->closing().WaitClosed(Wait::kOpen).ok()) return {};
  // Its contents are about to go anyway: what could not be stored of them need not stand in the way.
  {
    MutexLock lock(registry_.mutex);
    if (!registry_.files.StartLeaving(file)) return {};
  }
  file->GiveUp();
  (void)CloseClaimed(file);
  return {};
}

bool ClosedFiles::AwaitOldest(Wait why) {
  if (DropNameless(true)) return true;
  FileTable::Files closing;
  {
    MutexLock lock(registry_.mutex);
    closing = registry_.files.Closed();
  }
  return std::ranges::any_of(closing,
                             [why](const auto& file) { return file->closing().AwaitClosed(why); });
}

bool ClosedFiles::RoomForAnother() {
  const size_t most = MostClosed();
  const size_t each = Unpublished::Get().empty() ? 1 : Publication::kDescriptors;
  for (;;) {
    {
      MutexLock lock(registry_.mutex);
      if (registry_.files.closed() * each < most) return true;
    }
    if (!AwaitOldest(Wait::kClose)) return false;
  }
}

// Storage that is full asks without waiting: who forks holds the lock until nothing is on its way. (Once a file is claimed,
// a fork waits for its end.)
bool ClosedFiles::DropNameless(bool may_wait) TL_NO_ANALYSIS {
  std::unique_lock<std::mutex> lock(registry_.mutex.native(), std::defer_lock);
  if (may_wait) {
    lock.lock();
  } else if (!lock.try_lock()) {
    return false;
  }
  FileTable::Files given_up;
  std::ranges::copy_if(
      registry_.files.draining(), std::back_inserter(given_up),
      [](const auto& file) { return file->drainer().stuck() && file->nameless(); });
  for (const auto& file : given_up) registry_.files.StartLeaving(file);
  lock.unlock();
  for (const auto& file : given_up) {
    file->GiveUp();
    (void)CloseClaimed(file);
  }
  return !given_up.empty();
}

std::shared_ptr<File> ClosedFiles::BeingClosed() const {
  if (!registry_.files.leaving().empty()) return registry_.files.leaving().front();
  const auto& draining = registry_.files.draining();
  const auto it = std::ranges::find_if(
      draining, [](const auto& file) { return file->closing().being_closed(); });
  return it == draining.end() ? nullptr : *it;
}

Status ClosedFiles::Close(const std::shared_ptr<File>& file, const CallContext& call,
                          bool exiting) {
  CallScope* const scope = call.scope();
  // HDF5 opens a file that it is to create, or is asked about, and closes it again: that changes nothing.
  if (scope != nullptr && scope->adopted() == file.get()) {
    scope->SetAdopted(nullptr);
    GiveBack(file, call);
    return {};
  }
  // A deferred file may be taken over by who opens it for writing: one that cannot be written is not kept for its reads.
  const bool reading = file->writable() && file->reads().deferred_reads().any();
  // What failed is not waited for: the VOL face tells what is known before it comes here, when the close can still be repeated.
  bool deferred = file->closing().MayBegin(call) && (!file->drainer().drained() || reading);
  if (deferred) deferred = RoomForAnother();
  if (MutationEnabled("publish")) static_cast<void>(file->closing().PublishNow());
  Status status;
  if (!deferred) status = file->drainer().Drain(Wait::kClose);
  // What could not be stored is not thrown away: the file stays, as a deferred one, for whoever tries again.
  const bool kept = deferred || !file->drainer().drained();
  {
    MutexLock lock(registry_.mutex);
    if (kept) {
      if (deferred) Count(Counter::kClosesDeferred);
      KeepLocked(file, call);
    } else {
      registry_.files.Remove(file);
    }
  }
  if (kept) {
    if (scope != nullptr && !status.ok()) scope->Keep(file);
    return status;
  }
  const Status closed = file->closing().CloseDevice();
  // HDF5 closes what a program left open, and looks at no result: nobody else would say it.
  if (!closed.ok() && exiting) PrintAtExit(closed);
  if (status.ok()) status = closed;
  if (!status.ok()) NoteNotStored(file->path());
  return status;
}

}  // namespace tidelane
