#include "tools/recover.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "base/words.h"
#include "publish/directory_entry.h"
#include "publish/publication.h"

namespace tidelane::tools {
namespace {

namespace fs = std::filesystem;

class Sweep {
 public:
  explicit Sweep(bool only_tell) : only_tell_(only_tell) {}

  void Folder(const fs::path& folder, bool with_folders) {
    std::error_code error;
    std::vector<fs::path> below;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
      std::error_code ignored;
      if (IsHiddenName(at->path().filename().string())) {
        File(at->path());
      } else if (with_folders && at->is_directory(ignored) && !at->is_symlink(ignored)) {
        below.push_back(at->path());
      }
    }
    if (error) {
      std::fprintf(stderr, "tidelane: %s: %s\n", folder.c_str(), error.message().c_str());
      failed_ = true;
    }
    for (const fs::path& next : below) Folder(next, true);
  }

  int End() const {
    if (found_ == 0) std::printf("nothing was left behind\n");
    return failed_ ? kFailed : kDone;
  }

 private:
  void File(const fs::path& path) {
    ++found_;
    std::error_code ignored;
    const std::string size = BytesInWords(fs::file_size(path, ignored));
    const Descriptor folder(open(path.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    const int error =
        folder.valid() ? SweepHidden(folder.get(), path.filename().string(), only_tell_) : errno;
    if (error == 0) {
      std::printf("%s %s (%s)\n", only_tell_ ? "left behind:" : "removed", path.c_str(),
                  size.c_str());
    } else if (error == EWOULDBLOCK) {
      std::printf("in use: %s (%s), which a program is writing\n", path.c_str(), size.c_str());
    } else if (error != ENOENT) {
      std::fprintf(stderr, "tidelane: %s: %s\n", path.c_str(), std::strerror(error));
      failed_ = true;
    }
  }

  const bool only_tell_;
  size_t found_ = 0;
  bool failed_ = false;
};

}  // namespace

int Recover(const Arguments& arguments) {
  Sweep sweep(arguments.Has("dry-run"));
  std::vector<std::string> folders = arguments.operands;
  if (folders.empty()) folders.emplace_back(".");
  for (const std::string& folder : folders) {
    std::error_code error;
    if (!fs::is_directory(folder, error)) {
      std::fprintf(stderr, "tidelane: %s: no folder\n", folder.c_str());
      return kUsage;
    }
    sweep.Folder(folder, arguments.Has("recursive"));
  }
  return sweep.End();
}

}  // namespace tidelane::tools
