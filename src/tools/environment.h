/// \file
/// The environment of a program that is to run with Tidelane.
///
/// Invariant: what the user had set stays, but for what the command line says otherwise: plugins are
/// found where they were, behind ours; the text after our connector's name is kept.
///
/// Thread safety: changes the environment; one thread.
#pragma once

#include <string>
#include <vector>

#include "base/config.h"
#include "base/status.h"
#include "tools/arguments.h"
#include "tools/commands.h"

namespace tidelane::tools {

/// An option for each setting, and --set NAME=VALUE for those who know the name.
std::vector<Option> SettingOptions();

/// "name=value" of every setting on the command line.
std::vector<std::string> SettingsOf(const Arguments& arguments);

/// Puts settings into this process's environment. A mistake is told as base/setting_source.h does.
Status ApplySettings(const std::vector<std::string>& settings);

/// One setting that is told nobody else: also taken out of the text after the connector's name.
void ForceSetting(const std::string& name, const std::string& value);

/// HDF5_PLUGIN_PATH and HDF5_VOL_CONNECTOR. `replaced` is the name of another connector that was
/// asked for there.
void TurnOn(const std::string& plugins, std::string& replaced);

}  // namespace tidelane::tools
