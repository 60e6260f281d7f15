#include "tier/tier_folder.h"

#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "base/annotations.h"
#include "log/format.h"
#include "tier/spares.h"

namespace tidelane::tier {
namespace {

class TierFolder final : public log::Folder {
 public:
  TierFolder(std::shared_ptr<const Place> place, Entry entry,
             std::shared_ptr<const DirectoryEntry> beside)
      : place_(std::move(place)),
        entry_(std::move(entry)),
        beside_(std::move(beside)),
        folder_(log::MakeFolder(FolderOf(*place_), S_IRUSR | S_IWUSR)) {}

  int Make(const std::string& name, std::unique_ptr<Device>& file) override TL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (segments_ == 0) {
      if (const int error = Announce(); error != 0) return error;
    }
    const int error = TakeSpare(*place_, name, file) == 0 ? 0 : folder_->Make(name, file);
    if (error == 0) ++segments_;
    if (segments_ == 0) Forget();
    return error;
  }
  int Open(const std::string& name, bool claims, std::unique_ptr<Device>& file) override {
    return folder_->Open(name, claims, file);
  }
  int Rename(const std::string& from, const std::string& to) override {
    return folder_->Rename(from, to);
  }
  int Remove(const std::string& name, Device& file) override TL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const int error = folder_->Remove(name, file);
    if (error == 0 && segments_ != 0 && --segments_ == 0) Forget();
    return error;
  }
  int Sync() override { return folder_->Sync(); }

 private:
  // Before the file is marked: whoever finds the mark finds the log.
  int Announce() {
    if (const int error = entry_.Write(*place_); error != 0) return error;
    const Marker marker{.host = HostName(),
                        .boot = BootId(),
                        .entry = entry_.name,
                        .tier = place_->path,
                        .in_memory = place_->in_memory};
    const int error = marker.Write(*beside_);
    if (error != 0) Forget();
    return error;
  }
  void Forget() {
    Marker::Remove(*beside_, entry_.name);
    static_cast<void>(Entry::Remove(*place_, entry_.name));
  }

  const std::shared_ptr<const Place> place_;
  const Entry entry_;
  const std::shared_ptr<const DirectoryEntry> beside_;
  const std::unique_ptr<log::Folder> folder_;
  Mutex mutex_;
  unsigned segments_ TL_GUARDED_BY(mutex_) = 0;
};

}  // namespace

std::unique_ptr<log::Folder> MakeTierFolder(std::shared_ptr<const Place> place, Entry entry,
                                            std::shared_ptr<const DirectoryEntry> beside) {
  return std::make_unique<TierFolder>(std::move(place), std::move(entry), std::move(beside));
}

}  // namespace tidelane::tier
