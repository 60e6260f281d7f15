#include "engine/tier_choice.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "device/claim.h"
#include "tier/drain.h"
#include "tier/entry.h"
#include "tier/mover.h"
#include "tier/survival.h"
#include "tier/tier_folder.h"

namespace tidelane {
namespace {

// A tier has this part of what its file system has free, where no size is set.
constexpr uint64_t kDivisorInMemory = 4;
constexpr uint64_t kDivisorOnDisk = 2;
// Less is not worth the entry.
constexpr uint64_t kLeast = uint64_t{1} << 20;

// Memory that a tier has counts as this process's, also what earlier programs have left there: who exceeds a limit is killed.
uint64_t MostIn(const tier::Place& place, uint64_t tier_bytes) {
  static const uint64_t share = ShareOfMemory();
  return tier_bytes != 0 ? tier_bytes : place.in_memory ? share : UINT64_MAX;
}

uint64_t RoomIn(const tier::Place& place, uint64_t tier_bytes) {
  const auto [taken, all] = place.space();
  const uint64_t room =
      tier_bytes != 0 ? all : all / (place.in_memory ? kDivisorInMemory : kDivisorOnDisk);
  const uint64_t most = MostIn(place, tier_bytes);
  // To look at each file takes longer the more there are.
  if (taken + room <= most) return room;
  const uint64_t used = place.used();
  return std::min(room, most > used ? most - used : 0);
}

}  // namespace

TierChoice::TierChoice(const char* path, bool truncates, const std::string& setting)
    : path_(path), setting_(setting) {
  if (!truncates || (setting_.empty() && !tier::Marker::IsBeside(path))) return;
  if (DirectoryEntry::Find(path, true, old_entry_) != 0) return;
  Descriptor file(openat(old_entry_.folder.get(), old_entry_.name.c_str(),
                         O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  if (!file.valid()) return;
  const std::unique_ptr<Device> device = MakePosixDevice(dup(file.get()));
  Superblock superblock;
  const auto is_marked = [&] {
    return Superblock::Find(*device, superblock) == 0 && superblock.marked();
  };
  if (!is_marked()) return;
  // Somebody writes it: HDF5's lock says the rest.
  if (ClaimAfterMove(file.get()) != 0 || !is_marked()) return;
  static_cast<void>(tier::FindLog(old_entry_, path_, superblock, setting_, old_));
  if (old_.has_value()) claimed_ = std::move(file);
}

void TierChoice::Truncated() {
  if (!old_.has_value()) return;
  tier::RemoveEntry(*old_->place, old_->entry, path_);
  old_.reset();
  claimed_ = Descriptor();
}

std::optional<Fallback> TierChoice::Use(const Config& config, const DirectoryEntry& entry,
                                        const struct stat& found, LoggedFile& parts) {
  const auto place = std::make_shared<tier::Place>();
  if (setting_.empty()) return Fallback::kTierUnusable;
  if (!tier::Place::Open(setting_, true, *place).ok()) return Fallback::kTierUnusable;
  // Memory does not survive the machine.
  if (place->in_memory && parts.journal == Journal::kPower) return Fallback::kTierUnusable;
  if (!config.tier_drained && !tier::WhatEndsIt(place->in_memory).empty())
    return Fallback::kTierEnded;
  const uint64_t room = RoomIn(*place, config.tier_bytes);
  if (room < kLeast) return Fallback::kTierFull;
  const auto beside = std::make_shared<DirectoryEntry>(
      DirectoryEntry{entry.FolderAgain(), entry.folder_identity, entry.name});
  const tier::Entry made = tier::Entry::For(tier::PathIn(entry), IdentityIn(found));
  if (parts.journal == Journal::kOff) parts.journal = Journal::kProcess;
  parts.log.place.folder = tier::MakeTierFolder(place, made, beside, parts.log.lanes);
  parts.log.place.name = made.name;
  parts.log.place.all = true;
  parts.log.place.in_memory = place->in_memory;
  parts.log.place.most = room;
  // It moves when the program has closed the file, or when it is full.
  parts.log.place.segment_bytes = room / 2;
  const tier::MoverStart start{
      .rate = config.tier_rate, .niceness = config.tier_nice, .streams = config.tier_streams};
  parts.left = [place, start](const std::string& name, int descriptor) {
    Count(Counter::kClosesInTier);
    // Nobody there: a new one looks for what was left.
    if (!tier::HandOver(*place, name, descriptor))
      static_cast<void>(tier::StartMover(*place, start));
  };
  used_ = {.place = place, .entry = made, .beside = beside, .lanes = parts.log.lanes};
  if (!tier::HasMover(*place)) static_cast<void>(tier::StartMover(*place, start));
  return std::nullopt;
}

// It lies where a new one would, and whoever comes after us finds it as he would find that.
bool TierChoice::GoesOn(const tier::FoundLog& found, tier::Entry& entry) const {
  return used_.has_value() && found.is_announced && found.place->path == used_->place->path &&
         tier::Entry::Read(*found.place, found.entry, entry) == 0 &&
         entry.path == used_->entry.path && entry.file == used_->entry.file;
}

Status TierChoice::Find(const DirectoryEntry& entry, const Superblock& marked,
                        LeftLog& left) const {
  std::optional<tier::FoundLog> found;
  if (Status status = tier::FindLog(entry, path_, marked, setting_, found); !status.ok())
    return status;
  if (!found.has_value()) {
    left.folder = log::MakeFolder(entry.FolderAgain(), 0);
    left.name = entry.name;
    return {};
  }
  tier::Entry goes_on;
  left.goes_on = GoesOn(*found, goes_on);
  left.folder = left.goes_on
                    ? tier::FindTierFolder(found->place, goes_on, used_->beside, used_->lanes)
                    : log::MakeFolder(tier::FolderOf(*found->place), 0);
  left.name = found->entry;
  left.used = [found, path = path_] { tier::Forget(*found->place, found->entry, path); };
  return {};
}

}  // namespace tidelane
