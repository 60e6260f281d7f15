#include "tools/config_command.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/config.h"
#include "base/config_file.h"
#include "base/connector_info.h"
#include "base/setting_source.h"
#include "base/settings.h"
#include "base/words.h"
#include "tools/environment.h"
#include "tools/summary_file.h"
#include "tools/terminal.h"

namespace tidelane::tools {
namespace {

// LoadConfig stops at the first mistake, as a program must; who puts settings right wants all.
std::vector<std::string> Mistakes() {
  std::vector<std::string> mistakes;
  const auto note = [&](const Status& status) {
    if (!status.ok()) mistakes.push_back(InWords(status));
  };
  Config config;
  const char* const path = std::getenv("TIDELANE_CONFIG");
  if (path != nullptr && *path != '\0') note(LoadConfigFile(path, config));
  for (char** entry = environ; *entry != nullptr; ++entry) {
    note(SetFromAlias(config, *entry));
    note(SetFromVariable(config, *entry));
  }
  const char* const connector = std::getenv("HDF5_VOL_CONNECTOR");
  const std::string info(OurConnectorInfo(connector));
  note(LoadConnectorInfo(info, "HDF5_VOL_CONNECTOR", config));
  return mistakes;
}

Json ToJson(const std::vector<SettingValue>& values) {
  Json list = Json::array();
  for (const SettingValue& value : values) {
    list.push_back({{"name", value.name},
                    {"value", value.value},
                    {"origin", value.origin},
                    {"note", value.note}});
  }
  return list;
}

void PrintTable(const std::vector<SettingValue>& values, bool changed_only) {
  std::string text;
  Print(text, "%-18s %-14s %-26s %s\n", "setting", "value", "from", "");
  for (const SettingValue& value : values) {
    const bool by_default = value.origin == "default";
    if (changed_only && by_default) continue;
    const Setting* const setting = FindSetting(value.name);
    const std::string meaning = setting == nullptr ? value.note : std::string(setting->meaning);
    std::string line;
    Print(line, "%-18s %-14s %-26s ", value.name.c_str(), value.value.c_str(),
          value.origin.c_str());
    text += by_default ? line : Coloured(Colour::kBold, line);
    text += Coloured(Colour::kFaint, meaning) + "\n";
  }
  std::fputs(text.c_str(), stdout);
}

}  // namespace

int ShowConfig(const Arguments& arguments) {
  if (const Status status = ApplySettings(SettingsOf(arguments)); !status.ok()) {
    return Fail(kUsage, InWords(status));
  }
  const std::vector<std::string> mistakes = Mistakes();
  for (const std::string& mistake : mistakes) Tell(mistake);
  if (!mistakes.empty()) return kUsage;
  Config config;
  if (const Status status = LoadConfig(config); !status.ok()) {
    return Fail(kUsage, InWords(status));
  }
  const std::vector<SettingValue> values = EffectiveSettings(config);
  if (arguments.Has("json")) {
    std::puts(ToJson(values).dump(2, ' ', false, Json::error_handler_t::replace).c_str());
  } else {
    PrintTable(values, arguments.Has("changed"));
  }
  return kDone;
}

}  // namespace tidelane::tools
