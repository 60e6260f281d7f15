#include "tier/spares.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "device/claim.h"
#include "device/fork_locks.h"
#include "device/huge_pages.h"
#include "log/format.h"

namespace tidelane::tier {
namespace {

constexpr uint64_t kBlock = 512;
constexpr uint64_t kLeast = uint64_t{64} << 10;

std::vector<std::string> SparesIn(const Place& place) {
  std::vector<std::string> names;
  const int listed = openat(place.folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (listed < 0) return names;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(fdopendir(listed), closedir);
  while (const dirent* const entry = entries != nullptr ? readdir(entries.get()) : nullptr) {
    if (std::string_view(entry->d_name).starts_with(kSpare)) names.emplace_back(entry->d_name);
  }
  return names;
}

uint64_t BytesOf(const struct stat& found) {
  return static_cast<uint64_t>(found.st_blocks) * kBlock;
}

uint64_t BytesOf(const Place& place, const std::string& name) {
  struct stat found{};
  return fstatat(place.folder.get(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0
             ? BytesOf(found)
             : 0;
}

// Whoever opens it by its old name waits for the lease, and then finds no log in it.
bool Spare(const Place& place, const std::string& name, int fd, uint64_t bytes) {
  if (fcntl(fd, F_SETLEASE, F_WRLCK) != 0) return false;  // somebody reads it
  // Here nobody waits for it.
  if (place.in_memory && bytes > HugePages::kFrom) HugePages::MakeAll(fd, bytes);
  constexpr std::array<std::byte, log::kDataBegin> kNothing{};
  struct stat found{};
  const bool blank =
      pwrite(fd, kNothing.data(), kNothing.size(), 0) == static_cast<ssize_t>(kNothing.size());
  const std::string spare =
      std::string(kSpare) +
      (blank && fstat(fd, &found) == 0 ? std::to_string(found.st_ino) : std::string());
  const bool done =
      blank && renameat(place.folder.get(), name.c_str(), place.folder.get(), spare.c_str()) == 0;
  fcntl(fd, F_SETLEASE, F_UNLCK);
  return done;
}

class SparingFolder final : public log::Folder {
 public:
  SparingFolder(const Place& place, uint64_t most)
      : place_(place), most_(most), folder_(log::MakeFolder(FolderOf(place), 0)) {}

  int Make(const std::string& name, std::unique_ptr<Device>& file) override {
    return folder_->Make(name, file);
  }
  int Open(const std::string& name, bool claims, std::unique_ptr<Device>& file) override {
    return folder_->Open(name, claims, file);
  }
  int Rename(const std::string& from, const std::string& to) override {
    return folder_->Rename(from, to);
  }
  int Remove(const std::string& name, Device& file) override {
    const uint64_t own = BytesOf(place_, name);
    // So few pages are soon made, and to look for other spares takes longer the more files wait.
    if (own < kLeast) return folder_->Remove(name, file);
    uint64_t kept = own;
    for (const std::string& spare : SparesIn(place_)) kept += BytesOf(place_, spare);
    if (kept <= most_ && Spare(place_, name, *file.descriptor(), own)) return 0;
    return folder_->Remove(name, file);
  }
  int Sync() override { return folder_->Sync(); }

 private:
  const Place& place_;
  const uint64_t most_;
  const std::unique_ptr<log::Folder> folder_;
};

}  // namespace

int TakeSpare(const Place& place, const std::string& name, std::unique_ptr<Device>& file) {
  for (const std::string& spare : SparesIn(place)) {
    Descriptor opened(
        openat(place.folder.get(), spare.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    // Another program takes it.
    if (!opened.valid() || Claim(opened.get()) != 0) continue;
    struct stat own{};
    struct stat there{};
    const int folder = place.folder.get();
    if (fstat(opened.get(), &own) != 0 ||
        fstatat(folder, spare.c_str(), &there, AT_SYMLINK_NOFOLLOW) != 0 ||
        own.st_ino != there.st_ino || renameat(folder, spare.c_str(), folder, name.c_str()) != 0)
      continue;
    ForkLocks::Get().Add(opened.get());
    file = MakePosixDevice(opened.Release());
    return 0;
  }
  return ENOENT;
}

bool DropSpares(const Place& place, uint64_t most) {
  uint64_t kept = 0;
  bool dropped = false;
  for (const std::string& spare : SparesIn(place)) {
    kept += BytesOf(place, spare);
    if (kept > most && unlinkat(place.folder.get(), spare.c_str(), 0) == 0) dropped = true;
  }
  return dropped;
}

std::unique_ptr<log::Folder> MakeSparingFolder(const Place& place, uint64_t most) {
  return std::make_unique<SparingFolder>(place, most);
}

}  // namespace tidelane::tier
