/// \file
/// The environment that makes HDF5 load Tidelane.
///
/// Invariant: what the user had set stays, but for what is said otherwise: plugins are found where they were, behind ours; the text after
/// our connector's name is kept.
///
/// Thread safety: changes the environment; one thread.
#pragma once

#include <string>

namespace tidelane::tools {

/// One setting that is told nobody else: also taken out of the text after the connector's name.
void ForceSetting(const std::string& name, const std::string& value);

/// HDF5_PLUGIN_PATH and HDF5_VOL_CONNECTOR. `replaced` is the name of another connector that was
/// asked for there.
void TurnOn(const std::string& plugins, std::string& replaced);

}  // namespace tidelane::tools
