/// \file
/// Settings on the command line, for a program that is to run with Tidelane.
///
/// Invariant: what the user had set stays, but for what the command line says otherwise.
///
/// Thread safety: changes the environment; one thread.
#pragma once

#include <string>
#include <vector>

#include "base/config.h"
#include "base/status.h"
#include "tools/arguments.h"
#include "tools/option.h"

namespace tidelane::tools {

/// An option for each setting, and --set NAME=VALUE for those who know the name.
std::vector<Option> SettingOptions();

/// "name=value" of every setting on the command line.
std::vector<std::string> SettingsOf(const Arguments& arguments);

/// Puts settings into this process's environment. A mistake is told as base/setting_source.h does.
Status ApplySettings(const std::vector<std::string>& settings);

}  // namespace tidelane::tools
