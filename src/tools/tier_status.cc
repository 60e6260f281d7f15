#include "tools/tier_status.h"

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/words.h"
#include "tier/mover.h"
#include "tools/arguments.h"
#include "tools/drain_rate.h"
#include "tools/summary_file.h"
#include "tools/terminal.h"
#include "tools/tiers.h"

namespace tidelane::tools {
namespace {

constexpr auto kLook = std::chrono::milliseconds(500);

Json AsJson(const TieredFile& file) {
  Json facts{{"file", file.entry.path}, {"entry", file.entry.name}, {"bytes", file.bytes}};
  if (file.trouble) {
    facts["waiting"] = file.trouble->reason;
    facts["waiting_seconds"] = file.trouble->age();
  }
  return facts;
}

Json AsJson(const Places& places, const Seen& seen) {
  Json tiers = Json::array();
  for (const auto& place : places) {
    Json files = Json::array();
    for (const TieredFile& file : seen.files) {
      if (file.place == place) files.push_back(AsJson(file));
    }
    tiers.push_back({{"tier", place->path},
                     {"memory", place->in_memory},
                     {"mover", tier::HasMover(*place)},
                     {"files", std::move(files)}});
  }
  return tiers;
}

std::string InWords(const Places& places, const Seen& seen) {
  std::string text;
  for (const auto& place : places) {
    uint64_t bytes = 0;
    uint64_t count = 0;
    std::string files;
    for (const TieredFile& file : seen.files) {
      if (file.place != place) continue;
      ++count;
      bytes += file.bytes;
      files += "  " + file.entry.path + " (" + BytesInWords(file.bytes) + ")";
      if (file.trouble) files += ", " + WaitingInWords(*file.trouble);
      files += '\n';
    }
    text += place->path + ": " + CountInWords(count, "file") + ", " + BytesInWords(bytes) +
            (tier::HasMover(*place) ? ", a mover is there\n" : ", no mover\n") + files;
  }
  return text.empty() ? "no tier\n" : text;
}

}  // namespace

int ShowTiers(const Arguments& arguments) {
  std::vector<std::filesystem::path> operands;
  if (const int status = WholePaths(arguments.operands, operands); status != kDone) return status;
  const Marked marked = FilesWithMarkers(operands);
  for (const Status& unread : marked.unread) Tell(InWords(unread));
  const Places places = Tiers(marked.files);
  const auto look = [&] {
    Seen seen = Look(places);
    std::erase_if(seen.files,
                  [&](const TieredFile& file) { return !IsBelow(file.entry.path, operands); });
    return seen;
  };
  Seen seen = look();
  if (arguments.Has("json")) {
    std::puts(AsJson(places, seen).dump(2, ' ', false, Json::error_handler_t::replace).c_str());
    return kDone;
  }
  std::fputs(InWords(places, seen).c_str(), stdout);
  const bool terminal = isatty(STDOUT_FILENO) != 0;
  DrainRate rate(seen);
  while (arguments.Has("watch") && !seen.files.empty()) {
    std::fflush(stdout);
    std::this_thread::sleep_for(kLook);
    seen = look();
    rate.Add(seen);
    if (terminal) std::fputs("\033[H\033[2J", stdout);
    std::fputs((InWords(places, seen) + rate.InWords()).c_str(), stdout);
  }
  return kDone;
}

}  // namespace tidelane::tools
