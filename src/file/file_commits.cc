#include "file/file_commits.h"

#include "base/incidents.h"
#include "base/notices.h"

namespace tidelane {

Status FileCommits::SettleNow() {
  Status status = file_.store->Settle();
  if (!status.ok()) return status;
  settled_ = true;
  file_.eof.store(file_.store->size(), std::memory_order_relaxed);
  return {};
}

Status FileCommits::Commit(Committing when) {
  if (!enabled()) return {};
  if (Status status = drainer_.Drain(Wait::kFlush); !status.ok()) return status;
  const Waiting waiting(Wait::kFlush);
  const int error = file_.store->Commit(when);
  if (error == 0) return {};
  Status status = file_.Failure(error, "commit", 0, 0);
  NoteError(status);
  return status;
}

Status FileCommits::End(Fallback reason) {
  if (!enabled()) return {};
  Count(reason);
  NoteNative(reason, file_.path);
  if (Status status = drainer_.Drain(Wait::kOther); !status.ok()) return status;
  const int error = file_.store->EndCommits();
  return error == 0 ? Status() : file_.Failure(error, "commit", 0, 0);
}

}  // namespace tidelane
