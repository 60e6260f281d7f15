#include "tier/tier_folder.h"

#include <sys/stat.h>

#include <new>
#include <utility>

#include "base/annotations.h"
#include "log/format.h"
#include "tier/announcement.h"
#include "tier/spares.h"

namespace tidelane::tier {
namespace {

class TierFolder final : public log::Folder {
 public:
  TierFolder(std::shared_ptr<const Place> place, Entry entry,
             std::shared_ptr<const DirectoryEntry> beside, Lanes* lanes)
      : place_(std::move(place)),
        entry_(std::move(entry)),
        beside_(std::move(beside)),
        lanes_(lanes),
        folder_(log::MakeFolder(FolderOf(*place_), S_IRUSR | S_IWUSR)) {}

  void Find() TL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    announcement_ = Announce(true);
    for (const uint64_t number : {1, 2}) {
      std::unique_ptr<Device> segment;
      if (folder_->Open(log::SegmentName(entry_.name, number), false, segment) == 0) ++segments_;
    }
  }
  int Make(const std::string& name, std::unique_ptr<Device>& file) override TL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (segments_ == 0) {
      if (const int error = Begin(); error != 0) return error;
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
  bool MakeRoom() override { return DropSpares(*place_); }
  int Remove(const std::string& name, Device& file) override TL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const int error = folder_->Remove(name, file);
    if (error == 0 && segments_ != 0 && --segments_ == 0) Forget();
    return error;
  }
  int Sync() override { return folder_->Sync(); }
  int Announce() override TL_EXCLUDES(mutex_) {
    std::shared_ptr<Announcement> announcement;
    {
      MutexLock lock(mutex_);
      announcement = announcement_;
    }
    return announcement == nullptr ? 0 : announcement->Finish();
  }

 private:
  int Begin() TL_REQUIRES(mutex_) {
    if (const int error = entry_.Write(*place_); error != 0) return error;
    announcement_ = Announce(false);
    try {
      if (lanes_ != nullptr && lanes_->threaded()) lanes_->Schedule(announcement_);
    } catch (const std::bad_alloc&) {  // who needs it writes it
    }
    return 0;
  }
  std::shared_ptr<Announcement> Announce(bool is_there) const {
    return std::make_shared<Announcement>(Marker{.host = HostName(),
                                                 .boot = BootId(),
                                                 .entry = entry_.name,
                                                 .tier = place_->path,
                                                 .in_memory = place_->in_memory},
                                          beside_, is_there);
  }
  void Forget() TL_REQUIRES(mutex_) {
    if (announcement_ != nullptr) announcement_->Withdraw();
    announcement_ = nullptr;
    static_cast<void>(Entry::Remove(*place_, entry_.name));
  }

  const std::shared_ptr<const Place> place_;
  const Entry entry_;
  const std::shared_ptr<const DirectoryEntry> beside_;
  Lanes* const lanes_;
  const std::unique_ptr<log::Folder> folder_;
  Mutex mutex_;
  std::shared_ptr<Announcement> announcement_ TL_GUARDED_BY(mutex_);
  unsigned segments_ TL_GUARDED_BY(mutex_) = 0;
};

}  // namespace

std::unique_ptr<log::Folder> MakeTierFolder(std::shared_ptr<const Place> place, Entry entry,
                                            std::shared_ptr<const DirectoryEntry> beside,
                                            Lanes* lanes) {
  return std::make_unique<TierFolder>(std::move(place), std::move(entry), std::move(beside), lanes);
}

std::unique_ptr<log::Folder> FindTierFolder(std::shared_ptr<const Place> place, Entry entry,
                                            std::shared_ptr<const DirectoryEntry> beside,
                                            Lanes* lanes) {
  auto folder =
      std::make_unique<TierFolder>(std::move(place), std::move(entry), std::move(beside), lanes);
  folder->Find();
  return folder;
}

}  // namespace tidelane::tier
