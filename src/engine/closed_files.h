/// \file
/// What becomes of files that the program has closed: how many may be on their way to storage, who gives way to whom, and which are
/// given up.
///
/// A closed file costs a descriptor and memory until it is stored. So only a share of the descriptors may be held by closed files, who
/// finds none left waits for the oldest, and what cannot be stored is dropped where nobody can miss it: where the file has no name.
///
/// Invariant: a file that is closed, and not stored, is in the registry until it is, or is given up.
/// Thread safety: all functions may be called from any thread.
#pragma once

#include <memory>

#include "base/status.h"
#include "engine/registry.h"

namespace tidelane {

/// open(2) itself says whether this process may open `file` by that name: permissions may have changed since it was closed, and the
/// name may have another file by now (ESTALE).
Status MayOpen(const char* path, int flags, const File& file);

/// Nobody reads an error stack at the end of a program, and lost bytes must not go unsaid.
void PrintAtExit(const Status& failure);

class ClosedFiles {
 public:
  explicit ClosedFiles(Registry& registry) : registry_(registry) {}

  /// Waits for the bytes unless the call allows otherwise. If they cannot be stored, says so and keeps the file as it keeps a
  /// deferred one: `WaitClosed` tries again, and so does the exit. `exiting`: nobody else would tell of a device that fails to close.
  Status Close(const std::shared_ptr<File>& file, const CallContext& call, bool exiting)
      TL_EXCLUDES(registry_.mutex);
  /// One that was opened again for nothing is what it was.
  void GiveBack(const std::shared_ptr<File>& file, const CallContext& call)
      TL_EXCLUDES(registry_.mutex);

  /// Those that the path names, or that were opened by it.
  FileTable::Files At(const char* path) TL_EXCLUDES(registry_.mutex);
  /// Whoever creates over them waits until they are stored, or gives them up.
  Status MakeWayFor(const char* path) TL_EXCLUDES(registry_.mutex);
  /// Waits until one is stored, or drops some. Whether there is one less.
  bool AwaitOldest(Wait why) TL_EXCLUDES(registry_.mutex);
  /// Gives up those that have no name and cannot be stored, and with their descriptors their room on storage, unless
  /// somebody else has them open. Whether there were any.
  bool DropNameless(bool may_wait = true) TL_EXCLUDES(registry_.mutex);
  /// One whose device some thread is closing; nullptr: none.
  std::shared_ptr<File> BeingClosed() const TL_REQUIRES(registry_.mutex);

 private:
  bool RoomForAnother() TL_EXCLUDES(registry_.mutex);
  void KeepLocked(const std::shared_ptr<File>& file, const CallContext& call)
      TL_REQUIRES(registry_.mutex);
  Status MakeWayOf(const char* path, const std::shared_ptr<File>& file)
      TL_EXCLUDES(registry_.mutex);
  void Stored(const std::shared_ptr<File>& file) TL_EXCLUDES(registry_.mutex);
  Status CloseClaimed(const std::shared_ptr<File>& file) TL_EXCLUDES(registry_.mutex);

  Registry& registry_;
};

}  // namespace tidelane
