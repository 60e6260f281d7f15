/// \file
/// The text after the connector's name, without HDF5: "under_vol=0;under_info={};close=deferred".
///
/// In HDF5_VOL_CONNECTOR it may set everything; on an access list, what is the process's can only be
/// repeated, and the rest is for the files opened with that list.
///
/// Invariant: the text of a FileChoice, read again, gives the same FileChoice.
///
/// Thread safety: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/config.h"

namespace tidelane {

/// What a file has for itself.
struct FileChoice {
  std::string text;       ///< the settings given, in the table's order: "close=deferred;gap=64k"
  FileSettings settings;  ///< the process's, and these on top
};

/// What a person calls the info string of an access list.
inline constexpr char kAccessList[] = "connector info";

/// Sets everything that `text` says. `under_vol` must be 0, the native connector, with nothing for
/// it to know.
Status LoadConnectorInfo(std::string_view text, const std::string& origin, Config& config);

/// Whether HDF5_VOL_CONNECTOR's value (may be nullptr) names us.
bool NamesOurConnector(const char* variable);

/// The part of HDF5_VOL_CONNECTOR's value (may be nullptr) that is for us to read: what follows our
/// name; empty when it names another connector.
std::string_view OurConnectorInfo(const char* variable);

/// `text` is an access list's info; `in_force` are the process's settings.
Status ReadFileChoice(std::string_view text, const Config& in_force, FileChoice& choice);

}  // namespace tidelane
