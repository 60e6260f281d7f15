#include "engine/bring_home.h"

#include <fcntl.h>

#include <memory>
#include <new>
#include <string>

#include "device/claim.h"
#include "device/device.h"
#include "log/mark.h"
#include "tier/entry.h"

namespace tidelane {

namespace {

// A file that was renamed has no marker beside it: the tier that is set may have it. A mover takes the marker away before it lets go of the
// file.
bool MayWait(const std::string& tier, const char* path) {
  if (tier::Marker::IsBeside(path)) return true;
  if (tier.empty()) return false;
  Descriptor file(OpenAfterMove(AT_FDCWD, path, O_RDONLY));
  if (!file.valid()) return false;
  static_cast<void>(AwaitMove(file.get()));
  const std::unique_ptr<Device> device = MakePosixDevice(file.Release());
  Superblock superblock;
  return Superblock::Find(*device, superblock) == 0 && superblock.marked();
}

}  // namespace

void BringHome(Engine& engine, const char* path) try {
  if (!MayWait(engine.config().tier, path)) return;
  std::shared_ptr<File> file;
  // As who opens it for writing and has no tier.
  if (!engine.Open(path, {.flags = O_RDWR, .home = true}, file).ok()) return;
  static_cast<void>(file->writes().commits().Settle());
  static_cast<void>(engine.Close(file));
} catch (const std::bad_alloc&) {
  // The mark of its log refuses the open, and other ranks are waited for there as if this one had memory.
}

}  // namespace tidelane
