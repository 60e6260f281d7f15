#include "engine/store_choice.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <optional>
#include <utility>

#include "base/counters.h"
#include "base/not_journalled.h"
#include "base/notices.h"
#include "extent/test_hooks.h"
#include "log/format.h"
#include "log/logged_store.h"
#include "log/mark.h"
#include "publish/directory_entry.h"

namespace tidelane {
namespace {

constexpr uint64_t kSegments = 2;

// So small in tests that what takes turns in large files does so in small ones.
uint64_t SegmentBytes() {
  return MutationEnabled("log_small_segments") ? uint64_t{32} << 10 : log::LogPlace().segment_bytes;
}

uint64_t ReuseBytes() {
  return MutationEnabled("log_small_reuse") ? uint64_t{4} << 10 : log::LogParts().reuse_bytes;
}

bool HasLog(const DirectoryEntry& entry) {
  for (uint64_t number = 1; number <= kSegments; ++number) {
    if (faccessat(entry.folder.get(), log::SegmentName(entry.name, number).c_str(), F_OK,
                  AT_SYMLINK_NOFOLLOW) == 0)
      return true;
  }
  return false;
}

void NoTier(Fallback reason, const char* path) {
  Count(reason);
  NoteNative(reason, path);
}

bool IsMarked(Device& file) {
  Superblock superblock;
  // What cannot be read HDF5 will say.
  return Superblock::Find(file, superblock) == 0 && superblock.marked();
}

// By a log's name there is nothing, or a file, of which the log knows what to make.
bool LeavesNamesFree(const DirectoryEntry& entry) {
  for (uint64_t number = 1; number <= kSegments; ++number) {
    struct stat found{};
    const std::string name = log::SegmentName(entry.name, number);
    if (fstatat(entry.folder.get(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0 &&
        !S_ISREG(found.st_mode))
      return false;
  }
  return true;
}

// What stands against a log; nothing: nothing does. `entry`: where it would lie; nullptr: nobody knows.
std::optional<Fallback> Hindrance(bool hidden, bool followed, const struct stat& found,
                                  const DirectoryEntry* entry) {
  if (hidden) return Fallback::kJournalPublish;
  if (followed) return Fallback::kJournalSwmr;
  if (found.st_nlink > 1) return Fallback::kJournalLinks;
  const bool folder_takes = entry != nullptr && entry->name.size() <= log::kLongestName &&
                            faccessat(entry->folder.get(), ".", W_OK | X_OK, AT_EACCESS) == 0 &&
                            LeavesNamesFree(*entry);
  if (!folder_takes) return Fallback::kJournalFolder;
  return std::nullopt;
}

}  // namespace

StoreChoice::StoreChoice(const char* path, bool truncates, const FileSettings& settings,
                         const Config& config)
    : path_(path),
      settings_(settings),
      config_(config),
      tier_(std::make_shared<TierChoice>(path, truncates, config.tier)) {
  if (!truncates || settings.journal == Journal::kOff) return;
  DirectoryEntry entry;
  if (DirectoryEntry::Find(path, true, entry) != 0 || !HasLog(entry)) return;
  const int fd = openat(entry.folder.get(), entry.name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return;
  const std::unique_ptr<Device> file = MakePosixDevice(fd);
  Superblock superblock;
  if (Superblock::Find(*file, superblock) == 0 && superblock.marked())
    old_mark_ = superblock.mark();
}

// The log of what was truncated: the segment that it was marked with, the one before, and the one after. Not what somebody holds: his lock has
// something to say yet.
void StoreChoice::RemoveOldLog() const {
  DirectoryEntry entry;
  if (DirectoryEntry::Find(path_, true, entry) != 0) return;
  const std::string name = entry.name;
  const std::unique_ptr<log::Folder> folder = log::MakeFolder(std::move(entry.folder), 0);
  struct Found {
    std::unique_ptr<Device> file;
    uint64_t id = 0;
    uint64_t before = 0;
  };
  std::array<Found, kSegments> segments;
  uint64_t before_marked = 0;
  for (uint64_t i = 0; i < kSegments; ++i) {
    log::Sector bytes;
    Found& found = segments[i];
    if (folder->Open(log::SegmentName(name, i + 1), true, found.file) != 0 ||
        found.file->Read(0, bytes.data(), bytes.size()) != 0)
      continue;
    const auto header = log::SegmentHeader::Parse(bytes);
    if (!header) continue;
    found.id = header->id;
    found.before = header->before;
    if (found.id == old_mark_) before_marked = found.before;
  }
  for (uint64_t i = 0; i < kSegments; ++i) {
    const Found& found = segments[i];
    if (found.id != 0 &&
        (found.id == old_mark_ || found.before == old_mark_ || found.id == before_marked))
      static_cast<void>(folder->Remove(log::SegmentName(name, i + 1), *found.file));
  }
}

Status StoreChoice::Without(Fallback reason) const {
  if (settings_.journal == Journal::kOff) return {};
  Count(reason);
  NoteNative(reason, path_);
  if (!settings_.journal_required) return {};
  return NotJournalled(reason, path_);
}

Status StoreChoice::Make(bool writable, bool hidden, bool followed, const struct stat& found,
                         Device& device, FileEnvironment& environment) {
  tier_->Truncated();
  if (old_mark_ != 0) {
    // The old mark must not come back without its log.
    if (settings_.journal == Journal::kPower) static_cast<void>(device.Sync());
    RemoveOldLog();
  }
  if (!S_ISREG(found.st_mode)) return {};
  const bool marked = !hidden && found.st_size != 0 && IsMarked(device);
  LoggedFile parts;
  parts.writable = writable;
  parts.journal = writable ? settings_.journal : Journal::kOff;
  parts.must_journal = settings_.journal_required;
  parts.log.lanes = &environment.lanes;
  const bool wants_tier = writable && settings_.close_in_tier;
  if (parts.journal == Journal::kOff && !marked && !wants_tier) return {};
  DirectoryEntry entry;
  const int error = DirectoryEntry::Find(path_, true, entry);
  if (parts.journal != Journal::kOff || wants_tier) {
    const auto reason = Hindrance(hidden, followed, found, error == 0 ? &entry : nullptr);
    if (reason) {
      if (wants_tier) NoTier(Fallback::kTierFile, path_);
      if (Status refused = Without(*reason); !refused.ok()) return refused;
      parts.journal = Journal::kOff;
    } else if (wants_tier) {
      if (const auto refused = tier_->Use(config_, entry, found, parts)) {
        NoTier(*refused, path_);
        // What a flush has promised is kept, by a log beside the file.
        if (parts.journal == Journal::kOff) parts.journal = Journal::kProcess;
      }
    }
  }
  if (error != 0 && marked) return Status::Failed(error, "open").At(path_, 0, 0);
  if (parts.journal == Journal::kOff && !marked) return {};
  UseLog(std::move(parts), std::move(entry), found.st_mode & 0777, environment);
  return {};
}

// A store with a log, which lies at `entry` unless it is in a tier; without a journal it only recovers the file.
void StoreChoice::UseLog(LoggedFile parts, DirectoryEntry entry, mode_t mode,
                         FileEnvironment& environment) const {
  const auto where = std::make_shared<DirectoryEntry>(std::move(entry));
  parts.find_left = [where, tier = tier_](const Superblock& marked, LeftLog& left) {
    return tier->Find(*where, marked, left);
  };
  log::LogParts& log = parts.log;
  log.path = path_;
  log.commits = settings_.journal_commits;
  log.reuse_bytes = ReuseBytes();
  log::LogPlace beside = {.folder = log::MakeFolder(where->FolderAgain(), mode),
                          .name = where->name,
                          .segment_bytes = SegmentBytes()};
  if (log.place.all) {
    log.next = std::move(beside);
  } else {
    log.place = std::move(beside);
  }
  environment.make_store =
      [made = std::make_shared<LoggedFile>(std::move(parts))](const std::shared_ptr<Device>& file) {
        made->file = file;
        return std::make_unique<LoggedStore>(std::move(*made));
      };
}

}  // namespace tidelane
