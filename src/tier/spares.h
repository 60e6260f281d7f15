/// \file
/// Segments that nobody needs any more, kept for the next ones: a file's pages cost more to make than to write (in memory four times as much).
///
/// Invariant: a spare is a file that nobody has open, and has no header of a log.
/// Thread safety: all functions may be called from any thread and process.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "log/folder.h"
#include "tier/place.h"

namespace tidelane::tier {

/// A spare becomes the file `name`, claimed; ENOENT: there is none.
int TakeSpare(const Place& place, const std::string& name, std::unique_ptr<Device>& file);

/// Removes all, or as many as it takes to have no more than `most` bytes of them; whether there was one to remove.
bool DropSpares(const Place& place, uint64_t most = 0);

/// The folder of logs that are brought home: what is removed there becomes spare, as far as `most` bytes of them go.
std::unique_ptr<log::Folder> MakeSparingFolder(const Place& place, uint64_t most);

}  // namespace tidelane::tier
