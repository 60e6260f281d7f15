#include "engine/bring_home.h"

#include <fcntl.h>

#include <memory>

#include "tier/entry.h"

namespace tidelane {

void BringHome(Engine& engine, const char* path) {
  if (!tier::Marker::IsBeside(path)) return;
  std::shared_ptr<File> file;
  // As who opens it for writing does.
  if (!engine.Open(path, {.flags = O_RDWR}, file).ok()) return;
  static_cast<void>(file->writes().commits().Settle());
  static_cast<void>(engine.Close(file));
}

}  // namespace tidelane
