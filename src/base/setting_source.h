/// \file
/// Setting one setting from a variable or from a line of text, and saying what was wrong with it.
///
/// Invariant: a setting that was set has its origin in the config.
///
/// Thread safety: one object, one thread; the functions are pure.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/config.h"

namespace tidelane {

/// Without the blanks on both sides.
std::string_view Trim(std::string_view text);

/// `entry` is "NAME=value" as in the environment. TIDELANE_* names must exist; those that belong to
/// scripts, and everything else, are left alone.
Status SetFromVariable(Config& config, std::string_view entry);
/// The same for HDF5_ASYNC_* names. A name that is not known there either is somebody else's affair:
/// it is noted as without effect, as are those for which there is nothing to do.
Status SetFromAlias(Config& config, std::string_view entry);

/// A text with several settings: a file or a connector info string.
class SettingText {
 public:
  /// `item` is "name=value", with or without blanks around both; `origin` says where it stands. What
  /// occurs twice in the text is a mistake; so is what only a variable may give.
  Status Set(Config& config, std::string_view item, const std::string& origin);

 private:
  std::map<std::string_view, std::string> seen_;  // where, by the table's name
};

}  // namespace tidelane
