/// \file
/// What makes two names one file.
///
/// Thread safety: any thread.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>

namespace tidelane {

struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  auto operator<=>(const FileIdentity&) const = default;
};

/// Of what stat or fstat found.
inline FileIdentity IdentityIn(const struct stat& found) { return {found.st_dev, found.st_ino}; }

/// Of the regular file that `path` leads to now; none: there is no such file.
inline std::optional<FileIdentity> IdentityAt(const char* path) {
  struct stat found;
  if (path == nullptr || stat(path, &found) != 0 || !S_ISREG(found.st_mode)) return std::nullopt;
  return IdentityIn(found);
}

}  // namespace tidelane
