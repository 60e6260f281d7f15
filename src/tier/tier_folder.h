/// \file
/// The folder of a log that lies in a tier: its first segment brings the entry and the marker with it, its last one takes them away.
///
/// Invariant: where there is a segment there is the entry, made before it and removed after it, and when the file is marked there is the marker.
/// Thread safety: as log::Folder.
#pragma once

#include <memory>
#include <string>

#include "lane/lanes.h"
#include "log/folder.h"
#include "publish/directory_entry.h"
#include "tier/entry.h"
#include "tier/place.h"

namespace tidelane::tier {

/// `beside`: the file's own name and folder. `lanes`: one of them writes the marker; nullptr: it is written when it is needed.
std::unique_ptr<log::Folder> MakeTierFolder(std::shared_ptr<const Place> place, Entry entry,
                                            std::shared_ptr<const DirectoryEntry> beside,
                                            Lanes* lanes);
/// The same, of a log that is there, with its entry and its marker: another program has left it.
std::unique_ptr<log::Folder> FindTierFolder(std::shared_ptr<const Place> place, Entry entry,
                                            std::shared_ptr<const DirectoryEntry> beside,
                                            Lanes* lanes);

}  // namespace tidelane::tier
