#include "base/not_journalled.h"

#include <cerrno>
#include <string>

namespace tidelane {

Status NotJournalled(Fallback reason, std::string_view path) {
  return Status::Failed(ENOTSUP, "journal (" + std::string(Text(reason)) + ")").At(path, 0, 0);
}

}  // namespace tidelane
