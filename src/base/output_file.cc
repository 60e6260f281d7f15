/// \file
/// Temporary name, write, rename.
///
/// Thread safety: as output_file.h; two threads may write the same target at once, the last rename
/// wins.
#include "base/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/fresh_file.h"

namespace tidelane {
namespace {

// What is open already, perhaps as a plain file (2>errors.txt), and where a rename would replace something else than one.
bool MustWriteDirectly(const std::string& path) {
  for (const char* open : {"/dev/std", "/dev/fd/", "/proc/"}) {
    if (path.starts_with(open)) return true;
  }
  struct stat found;
  return stat(path.c_str(), &found) == 0 && !S_ISREG(found.st_mode);
}

// The file behind a symbolic link, so that the rename replaces the file and keeps the link.
std::string ResolveLink(const std::string& path) {
  char* real = realpath(path.c_str(), nullptr);
  if (real == nullptr) return path;
  std::string resolved = real;
  std::free(real);
  return resolved;
}

}  // namespace

std::string ExpandPid(const std::string& path) {
  std::string expanded;
  for (size_t i = 0; i < path.size(); ++i) {
    if (path[i] == '%' && i + 1 < path.size() && path[i + 1] == 'p') {
      expanded += std::to_string(getpid());
      ++i;
    } else {
      expanded += path[i];
    }
  }
  return expanded;
}

Status OutputFile::Open(const std::string& path) {
  target_ = ExpandPid(path);
  temporary_.clear();
  int descriptor = -1;
  if (!MustWriteDirectly(target_)) {
    target_ = ResolveLink(target_);
    descriptor = CreateFresh(target_ + ".tmp", 0666, temporary_);
  } else {
    descriptor = open(target_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  }
  stream_ = descriptor < 0 ? nullptr : fdopen(descriptor, temporary_.empty() ? "a" : "w");
  if (stream_ != nullptr) return {};
  const int error = errno;
  if (descriptor >= 0) {
    close(descriptor);
    if (!temporary_.empty()) unlink(temporary_.c_str());
  }
  temporary_.clear();
  return Status::Failed(error, "create").At(target_, 0, 0);
}

Status OutputFile::Commit() {
  bool failed = std::ferror(stream_) != 0;
  int error = failed ? EIO : 0;
  if (std::fclose(stream_) != 0) {  // flushes: this is where a full disk shows
    error = errno;
    failed = true;
  }
  stream_ = nullptr;
  if (!failed && !temporary_.empty() && std::rename(temporary_.c_str(), target_.c_str()) != 0) {
    error = errno;
    failed = true;
  }
  if (failed && !temporary_.empty()) unlink(temporary_.c_str());
  temporary_.clear();
  if (failed) return Status::Failed(error, "write").At(target_, 0, 0);
  return {};
}

OutputFile::~OutputFile() {
  if (stream_ != nullptr) std::fclose(stream_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

}  // namespace tidelane
