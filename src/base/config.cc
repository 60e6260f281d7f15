#include "base/config.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "base/config_file.h"
#include "base/connector_info.h"
#include "base/control_groups.h"
#include "base/memory_limit.h"
#include "base/setting_source.h"
#include "base/settings.h"

namespace tidelane {
namespace {

constexpr char kConnectorVariable[] = "HDF5_VOL_CONNECTOR";

Status ForEachVariable(Config& config, Status (*set)(Config& config, std::string_view entry)) {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    if (Status status = set(config, *entry); !status.ok()) return status;
  }
  return {};
}

Status LoadSources(Config& config) {
  if (const char* path = std::getenv("TIDELANE_CONFIG"); path != nullptr && *path != '\0') {
    if (Status status = LoadConfigFile(path, config); !status.ok()) return status;
  }
  if (Status status = ForEachVariable(config, SetFromAlias); !status.ok()) return status;
  if (Status status = ForEachVariable(config, SetFromVariable); !status.ok()) return status;
  return LoadConnectorInfo(OurConnectorInfo(std::getenv(kConnectorVariable)), kConnectorVariable,
                           config);
}

}  // namespace

Status LoadConfig(Config& config) {
  Config loaded;
  if (Status status = LoadSources(loaded); !status.ok()) return status;
  if (loaded.arena_bytes == 0) loaded.arena_bytes = DefaultArenaBytes();
  config = std::move(loaded);
  return {};
}

std::vector<SettingValue> EffectiveSettings(const Config& config) {
  std::vector<SettingValue> values;
  for (const Setting& setting : Settings()) {
    std::string value = setting.value.show(config);
    if (setting.scope == Scope::kVariable && value.empty()) continue;
    const auto origin = config.origins.find(setting.name);
    values.push_back({std::string(setting.name), std::move(value),
                      origin == config.origins.end() ? "default" : origin->second, ""});
  }
  values.insert(values.end(), config.without_effect.begin(), config.without_effect.end());
  return values;
}

uint64_t ShareOfMemory() {
  // Whoever exceeds a control group's limit is killed, and what the program will take is not known.
  const uint64_t group_limit = MemoryGroupLimit();
  const uint64_t usable = UsableMemoryBelow(group_limit);
  return usable / (usable == group_limit ? 8 : 4);
}

uint64_t DefaultArenaBytes() {
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  const uint64_t share = ShareOfMemory() / RanksOnThisNode();
  return std::clamp(share, 16 * kMiB, 4096 * kMiB) / kMiB * kMiB;
}

}  // namespace tidelane
