#include "publish/names.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/counters.h"
#include "base/notices.h"
#include "publish/unpublished.h"

namespace tidelane {

std::optional<FileIdentity> IdentityBehind(const char* path) {
  const std::shared_ptr<Publication> hidden = Unpublished::Get().At(path);
  return hidden != nullptr ? hidden->identity() : IdentityAt(path);
}

int RemoveName(const char* path) {
  if (const std::shared_ptr<Publication> hidden = Unpublished::Get().At(path); hidden != nullptr) {
    // ENOENT: it was published just now.
    if (const int error = hidden->Discard(); error != ENOENT) return error;
  }
  return ::unlink(path) == 0 ? 0 : errno;
}

namespace {

Status Failed(const char* path) { return Status::Failed(errno, "open").At(path, 0, 0); }

// Natively a second create would cut it short before it finds it locked.
Status OpenHidden(const char* path, int flags, OpenedName& opened) {
  if ((flags & O_EXCL) != 0) return Status::Failed(EEXIST, "open").At(path, 0, 0);
  if ((flags & O_TRUNC) != 0) return Status::Failed(EWOULDBLOCK, "lock").At(path, 0, 0);
  opened.file = Descriptor(opened.publication->Open(flags & ~O_CREAT));
  if (opened.file.valid()) return {};
  return Status::Failed(errno == ENOENT ? ESTALE : errno, "open").At(path, 0, 0);
}

}  // namespace

Status OpenByName(const char* path, int flags, mode_t mode, bool atomic, OpenedName& opened) {
  opened.publication = Unpublished::Get().At(path);
  if (opened.publication != nullptr) return OpenHidden(path, flags, opened);
  // What another program has not published yet is not cut short.
  if (atomic && (flags & O_CREAT) != 0 && IsBeingWritten(path))
    return Status::Failed(EWOULDBLOCK, "lock").At(path, 0, 0);
  if (atomic && (flags & O_CREAT) != 0) {
    Fallback why{};
    switch (Publication::Begin(path, (flags & O_EXCL) != 0, mode, opened.file, opened.publication,
                               why)) {
      case Publication::Beginning::kHidden: return {};
      case Publication::Beginning::kLocked:
        return Status::Failed(EWOULDBLOCK, "lock").At(path, 0, 0);
      case Publication::Beginning::kAgain: return Status::Failed(ESTALE, "open").At(path, 0, 0);
      case Publication::Beginning::kInPlace:
        Count(why);
        NoteNative(why, path);
        break;
      case Publication::Beginning::kNatively: break;
    }
  } else if (atomic) {
    SweepHidden(path);
  }
  opened.file = Descriptor(::open(path, flags | O_CLOEXEC, mode));
  return opened.file.valid() ? Status() : Failed(path);
}

}  // namespace tidelane
