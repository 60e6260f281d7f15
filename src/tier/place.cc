#include "tier/place.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <linux/magic.h>
#include <memory>
#include <string_view>

namespace tidelane::tier {
namespace {

constexpr char kSharedMemory[] = "/dev/shm";
constexpr uint64_t kBlock = 512;  // what st_blocks counts

bool IsMemory(int folder) {
  struct statfs found{};
  return fstatfs(folder, &found) == 0 && found.f_type == TMPFS_MAGIC;
}

}  // namespace

std::string Place::PathOf(const std::string& setting) {
  std::string path = setting == kMemory ? kSharedMemory : setting;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path + "/tidelane-" + std::to_string(geteuid());
}

Status Place::Open(const std::string& setting, bool make, Place& place) {
  const std::string path = PathOf(setting);
  if (make && mkdir(path.c_str(), S_IRWXU) != 0 && errno != EEXIST)
    return Status::Failed(errno, "make the tier").At(path, 0, 0);
  return OpenAt(path, place);
}

Status Place::OpenAt(const std::string& path, Place& place) {
  const auto failed = [&](int error, const char* what) {
    return Status::Failed(error, what).At(path, 0, 0);
  };
  Descriptor folder(open(path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat found{};
  if (!folder.valid() || fstat(folder.get(), &found) != 0) return failed(errno, "open the tier");
  if (found.st_uid != geteuid()) return failed(EPERM, "use another user's tier");
  if ((found.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return failed(EPERM, "use a tier that others may look into");
  place = {.path = path, .in_memory = IsMemory(folder.get()), .folder = std::move(folder)};
  return {};
}

uint64_t Place::used() const {
  const int listed = openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (listed < 0) return 0;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(fdopendir(listed), closedir);
  if (entries == nullptr) return 0;
  uint64_t bytes = 0;
  while (const dirent* const entry = readdir(entries.get())) {
    struct stat found{};
    if (std::string_view(entry->d_name).starts_with(kSpare)) continue;
    if (fstatat(folder.get(), entry->d_name, &found, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(found.st_mode))
      bytes += static_cast<uint64_t>(found.st_blocks) * kBlock;
  }
  return bytes;
}

Place::Space Place::space() const {
  struct statfs found{};
  if (fstatfs(folder.get(), &found) != 0) return {};
  const auto block = static_cast<uint64_t>(found.f_bsize);
  return {.taken = static_cast<uint64_t>(found.f_blocks - found.f_bfree) * block,
          .room = static_cast<uint64_t>(found.f_bavail) * block};
}

Descriptor FolderOf(const Place& place) {
  return Descriptor(openat(place.folder.get(), ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
}

std::string HostName() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string BootId() {
  const Descriptor file(open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  std::array<char, 64> id{};
  const ssize_t size = file.valid() ? read(file.get(), id.data(), id.size()) : -1;
  std::string text(id.data(), size > 0 ? static_cast<size_t>(size) : 0);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace tidelane::tier
