#include "tools/tier_status.h"

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "base/words.h"
#include "tier/mover.h"
#include "tools/arguments.h"
#include "tools/summary_file.h"
#include "tools/tiers.h"

namespace tidelane::tools {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kLook = std::chrono::milliseconds(500);

struct Seen {
  Clock::time_point at = Clock::now();
  std::vector<TieredFile> files;
  uint64_t bytes = 0;
};

Seen Look(const std::vector<std::shared_ptr<const tier::Place>>& places) {
  Seen seen;
  seen.files = FilesIn(places);
  for (const TieredFile& file : seen.files) seen.bytes += file.bytes;
  return seen;
}

Json AsJson(const std::vector<std::shared_ptr<const tier::Place>>& places, const Seen& seen) {
  Json tiers = Json::array();
  for (const auto& place : places) {
    Json files = Json::array();
    for (const TieredFile& file : seen.files) {
      if (file.place == place)
        files.push_back(
            {{"file", file.entry.path}, {"entry", file.entry.name}, {"bytes", file.bytes}});
    }
    tiers.push_back({{"tier", place->path},
                     {"memory", place->in_memory},
                     {"mover", tier::HasMover(*place)},
                     {"files", std::move(files)}});
  }
  return tiers;
}

std::string InWords(const std::vector<std::shared_ptr<const tier::Place>>& places,
                    const Seen& seen) {
  std::string text;
  for (const auto& place : places) {
    uint64_t bytes = 0;
    uint64_t count = 0;
    std::string files;
    for (const TieredFile& file : seen.files) {
      if (file.place != place) continue;
      ++count;
      bytes += file.bytes;
      files += "  " + file.entry.path + " (" + BytesInWords(file.bytes) + ")\n";
    }
    text += place->path + ": " + CountInWords(count, "file") + ", " + BytesInWords(bytes) +
            (tier::HasMover(*place) ? ", a mover is there\n" : ", no mover\n") + files;
  }
  return text.empty() ? "no tier\n" : text;
}

// How it went since the look before.
std::string PaceInWords(const Seen& before, const Seen& now) {
  const double seconds = std::chrono::duration<double>(now.at - before.at).count();
  if (now.bytes >= before.bytes || seconds <= 0) return {};
  const double rate = static_cast<double>(before.bytes - now.bytes) / seconds;
  std::string text = BytesInWords(static_cast<uint64_t>(rate)) + "/s";
  Print(text, ", %.0f s to go", static_cast<double>(now.bytes) / rate);
  return text + '\n';
}

}  // namespace

int ShowTiers(bool as_json, bool watches) {
  const auto places = Tiers();
  Seen before = Look(places);
  if (as_json) {
    std::puts(AsJson(places, before).dump(2, ' ', false, Json::error_handler_t::replace).c_str());
    return kDone;
  }
  std::fputs(InWords(places, before).c_str(), stdout);
  const bool terminal = isatty(STDOUT_FILENO) != 0;
  while (watches && !before.files.empty()) {
    std::fflush(stdout);
    std::this_thread::sleep_for(kLook);
    Seen now = Look(places);
    if (terminal) std::fputs("\033[H\033[2J", stdout);
    std::fputs((InWords(places, now) + PaceInWords(before, now)).c_str(), stdout);
    before = std::move(now);
  }
  return kDone;
}

}  // namespace tidelane::tools
