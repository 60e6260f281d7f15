#include "log/left_segments.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>
#include <vector>

#include "extent/test_hooks.h"
#include "log/recovery.h"

namespace tidelane::log {

int LeftSegments::Left::Read() {
  Sector bytes;
  int error = file->Read(0, bytes.data(), bytes.size());
  if (error == 0) error = file->Size(size);
  if (error == 0) header = SegmentHeader::Parse(bytes);
  return error;
}

// A log of which the file has everything: a kill came before its program could remove it. One of no length was made, and not begun.
bool LeftSegments::IsUseless(const Left& left) {
  if (left.size == 0) return true;
  if (!left.header || left.header->version > kVersion) return false;
  const SegmentHeader& header = *left.header;
  Snapshot snapshot;
  Superblock own;
  return Superblock::Find(file_.device(), own) == 0 && !own.empty() && !own.marked() &&
         ReadSnapshot(*parts_.place.folder, parts_.place.name, parts_.path, own.Marked(header.id),
                      false, snapshot)
             .ok() &&
         IsApplied(file_.device(), own, snapshot);
}

// Its mark may be on storage yet, if its program has been killed while it took that back; also where a sync has failed since.
int LeftSegments::StoreSuperblock() {
  if (!file_.syncs() || MutationEnabled("log_aside_sync")) return 0;
  const int error = file_.PutAgain();
  return error == 0 ? file_.Sync() : error;
}

bool LeftSegments::HasAny() {
  std::unique_ptr<Device> left;
  return parts_.place.folder->Open(SegmentName(parts_.place.name, 1), false, left) != ENOENT ||
         parts_.place.folder->Open(SegmentName(parts_.place.name, 2), false, left) != ENOENT;
}

// The newest last: it shows whose they are.
void LeftSegments::RemoveUseless() {
  if (StoreSuperblock() != 0) return;
  std::vector<Left> useless;
  for (const uint64_t number : {1, 2}) {
    Left left{.name = SegmentName(parts_.place.name, number), .file = nullptr};
    if (parts_.place.folder->Open(left.name, true, left.file) == 0 && left.Read() == 0 &&
        IsUseless(left))
      useless.push_back(std::move(left));
  }
  std::ranges::sort(useless, {},
                    [](const Left& left) { return left.header ? left.header->number : 0; });
  for (const Left& left : useless)
    static_cast<void>(parts_.place.folder->Remove(left.name, *left.file));
}

// What lies there is the log of another file, which had this name: this one, which we have claimed, is not marked with it. Whoever has that file
// open finds his log by its id (RemoveSegment). Of one that is left somebody may want to know, unless it is of no use to anybody.
int LeftSegments::MakeRoomFor(const std::string& segment) {
  std::unique_ptr<Device> left;
  int error = parts_.place.folder->Open(segment, true, left);
  const bool in_use = error == EWOULDBLOCK;
  if (in_use) error = parts_.place.folder->Open(segment, false, left);
  if (error != 0) return error == ENOENT ? 0 : error;
  Left found{.name = segment, .file = std::move(left)};
  if (error = found.Read(); error != 0) return error;
  const bool useless = !in_use && IsUseless(found);
  if (error = StoreSuperblock(); error != 0) return error;
  if (useless) return parts_.place.folder->Remove(segment, *found.file);
  const auto& header = found.header;
  // One that cannot be read has no id, and there may be more of them.
  const std::string aside = AsideName(segment, header ? header->id : NewId());
  if (error = parts_.place.folder->Rename(segment, aside); error != 0) return error;
  if (!in_use) {
    std::fprintf(stderr, "tidelane: %s: a log that is not this file's (of %s) is %s now\n",
                 parts_.path.c_str(), header ? header->path.c_str() : "nobody", aside.c_str());
  }
  return 0;
}

}  // namespace tidelane::log
