/// \file
/// An option of a sub-command, as it can be typed and as it is told of.
///
/// Thread safety: a value.
#pragma once

#include <string>
#include <vector>

namespace tidelane::tools {

/// What a value is, for completion.
enum class Completes { kNothing, kFile, kFolder };

struct Option {
  std::string names;    ///< "-o,--output"; the long one last
  std::string value;    ///< "FILE"; empty for a switch
  std::string meaning;  ///< a line
  bool repeated = false;
  Completes completes = Completes::kNothing;
  std::vector<std::string> words = {};  ///< values known beforehand
  bool setting = false;                 ///< one of Tidelane's settings

  /// "--output"
  std::string Long() const { return names.substr(names.rfind("--")); }
  /// "-o", or empty
  std::string Short() const {
    return names.starts_with("--") ? std::string() : names.substr(0, names.find(','));
  }
};

}  // namespace tidelane::tools
