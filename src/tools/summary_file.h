/// \file
/// Summaries that processes left as JSON (docs/summary.schema.json), read back.
///
/// Invariant: a file of another version is read as far as it is understood, or refused with its
/// version; a damaged one is refused with the place; nothing of a file is believed unchecked.
///
/// Thread safety: values.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/summary.h"

namespace tidelane::tools {

using Json = nlohmann::ordered_json;

struct ProcessSummary {
  std::string path;
  std::string version;  ///< of the plugin that wrote it
  int rank = -1;        ///< unknown: -1
  Summary summary;
  std::vector<std::pair<std::string, std::string>> advice;  ///< rule and words
  Json json;                                                ///< as it was read
};

/// False with a line for a person in `error`.
bool ReadSummary(const std::string& path, ProcessSummary& process, std::string& error);

/// All as one: counts and times added up. Not of none.
Summary Together(const std::vector<ProcessSummary>& processes);
/// Each rule once, with how many processes said it where there are several.
std::vector<std::string> AdviceOf(const std::vector<ProcessSummary>& processes);

/// What TIDELANE_SUMMARY=1 prints, for one process or several.
std::string TableOf(const std::vector<ProcessSummary>& processes);

// Of JSON that may be anything.
const Json& At(const Json& json, const char* key);  ///< null if there is none
double NumberAt(const Json& json, const char* key);
uint64_t WholeAt(const Json& json, const char* key);
std::string TextAt(const Json& json, const char* key);

}  // namespace tidelane::tools
