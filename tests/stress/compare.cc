// The last comparison: finished files, read by HDF5's own tools in processes without the plugin.
// h5diff compares contents; the text of `h5dump -p -H` compares structure, properties and storage.
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string_view>

#include "stress/runner.h"

namespace tidelane::stress {
namespace {

namespace fs = std::filesystem;

struct Finished {
  int status = -1;
  std::string output;
};

Finished shell(const std::string& dir, const std::string& command) {
  const std::string line = "cd '" + dir +
                           "' && env -u HDF5_VOL_CONNECTOR -u LD_PRELOAD -u LD_LIBRARY_PATH "
                           "'HDF5_PLUGIN_PATH=" STRESS_FILTERS_DIR
                           "' 'HDF5_EXTFILE_PREFIX=${ORIGIN}' " +
                           command + " 2>&1";
  Finished finished;
  FILE* pipe = ::popen(line.c_str(), "r");
  if (pipe == nullptr) return finished;
  char buffer[4096];
  for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) {
    finished.output.append(buffer, n);
  }
  const int status = ::pclose(pipe);
  finished.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return finished;
}

std::set<std::string> names(const std::string& dir) {
  std::set<std::string> found;
  for (const auto& entry : fs::directory_iterator(dir)) {
    if (entry.is_regular_file() && !entry.is_symlink()) found.insert(entry.path().filename());
  }
  return found;
}

std::string first_different_line(const std::string& a, const std::string& b) {
  size_t line_start = 0;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (a[i] != b[i]) break;
    if (a[i] == '\n') line_start = i + 1;
  }
  const auto line = [&](const std::string& s) {
    return s.substr(std::min(line_start, s.size()), s.find('\n', line_start) - line_start);
  };
  return "    plugin " + line(a) + "\n    native " + line(b);
}

// Where things lie may differ: a flush gives HDF5's allocation blocks back, and the plugin flushes
// at closes at which native does not. So may the storage of what can shrink: see keeps_its_chunks.
std::string comparable(const std::string& text) {
  std::string out;
  size_t at = 0;
  bool can_shrink = false;
  while (at < text.size()) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string line = text.substr(at, end - at);
    const size_t word = line.find_first_not_of(' ');
    const auto starts_with = [&](std::string_view what) {
      return word != std::string::npos && line.compare(word, what.size(), what) == 0;
    };
    if (starts_with("DATASPACE")) can_shrink = line.find("H5S_UNLIMITED") != std::string::npos;
    if (!starts_with("OFFSET ") && !(can_shrink && starts_with("SIZE "))) out += line;
    at = end;
  }
  return out;
}

bool compare_one(const std::string& dir, const std::string& tools, const std::string& name) {
  const std::string dump = tools + "/h5dump -p -H " + name;
  Finished a = shell(dir + "/a", dump);
  Finished b = shell(dir + "/b", dump);
  a.output = comparable(a.output);
  b.output = comparable(b.output);
  if (b.status == 127 || b.status == 126) {
    std::fprintf(stderr, "cannot run %s: %s\n", dump.c_str(), b.output.c_str());
    return false;
  }
  if (a.status != b.status || a.output != b.output) {
    std::fprintf(stderr, "DIFFERENCE in the headers of %s/{a,b}/%s (status %d, %d)\n%s\n",
                 dir.c_str(), name.c_str(), a.status, b.status,
                 first_different_line(a.output, b.output).c_str());
    return false;
  }
  if (b.status != 0) return true;  // neither side's file can be opened: a create that failed
  const Finished diff = shell(dir, tools + "/h5diff a/" + name + " b/" + name);
  if (diff.status != 0) {
    std::fprintf(stderr, "DIFFERENCE found by h5diff in %s/{a,b}/%s (status %d)\n%.2000s\n",
                 dir.c_str(), name.c_str(), diff.status, diff.output.c_str());
    return false;
  }
  return true;
}

}  // namespace

bool compare_files(const std::string& dir, const std::string& tools) {
  const auto plugin = names(dir + "/a"), native = names(dir + "/b");
  if (plugin != native) {
    std::fprintf(stderr, "DIFFERENCE in %s: %zu files through the plugin, %zu natively\n",
                 dir.c_str(), plugin.size(), native.size());
    for (const auto& name : plugin) std::fprintf(stderr, "  %s\n", name.c_str());
    return false;
  }
  for (const auto& name : native) {
    if (!compare_one(dir, tools, name)) return false;
  }
  return true;
}

}  // namespace tidelane::stress
