#include "tools/plugin_environment.h"

#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/connector_info.h"
#include "base/setting_source.h"
#include "base/settings.h"
#include "tools/locate.h"

namespace tidelane::tools {
namespace {

constexpr char kConnector[] = "HDF5_VOL_CONNECTOR";
constexpr char kPluginPath[] = "HDF5_PLUGIN_PATH";
// HDF5's own default: setting the variable hides it.
constexpr char kDefaultPluginPath[] = "/usr/local/hdf5/lib/plugin";

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

std::string NameOf(std::string_view item) {
  return std::string(Trim(item.substr(0, item.find('='))));
}

// Without the items that set `name`.
void DropFromConnector(const std::string& name) {
  const std::string value = Variable(kConnector);
  const std::string info(OurConnectorInfo(value.c_str()));
  if (info.empty()) return;
  std::string kept;
  for (const std::string& item : SplitAt(info, ';')) {
    if (NameOf(item) == name) continue;
    kept += (kept.empty() ? "" : ";") + item;
  }
  const std::string connector(Trim(value).substr(0, Trim(value).find_first_of(" \t\r\n")));
  setenv(kConnector, (kept.empty() ? connector : connector + " " + kept).c_str(), 1);
}

}  // namespace

void ForceSetting(const std::string& name, const std::string& value) {
  DropFromConnector(name);
  setenv(VariableOf(name).c_str(), value.c_str(), 1);
}

void TurnOn(const std::string& plugins, std::string& replaced) {
  const std::string before = Variable(kPluginPath);
  const std::vector<std::string> searched = SplitAt(before, ':');
  if (searched.empty() || searched.front() != plugins) {
    setenv(kPluginPath, (plugins + ":" + (before.empty() ? kDefaultPluginPath : before)).c_str(),
           1);
  }
  const std::string connector(Trim(Variable(kConnector)));
  const std::string name = connector.substr(0, connector.find_first_of(" \t\r\n"));
  if (name == "tidelane" || name == "async") return;
  replaced = name == "native" ? "" : name;
  setenv(kConnector, "tidelane", 1);
}

}  // namespace tidelane::tools
