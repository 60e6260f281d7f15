#include "tools/mover_command.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/config.h"
#include "tier/mover.h"
#include "tools/environment.h"
#include "tools/terminal.h"

namespace tidelane::tools {
namespace {

constexpr double kMostSeconds = 1e9;

// 0: never. False: it is no time.
bool ReadIdle(const std::string& text, std::chrono::milliseconds& idle) {
  char* end = nullptr;
  const double seconds = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || *end != '\0' || !(seconds >= 0 && seconds <= kMostSeconds))
    return false;
  idle = std::chrono::milliseconds(
      static_cast<int64_t>(seconds == 0 ? kMostSeconds * 1e3 : seconds * 1e3));
  return true;
}

}  // namespace

int MoveFiles(const Arguments& arguments) {
  Config config;
  Status status = ApplySettings(SettingsOf(arguments));
  if (status.ok()) status = LoadConfig(config);
  if (!status.ok()) return Fail(kUsage, InWords(status));
  tier::MoverOptions options{.rate = config.tier_rate, .streams = config.tier_streams};
  if (arguments.Has("idle") && !ReadIdle(arguments.Get("idle"), options.idle))
    return Fail(kUsage, "--idle is a number of seconds, such as 60; 0: until it is interrupted");
  if (config.tier.empty())
    return Fail(kUsage, "no tier: --tier (or TIDELANE_TIER) says memory, or a folder");
  tier::Place place;
  if (status = tier::Place::Open(config.tier, true, place); !status.ok())
    return Fail(kFailed, InWords(status));
  if (tier::HasMover(place)) return Fail(kFailed, place.path + ": a mover is there already");
  const int niceness = static_cast<int>(config.tier_nice);
  setpriority(PRIO_PROCESS, 0, std::max(getpriority(PRIO_PROCESS, 0), niceness));
  const int error = tier::RunMover(place.path, options);
  return error == 0 ? kDone : Fail(kFailed, place.path + ": " + std::strerror(error));
}

}  // namespace tidelane::tools
