/// \file
/// What was typed, and the statuses that the program ends with.
///
/// Thread safety: values.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tidelane::tools {

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;       ///< what was checked is not in order
inline constexpr int kUsage = 2;        ///< a wrong option, a file that cannot be used
inline constexpr int kCannotRun = 125;  ///< `run` itself failed, before the program began
inline constexpr int kNotExecutable = 126;
inline constexpr int kNotFound = 127;

class Arguments {
 public:
  bool Has(const std::string& name) const { return values.contains(name); }
  /// The last value given.
  std::string Get(const std::string& name, const std::string& otherwise = "") const {
    const auto found = values.find(name);
    return found == values.end() || found->second.empty() ? otherwise : found->second.back();
  }
  std::vector<std::string> All(const std::string& name) const {
    const auto found = values.find(name);
    return found == values.end() ? std::vector<std::string>() : found->second;
  }

  std::map<std::string, std::vector<std::string>> values;  ///< by long name, without the dashes
  std::vector<std::string> operands;
};

}  // namespace tidelane::tools
