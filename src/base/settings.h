/// \file
/// The one table of settings: name, values, default, whose it is, what it means. Parsing, errors,
/// what is reported to be in force, and docs/settings.md all come from it.
///
/// Invariant: a setting exists exactly once; so does an alias.
///
/// Thread safety: constant data.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/setting_value.h"

namespace tidelane {

enum class Scope {
  kFile,      ///< a file may have its own, by its access list
  kProcess,   ///< one for the process, fixed when the plugin starts
  kVariable,  ///< the process's, and given by its environment variable only
};

struct Setting {
  std::string_view name;  ///< as in files and info strings; the variable is TIDELANE_ and capitals
  Scope scope;
  ValueType value;
  std::string_view accepted;      ///< what it takes; empty: the type's words say it
  std::string_view default_text;  ///< where a plain value would not say it; empty: it does
  std::string_view meaning;       ///< a line
  std::string_view details;       ///< paragraphs for the reference page; may be empty
};

/// A variable of the existing asynchronous connector.
struct Alias {
  std::string_view variable;
  std::string_view setting;  ///< what it sets; empty: there is nothing to do here
  std::string_view accepted;
  /// Its value in the words of `setting`; empty when it asks for the default. False: unacceptable.
  bool (*translate)(std::string_view value, std::string& text);
  std::string_view meaning;  ///< what is done with it here, or why nothing
};

std::span<const Setting> Settings();
std::span<const Alias> Aliases();

/// nullptr when there is none.
const Setting* FindSetting(std::string_view name);
std::vector<std::string_view> SettingNames();

/// "TIDELANE_CLOSE" for "close".
std::string VariableOf(std::string_view name);
/// What it takes: "wait or deferred", "a number from 1 to 64".
std::string AcceptedBy(const Setting& setting);
std::string DefaultOf(const Setting& setting);

}  // namespace tidelane
