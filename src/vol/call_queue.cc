#include "vol/call_queue.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <thread>
#include <utility>

#include "base/activity.h"
#include "base/trace.h"
#include "extent/test_hooks.h"
#include "h5/error.h"
#include "vol/call_inside.h"
#include "vol/find_file.h"
#include "vol/fork.h"
#include "vol/work_holders.h"

namespace tidelane::vol {

namespace {

// Who waits for lanes, but not for ever, looks again after that.
constexpr auto kLook = std::chrono::microseconds(100);
// For messages, where no piece of work says it better.
constexpr const char* kWork = "do what was left for HDF5";

}  // namespace

CallQueue& CallQueue::Of(LibraryState& library) {
  if (library.call_queue == nullptr) library.call_queue = new CallQueue(library);
  return *library.call_queue;
}

void CallQueue::NotePending() {
  library_.NoteWork(LibraryState::kCalls, !queue_.empty() || troubled());
}

// Whatever may run short of memory does so here: what is in the queue can be done, or kept as failed.
void CallQueue::Add(std::unique_ptr<CallWork> work) {
  const size_t pieces = queue_.size() + failed_.size() + 1;
  if (failed_.capacity() < pieces) failed_.reserve(2 * pieces);
  queue_.push_back(std::move(work));
  try {
    NoteWorkHeld(library_.slot, queue_.back()->file, queue_.back()->closes());
  } catch (const std::bad_alloc&) {
    queue_.pop_back();
    throw;
  }
  NoteWriter();
  NotePending();
}

void CallQueue::NoteWriter() {
  WatchEnds();
  writer_ = pthread_self();
}

bool CallQueue::Fails(const File& file) const {
  return std::ranges::any_of(failed_, [&](const auto& work) { return work->file.get() == &file; });
}

bool CallQueue::Has(const File& file) const {
  const auto for_file = [&](const auto& work) { return work->file.get() == &file; };
  return std::ranges::any_of(queue_, for_file) || std::ranges::any_of(failed_, for_file);
}

void CallQueue::NoteLate(const std::shared_ptr<File>& file, const char* what) {
  late_errors_.Note(file, what);
}

// With the default transfer list, and out of sight of a call that has another one. False: it did not run.
template <typename Work>
bool CallQueue::DoAside(hid_t dxpl, Work work) {
  const bool ran = Aside(library_, dxpl, work);
  NotePending();
  return ran;
}

bool CallQueue::IsReady() const {
  return !queue_.empty() && queue_.front()->ready() && Randomized(true);
}

void CallQueue::DoReadyHere() {
  if (!IsReady()) return;
  const h5::KeepErrorStack keep(library_.hdf5());
  while (IsReady()) DoOldest();
  NotePending();
}

void CallQueue::DoReady(hid_t dxpl) {
  if (!IsReady()) return;
  static_cast<void>(DoAside(dxpl, [this] { DoReadyHere(); }));  // else one of the next calls
}

void CallQueue::DoAllHere() {
  if (queue_.empty()) return;
  const h5::KeepErrorStack keep(library_.hdf5());
  while (!queue_.empty()) DoOldest();
}

// While a lane prepares the oldest one, this thread prepares others that nobody has begun.
void CallQueue::FinishOldest() {
  CallWork& oldest = *queue_.front();
  if (oldest.ready()) return;
  const Waiting waiting(Wait::kFilter, oldest.bytes());
  for (const std::unique_ptr<CallWork>& work : queue_) {
    if (oldest.ready()) return;
    work->Help();
  }
  oldest.Await();
}

void CallQueue::DoOldest() {
  FinishOldest();
  std::unique_ptr<CallWork> work = std::move(queue_.front());
  queue_.pop_front();
  if (work->unwanted()) return Drop(*work);
  const bool in_line = Fails(*work->file);
  if (work->Do(in_line ? CallWork::Attempt::kBehindFailed : CallWork::Attempt::kFirst))
    return Drop(*work);
  failed_.push_back(std::move(work));
  NotePending();  // a callback of the program's may have settled meanwhile, and found nothing
  if (in_line) return;
  // To be told even if a second attempt succeeds: HDF5 may have lost something else (dividing a node of its index, say).
  late_errors_.Note(failed_.back()->file, failed_.back()->what(CallWork::Attempt::kFirst));
}

bool CallQueue::DoUntil(const std::function<bool()>& enough, uint64_t timeout_ns) {
  const bool for_ever = timeout_ns == UINT64_MAX;
  const uint64_t begin_ns = NowNs();
  const auto work = [&] {
    while (!enough() && !queue_.empty()) {
      if (for_ever) {
        DoOldest();
        continue;
      }
      DoReadyHere();
      if (enough() || queue_.empty() || NowNs() - begin_ns >= timeout_ns) break;
      std::this_thread::sleep_for(kLook);
    }
  };
  const bool ran = Enter(library_, work);
  NotePending();
  return ran;
}

// It is done, or never will be.
void CallQueue::Drop(CallWork& work) {
  NoteWorkGone(library_.slot, work.file);
  work.Gone();
}

bool CallQueue::DoAll(void* object, H5I_type_t type, hid_t dxpl) {
  if (!DoAside(dxpl, [this] { DoAllHere(); })) {
    const char* const what =
        queue_.empty() ? kWork : queue_.front()->what(CallWork::Attempt::kAgain);
    h5::PushError(library_.hdf5(), Status::Failed(ENOMEM, what));
    return false;
  }
  if (!AnyCallWork(library_) || object == nullptr) return true;
  const std::shared_ptr<File> file = FileOf(library_, object, type);
  if (file == nullptr) return true;
  bool all = false;
  const char* what = kWork;
  const auto retry = [&] { all = Retry(*file, what); };
  if (!DoAside(dxpl, retry) || !all)
    h5::PushError(library_.hdf5(), Status::Failed(EIO, what).At(file->path(), 0, 0));
  const bool late = late_errors_.Tell(library_.hdf5(), *file);
  NotePending();
  return all && !late;
}

// What HDF5 says of it stays on the error stack.
bool CallQueue::Retry(const File& file, const char*& what) {
  size_t kept = 0;
  bool all = true;
  for (std::unique_ptr<CallWork>& work : failed_) {
    const bool ours = work->file.get() == &file;
    if (ours && all && work->Do(CallWork::Attempt::kAgain)) {
      Drop(*work);
    } else {
      if (ours && all) what = work->what(CallWork::Attempt::kAgain);
      all = all && !ours;
      std::swap(failed_[kept++], work);
    }
  }
  failed_.resize(kept);
  return all;
}

void CallQueue::FinishAllOf(const File& file) {
  const h5::KeepErrorStack keep(library_.hdf5());
  const auto waits = [&] {
    return std::ranges::any_of(queue_, [&](const auto& work) { return work->file.get() == &file; });
  };
  while (waits()) DoOldest();
  const char* what = kWork;  // has been noted
  static_cast<void>(Retry(file, what));
  NotePending();
}

void CallQueue::FinishCloses() {
  for (;;) {
    const auto closing =
        std::ranges::find_if(queue_, [](const auto& work) { return work->closes(); });
    if (closing == queue_.end()) return;
    FinishAllOf(*std::shared_ptr<File>((*closing)->file));
  }
}

void FinishCloses(LibraryState& library) {
  if (!AnyClosesHeld() || !AnyCallWork(library)) return;
  static_cast<void>(Enter(library, [&] { CallQueue::Of(library).FinishCloses(); }));
}

void CallQueue::End() {
  DoAllHere();
  const h5::KeepErrorStack keep(library_.hdf5());
  for (const std::unique_ptr<CallWork>& work : std::exchange(failed_, {})) {
    if (!work->Do(CallWork::Attempt::kAgain))
      late_errors_.Note(work->file, work->what(CallWork::Attempt::kAgain));
    Drop(*work);
  }
  late_errors_.TellAtExit();
  NotePending();
}

}  // namespace tidelane::vol
