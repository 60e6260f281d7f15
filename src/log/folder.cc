#include "log/folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "device/claim.h"
#include "device/fork_locks.h"

namespace tidelane::log {
namespace {

constexpr unsigned kNoReplace = 1;  // RENAME_NOREPLACE

class PosixFolder final : public Folder {
 public:
  PosixFolder(Descriptor folder, mode_t mode) : folder_(std::move(folder)), mode_(mode) {}

  int Make(const std::string& name, std::unique_ptr<Device>& file) override {
    // What is in the file is in the log: nobody else may read it there.
    return OpenWith(name, O_RDWR | O_CREAT | O_EXCL, true, file);
  }
  int Open(const std::string& name, bool claims, std::unique_ptr<Device>& file) override {
    return OpenWith(name, claims ? O_RDWR : O_RDONLY, claims, file);
  }
  int Rename(const std::string& from, const std::string& to) override {
    const int at = folder_.get();
    if (syscall(SYS_renameat2, at, from.c_str(), at, to.c_str(), kNoReplace) == 0) return 0;
    if (errno != EINVAL && errno != ENOSYS) return errno;
    // A file system without it: nobody else makes such names.
    if (faccessat(at, to.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0) return EEXIST;
    return renameat(at, from.c_str(), at, to.c_str()) == 0 ? 0 : errno;
  }
  int Remove(const std::string& name, Device& file) override {
    struct stat here;
    struct stat own;
    if (fstatat(folder_.get(), name.c_str(), &here, AT_SYMLINK_NOFOLLOW) != 0 ||
        fstat(*file.descriptor(), &own) != 0)
      return errno;
    if (IdentityIn(here) != IdentityIn(own)) return ESTALE;
    return unlinkat(folder_.get(), name.c_str(), 0) == 0 ? 0 : errno;
  }
  int Sync() override {
    const Descriptor readable(openat(folder_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return readable.valid() && fsync(readable.get()) == 0 ? 0 : errno;
  }

 private:
  int OpenWith(const std::string& name, int flags, bool claims, std::unique_ptr<Device>& file) {
    Descriptor opened(
        openat(folder_.get(), name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, mode_));
    if (!opened.valid()) return errno;
    if (claims) {
      if (const int error = Claim(opened.get()); error != 0) return error;
      ForkLocks::Get().Add(opened.get());
    }
    file = MakePosixDevice(opened.Release());
    return 0;
  }

  const Descriptor folder_;
  const mode_t mode_;
};

}  // namespace

std::unique_ptr<Folder> MakeFolder(Descriptor folder, mode_t mode) {
  return std::make_unique<PosixFolder>(std::move(folder), mode);
}

}  // namespace tidelane::log
