#include "base/setting_source.h"

#include <algorithm>
#include <cerrno>

#include "base/nearest.h"
#include "base/settings.h"

namespace tidelane {
namespace {

constexpr std::string_view kPrefix = "TIDELANE_";
constexpr std::string_view kAliasPrefix = "HDF5_ASYNC_";

// False when `entry` is not "name=value".
bool Split(std::string_view entry, std::string_view& name, std::string_view& value) {
  const size_t equals = entry.find('=');
  if (equals == std::string_view::npos) return false;
  name = entry.substr(0, equals);
  value = entry.substr(equals + 1);
  return true;
}

Status Refuse(std::string_view operation) { return Status::Failed(EINVAL, operation); }

// `where` is how a person finds the place: "TIDELANE_LANES='many'", "lanes='many' (run.conf:3)".
Status RefuseValue(const std::string& where, std::string_view value, std::string_view accepted,
                   std::span<const std::string_view> words) {
  std::string text = "use " + where + ": accepted are " + std::string(accepted);
  if (const std::string_view meant = Meant(value, words); !meant.empty()) {
    text += "; the nearest is " + std::string(meant);
  }
  return Refuse(std::move(text));
}

Status Assign(Config& config, const Setting& setting, std::string_view value,
              const std::string& where, const std::string& origin) {
  if (value.empty()) return {};
  Config changed = config;
  if (!setting.value.parse(changed, value)) {
    return RefuseValue(where, value, AcceptedBy(setting), setting.value.words());
  }
  changed.origins[std::string(setting.name)] = origin;
  config = std::move(changed);
  return {};
}

std::string Quoted(std::string_view name, std::string_view value) {
  return std::string(name) + "='" + std::string(value) + "'";
}

bool BelongsToScripts(std::string_view variable) {
  return variable == "TIDELANE_HDF5_ROOT" || variable.starts_with("TIDELANE_TEST_") ||
         variable.starts_with("TIDELANE_BENCH_");
}

const Setting* FindByVariable(std::string_view variable) {
  const auto found = std::ranges::find_if(
      Settings(), [&](const Setting& setting) { return VariableOf(setting.name) == variable; });
  return found == Settings().end() ? nullptr : &*found;
}

}  // namespace

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

Status SetFromVariable(Config& config, std::string_view entry) {
  std::string_view variable;
  std::string_view value;
  if (!entry.starts_with(kPrefix) || !Split(entry, variable, value)) return {};
  if (BelongsToScripts(variable)) return {};
  const Setting* setting = FindByVariable(variable);
  if (setting == nullptr) {
    const std::vector<std::string_view> names = SettingNames();
    return Refuse("use the environment variable " + std::string(variable) +
                  ": there is no such setting; the nearest is " +
                  VariableOf(Nearest(variable.substr(kPrefix.size()), names)));
  }
  return Assign(config, *setting, value, Quoted(variable, value), std::string(variable));
}

Status SetFromAlias(Config& config, std::string_view entry) {
  std::string_view variable;
  std::string_view value;
  if (!entry.starts_with(kAliasPrefix) || !Split(entry, variable, value) || value.empty())
    return {};
  const auto alias = std::ranges::find(Aliases(), variable, &Alias::variable);
  const bool known = alias != Aliases().end();
  if (!known || alias->setting.empty()) {
    config.without_effect.push_back(
        {std::string(variable), std::string(value), std::string(variable),
         std::string(known ? alias->meaning : "not known here, and left alone")});
    return {};
  }
  std::string text;
  const std::string where = Quoted(variable, value);
  if (!alias->translate(value, text)) return RefuseValue(where, value, alias->accepted, {});
  return Assign(config, *FindSetting(alias->setting), text, where, std::string(variable));
}

Status SettingText::Set(Config& config, std::string_view item, const std::string& origin) {
  std::string_view name;
  std::string_view value;
  if (!Split(item, name, value)) {
    return Refuse("use '" + std::string(Trim(item)) + "' (" + origin + "): expected name=value");
  }
  name = Trim(name);
  value = Trim(value);
  const Setting* setting = FindSetting(name);
  if (setting == nullptr) {
    return Refuse("use the setting '" + std::string(name) + "' (" + origin +
                  "): there is no such setting; the nearest is " +
                  std::string(Nearest(name, SettingNames())));
  }
  if (setting->scope == Scope::kVariable) {
    return Refuse("use the setting '" + std::string(name) + "' (" + origin +
                  "): only the environment variable " + VariableOf(name) + " can give it");
  }
  if (const auto [seen, first] = seen_.emplace(setting->name, origin); !first) {
    return Refuse("use the setting '" + std::string(name) + "' (" + origin +
                  "): it was given before (" + seen->second + ")");
  }
  return Assign(config, *setting, value, Quoted(name, value) + " (" + origin + ")", origin);
}

}  // namespace tidelane
