#include "base/connector_info.h"

#include <cerrno>

#include "base/setting_source.h"
#include "base/settings.h"

namespace tidelane {
namespace {

constexpr char kSpace[] = " \t\r\n";

Status RefuseStacking(std::string_view item, const std::string& origin) {
  return Status::Failed(EINVAL,
                        "use '" + std::string(item) + "' (" + origin +
                            "): Tidelane stacks on the native connector only, so its info says "
                            "\"under_vol=0;under_info={}\" or neither");
}

// Takes the first item off; items are separated by semicolons.
std::string_view NextItem(std::string_view& text) {
  const size_t end = text.find(';');
  const std::string_view item = Trim(text.substr(0, end));
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return item;
}

std::string WithValue(const Setting& setting, const Config& config) {
  return std::string(setting.name) + "=" + setting.value.show(config);
}

}  // namespace

Status LoadConnectorInfo(std::string_view text, const std::string& origin, Config& config) {
  SettingText settings;
  bool has_under_vol = false;
  while (!Trim(text).empty()) {
    const std::string_view item = NextItem(text);
    if (item == "under_vol=0") {
      has_under_vol = true;
    } else if (item.starts_with("under_")) {
      if (!has_under_vol || item != "under_info={}") return RefuseStacking(item, origin);
    } else if (!item.empty()) {
      if (Status status = settings.Set(config, item, origin); !status.ok()) return status;
    }
  }
  return {};
}

bool NamesOurConnector(const char* variable) {
  const std::string_view text = Trim(variable == nullptr ? "" : variable);
  const std::string_view name = text.substr(0, text.find_first_of(kSpace));
  return name == "tidelane" || name == "async";
}

std::string_view OurConnectorInfo(const char* variable) {
  if (!NamesOurConnector(variable)) return {};
  const std::string_view text = Trim(variable);
  const size_t end = text.find_first_of(kSpace);
  if (end == std::string_view::npos) return {};
  const std::string_view rest = Trim(text.substr(end));
  return rest.substr(0, rest.find_first_of("\r\n"));  // HDF5 reads one line
}

Status ReadFileChoice(std::string_view text, const Config& in_force, FileChoice& choice) {
  Config wanted = in_force;
  wanted.origins.clear();
  if (Status status = LoadConnectorInfo(text, kAccessList, wanted); !status.ok()) return status;
  FileChoice read{"", wanted};
  for (const Setting& setting : Settings()) {
    if (!wanted.origins.contains(setting.name)) continue;
    if (setting.scope == Scope::kFile) {
      read.text += (read.text.empty() ? "" : ";") + WithValue(setting, wanted);
    } else if (setting.value.show(wanted) != setting.value.show(in_force)) {
      return Status::Failed(
          EINVAL, "use " + WithValue(setting, wanted) + " (" + kAccessList +
                      "): it is one for the whole process, and " + WithValue(setting, in_force) +
                      " has been in force since Tidelane was loaded; " + VariableOf(setting.name) +
                      " or HDF5_VOL_CONNECTOR can give it before that");
    }
  }
  choice = std::move(read);
  return {};
}

}  // namespace tidelane
