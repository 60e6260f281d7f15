/// \file
/// What keeps a file from being brought home, told beside its entry: TIER/E.why. Whoever asks for the state of the tier reads it; nothing depends on it.
///
/// Invariant: it is whole or not there; what is read of it is one line of printable characters, whatever somebody has written there.
/// Thread safety: functions may be called from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "tier/place.h"

namespace tidelane::tier {

struct Trouble {
  std::string reason;
  int64_t since = 0;   ///< seconds since 1970
  uint64_t bytes = 0;  ///< so many were written before it came

  /// False: nothing is told of the entry.
  static bool Read(const Place& place, const std::string& entry, Trouble& trouble);
  /// Tells it; where it was told before it stays since when that is. What finds no room is not told.
  static void Tell(const Place& place, const std::string& entry, const std::string& reason,
                   uint64_t bytes);
  static void Remove(const Place& place, const std::string& entry);
  /// What a mover told of an entry that somebody else has ended meanwhile. `entries`: those there are, in their order.
  static void RemoveStray(const Place& place, const std::vector<std::string>& entries);
  static void RemoveDrafts(const Place& place);

  /// A failure without what everybody knows: which file it is of.
  static std::string ReasonOf(const Status& status);
  /// For how long, in seconds.
  int64_t age() const;
};

}  // namespace tidelane::tier
