/// \file
/// Where things are: this program, the plugin beside it, programs on PATH.
///
/// Invariant: nothing is known from the build: a moved installation, or a Python wheel, works.
///
/// Thread safety: as getenv.
#pragma once

#include <string>
#include <vector>

namespace tidelane::tools {

/// The path of this program's file.
std::string OwnPath();

/// The folder with libtidelane.so: `given` if not empty, else beside this program, else on
/// HDF5_PLUGIN_PATH. Empty, with what was looked for in `error`, if there is none.
std::string FindPlugins(const std::string& given, std::string& error);

/// As a shell would find it; empty if there is none.
std::string FindProgram(const std::string& name);

bool IsFile(const std::string& path);
bool IsFolder(const std::string& path);

std::vector<std::string> SplitAt(const std::string& text, char separator);
/// All of a file (or of /proc's); false if it cannot be read.
bool ReadWhole(const std::string& path, std::string& text);

}  // namespace tidelane::tools
