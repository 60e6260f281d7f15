/// \file
/// What a tier knows of a file whose last commit it has: the entry in the tier, beside the log, and the marker beside the file.
///
///   TIER/E.file, E-wal.0, E-wal.1    the entry, and the log (docs/formats/log.md)
///   TIER/E.why                       what keeps it from being brought home (tier/trouble.h)
///   FOLDER/NAME-tier                 the marker: which machine, which tier, which E
///
/// Invariant: both are whole, or not there: they get their names when they are written.
/// Thread safety: values; functions may be called from any thread.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "device/identity.h"
#include "publish/directory_entry.h"
#include "tier/place.h"

namespace tidelane::tier {

struct Entry {
  std::string name;  ///< E, 16 hexadecimal digits
  std::string path;  ///< of the file, where its name leads
  FileIdentity file;

  /// With a new name.
  static Entry For(std::string path, const FileIdentity& file);
  /// 0 or an errno; EINVAL: it is none.
  static int Read(const Place& place, const std::string& name, Entry& entry);
  int Write(const Place& place) const;
  static int Remove(const Place& place, const std::string& name);
  /// Removes what programs have left that were killed while they wrote one.
  static void RemoveDrafts(const Place& place);
  /// The names of all there are.
  static std::vector<std::string> AllIn(const Place& place);
};

/// Behind the file's name.
inline constexpr std::string_view kMarkerEnd = "-tier";

struct Marker {
  std::string host;
  std::string boot;
  std::string entry;  ///< E
  std::string tier;   ///< its path
  bool in_memory = false;

  /// Whether there is one beside the file at `path`: all that a program without a tier pays. Needs no memory, which a rank may lack
  /// where others wait for it.
  static bool IsBeside(std::string_view path);
  /// Beside the file `beside`; 0 or an errno; EINVAL: it is none.
  static int Read(const DirectoryEntry& beside, Marker& marker);
  int Write(const DirectoryEntry& beside) const;
  /// If it is that of `entry`, or nobody's.
  static void Remove(const DirectoryEntry& beside, const std::string& entry);
};

/// The whole path of a file in a folder.
std::string PathIn(const DirectoryEntry& entry);

}  // namespace tidelane::tier
