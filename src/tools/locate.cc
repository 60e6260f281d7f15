#include "tools/locate.h"

#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace tidelane::tools {
namespace {

constexpr char kPlugin[] = "libtidelane.so";

// Beside the program in an installation (GNU's layouts, and Debian's with the machine's name), in a
// build folder, in a Python environment; patterns of glob.
constexpr const char* kBeside[] = {
    "../lib/tidelane",
    "../lib64/tidelane",
    "../lib/*-linux-*/tidelane",
    "../lib/python3*/site-packages/tidelane/plugin",
    "../lib/python3*/dist-packages/tidelane/plugin",
    "../plugin",
    ".",
};

bool HasPlugin(const std::string& folder) { return IsFile(folder + "/" + kPlugin); }

std::string Clean(const std::string& folder) {
  std::error_code error;
  const auto clean = std::filesystem::canonical(folder, error);
  return error ? folder : clean.string();
}

// The first folder with a plugin that a pattern matches; empty if there is none.
std::string Matching(const std::string& pattern) {
  glob_t found = {};
  std::string folder;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc && folder.empty(); ++i) {
      if (HasPlugin(found.gl_pathv[i])) folder = found.gl_pathv[i];
    }
  }
  globfree(&found);
  return folder;
}

}  // namespace

bool IsFile(const std::string& path) {
  struct stat found;
  return stat(path.c_str(), &found) == 0 && S_ISREG(found.st_mode);
}

bool IsFolder(const std::string& path) {
  struct stat found;
  return stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode);
}

std::vector<std::string> SplitAt(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

bool ReadWhole(const std::string& path, std::string& text) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return false;
  std::ostringstream all;
  all << file.rdbuf();
  text = all.str();
  return !file.bad();
}

std::string OwnPath() {
  std::array<char, PATH_MAX> path;
  const ssize_t size = readlink("/proc/self/exe", path.data(), path.size());
  return size <= 0 ? std::string() : std::string(path.data(), static_cast<size_t>(size));
}

std::string FindPlugins(const std::string& given, std::string& error) {
  if (!given.empty()) {
    if (HasPlugin(given)) return Clean(given);
    error = "there is no " + std::string(kPlugin) + " in " + given;
    return {};
  }
  const std::string own = std::filesystem::path(OwnPath()).parent_path().string();
  for (const char* beside : kBeside) {
    if (const std::string found = Matching(own + "/" + beside); !found.empty()) return Clean(found);
  }
  const char* const searched = std::getenv("HDF5_PLUGIN_PATH");
  for (const std::string& folder : SplitAt(searched == nullptr ? "" : searched, ':')) {
    if (HasPlugin(folder)) return Clean(folder);
  }
  error = std::string(kPlugin) + " was found neither near " + own +
          " nor on HDF5_PLUGIN_PATH: --plugins says where it is";
  return {};
}

std::string FindProgram(const std::string& name) {
  if (name.find('/') != std::string::npos) return access(name.c_str(), X_OK) == 0 ? name : "";
  const char* const path = std::getenv("PATH");
  for (const std::string& folder : SplitAt(path == nullptr ? "/usr/bin:/bin" : path, ':')) {
    const std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    if (IsFile(candidate) && access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return {};
}

}  // namespace tidelane::tools
