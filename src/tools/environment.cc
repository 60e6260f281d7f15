#include "tools/environment.h"

#include <algorithm>

#include "base/setting_source.h"
#include "base/settings.h"
#include "tools/plugin_environment.h"

namespace tidelane::tools {
namespace {

constexpr char kSwitch[] = "set";

std::string DashesFor(std::string name) {
  std::ranges::replace(name, '_', '-');
  return name;
}

std::string NameOf(std::string_view item) {
  return std::string(Trim(item.substr(0, item.find('='))));
}

std::string ValueWord(const Setting& setting) {
  const std::vector<std::string_view> words = setting.value.words();
  if (!setting.accepted.empty() || words.empty()) return "VALUE";
  std::string text;
  for (const std::string_view word : words) {
    text += (text.empty() ? "" : "|") + std::string(word);
  }
  return text;
}

std::string MeaningOf(const Setting& setting) {
  std::string text(setting.meaning);
  if (!setting.accepted.empty()) text += ": " + std::string(setting.accepted);
  return text + " (default: " + DefaultOf(setting) + ")";
}

}  // namespace

std::vector<Option> SettingOptions() {
  std::vector<Option> options{
      {"--set", "NAME=VALUE", "a setting by its name; may be given again", true}};
  for (const Setting& setting : Settings()) {
    Option option{"--" + DashesFor(std::string(setting.name)), ValueWord(setting),
                  MeaningOf(setting)};
    for (const std::string_view word : setting.value.words()) option.words.emplace_back(word);
    if (option.words.empty() && (setting.accepted.find("path") != std::string_view::npos)) {
      option.completes = Completes::kFile;
    }
    option.setting = true;
    options.push_back(std::move(option));
  }
  return options;
}

std::vector<std::string> SettingsOf(const Arguments& arguments) {
  std::vector<std::string> settings = arguments.All(kSwitch);
  for (const Setting& setting : Settings()) {
    const std::string name(setting.name);
    for (const std::string& value : arguments.All(DashesFor(name))) {
      settings.push_back(name + "=" + value);
    }
  }
  return settings;
}

Status ApplySettings(const std::vector<std::string>& settings) {
  SettingText text;
  Config config;
  for (const std::string& item : settings) {
    const std::string name = NameOf(item);
    const Setting* const setting = FindSetting(name);
    const bool by_variable = setting != nullptr && setting->scope == Scope::kVariable;
    if (!by_variable) {
      if (Status status = text.Set(config, item, "command line"); !status.ok()) return status;
    }
    ForceSetting(name, std::string(Trim(std::string_view(item).substr(item.find('=') + 1))));
  }
  return {};
}

}  // namespace tidelane::tools
