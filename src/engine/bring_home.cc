#include "engine/bring_home.h"

#include <fcntl.h>

#include <memory>
#include <new>

#include "device/claim.h"
#include "tier/entry.h"

namespace tidelane {

namespace {

// It takes the marker away before it lets go of the file.
void AwaitMover(const char* path) {
  const Descriptor file(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.valid()) static_cast<void>(AwaitMove(file.get()));
}

}  // namespace

void BringHome(Engine& engine, const char* path) try {
  if (!tier::Marker::IsBeside(path)) {
    if (!engine.config().tier.empty()) AwaitMover(path);
    return;
  }
  std::shared_ptr<File> file;
  // As who opens it for writing and has no tier.
  if (!engine.Open(path, {.flags = O_RDWR, .home = true}, file).ok()) return;
  static_cast<void>(file->writes().commits().Settle());
  static_cast<void>(engine.Close(file));
} catch (const std::bad_alloc&) {
  // The mark of its log refuses the open, and other ranks are waited for there as if this one had memory.
}

}  // namespace tidelane
