/// \file
/// The folder of a log that lies in a tier: its first segment brings the entry and the marker with it, its last one takes them away.
///
/// Invariant: where there is a segment there are the entry and the marker, made before it and removed after it.
/// Thread safety: as log::Folder.
#pragma once

#include <memory>
#include <string>

#include "log/folder.h"
#include "publish/directory_entry.h"
#include "tier/entry.h"
#include "tier/place.h"

namespace tidelane::tier {

/// `beside`: the file's own name and folder.
std::unique_ptr<log::Folder> MakeTierFolder(std::shared_ptr<const Place> place, Entry entry,
                                            std::shared_ptr<const DirectoryEntry> beside);

}  // namespace tidelane::tier
