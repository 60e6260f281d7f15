/// \file
/// Settings from a file: lines `name = value`; # at the beginning of a line or after a blank begins
/// a comment.
///
/// Thread safety: pure but for reading the file.
#pragma once

#include <string>
#include <string_view>

#include "base/config.h"

namespace tidelane {

/// A mistake is told with `path`:line.
Status LoadConfigFile(const std::string& path, Config& config);

/// The same for the text of a file; `path` is for messages and origins.
Status LoadConfigText(std::string_view text, const std::string& path, Config& config);

}  // namespace tidelane
