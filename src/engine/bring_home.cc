#include "engine/bring_home.h"

#include <fcntl.h>

#include <memory>
#include <new>

#include "tier/entry.h"

namespace tidelane {

void BringHome(Engine& engine, const char* path) try {
  if (!tier::Marker::IsBeside(path)) return;
  std::shared_ptr<File> file;
  // As who opens it for writing does.
  if (!engine.Open(path, {.flags = O_RDWR}, file).ok()) return;
  static_cast<void>(file->writes().commits().Settle());
  static_cast<void>(engine.Close(file));
} catch (const std::bad_alloc&) {
  // The mark of its log refuses the open, and other ranks are waited for there as if this one had memory.
}

}  // namespace tidelane
