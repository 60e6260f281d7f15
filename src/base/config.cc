/// \file
/// The table of settings, and the parser that it drives.
///
/// Invariant: what is accepted, what an error says and what DescribeConfig prints all come from
/// kSettings.
///
/// Thread safety: as config.h.
#include "base/config.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <limits>
#include <string_view>
#include <vector>

#include "base/memory_limit.h"

namespace tidelane {
namespace {

constexpr std::string_view kPrefix = "TIDELANE_";

// Setters return false when the value is not acceptable.
using Setter = bool (*)(Config& config, std::string_view value);

struct Setting {
  std::string_view name;  // without the prefix
  Setter set;
  std::string_view accepted;
  std::string_view doc;
};

template <typename T>
struct Choice {
  std::string_view word;
  T value;
};

template <typename T, size_t n>
bool Choose(std::string_view value, const Choice<T> (&choices)[n], T& result) {
  for (const Choice<T>& choice : choices) {
    if (choice.word == value) {
      result = choice.value;
      return true;
    }
  }
  return false;
}

// A decimal number and what follows it; false when there are no digits or the number does not fit.
bool SplitNumber(std::string_view value, uint64_t& number, std::string_view& suffix) {
  const char* end = value.data() + value.size();
  const auto [rest, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc{}) return false;
  suffix = std::string_view(rest, static_cast<size_t>(end - rest));
  return true;
}

bool Scale(uint64_t number, uint64_t factor, uint64_t& result) {
  if (number > std::numeric_limits<uint64_t>::max() / factor) return false;
  result = number * factor;
  return true;
}

bool ParseSize(std::string_view value, uint64_t& bytes) {
  static constexpr Choice<uint64_t> kUnits[] = {
      {"", 1},         {"k", 1u << 10}, {"K", 1u << 10}, {"m", 1u << 20},
      {"M", 1u << 20}, {"g", 1u << 30}, {"G", 1u << 30},
  };
  uint64_t number = 0;
  uint64_t unit = 0;
  std::string_view suffix;
  return SplitNumber(value, number, suffix) && Choose(suffix, kUnits, unit) &&
         Scale(number, unit, bytes);
}

bool ParseMicroseconds(std::string_view value, uint64_t& us) {
  static constexpr Choice<uint64_t> kUnits[] = {{"", 1}, {"us", 1}, {"ms", 1000}, {"s", 1'000'000}};
  uint64_t number = 0;
  uint64_t unit = 0;
  std::string_view suffix;
  return SplitNumber(value, number, suffix) && Choose(suffix, kUnits, unit) &&
         Scale(number, unit, us);
}

bool SetMode(Config& config, std::string_view value) {
  static constexpr Choice<bool> kModes[] = {{"async", true}, {"sync", false}};
  return Choose(value, kModes, config.asynchronous);
}

constexpr Choice<bool> kWaitOrDeferred[] = {{"wait", false}, {"deferred", true}};

bool SetClose(Config& config, std::string_view value) {
  return Choose(value, kWaitOrDeferred, config.close_deferred);
}

bool SetFlush(Config& config, std::string_view value) {
  return Choose(value, kWaitOrDeferred, config.flush_deferred);
}

bool SetLanes(Config& config, std::string_view value) {
  uint64_t lanes = 0;
  std::string_view rest;
  if (!SplitNumber(value, lanes, rest) || !rest.empty() || lanes < 1 || lanes > 64) return false;
  config.lanes = static_cast<unsigned>(lanes);
  return true;
}

bool SetArena(Config& config, std::string_view value) {
  uint64_t bytes = 0;
  if (!ParseSize(value, bytes) || bytes < (64u << 10)) return false;
  config.arena_bytes = bytes;
  return true;
}

bool SetLinger(Config& config, std::string_view value) {
  uint64_t us = 0;
  if (!ParseMicroseconds(value, us) || us > 10'000'000) return false;
  config.linger_us = us;
  return true;
}

bool SetGap(Config& config, std::string_view value) {
  uint64_t bytes = 0;
  if (!ParseSize(value, bytes) || bytes > (1u << 20)) return false;
  config.gap_bytes = bytes;
  return true;
}

bool SetReadAhead(Config& config, std::string_view value) {
  static constexpr Choice<Toggle> kToggles[] = {
      {"auto", Toggle::kAuto}, {"on", Toggle::kOn}, {"off", Toggle::kOff}};
  return Choose(value, kToggles, config.read_ahead);
}

bool SetSummary(Config& config, std::string_view value) {
  config.summary = value == "0" ? "" : value;
  return true;
}

bool SetTrace(Config& config, std::string_view value) {
  if (value == "1") return false;  // meant as a switch, would become a file called 1
  config.trace = value == "0" ? "" : value;
  return true;
}

#ifdef TIDELANE_BREAK
bool SetBreak(Config& config, std::string_view value) {
  for (const std::string_view rule : {"overlay", "truncate", "order", "adopt"}) {
    if (rule == value) {
      config.test_break = value;
      return true;
    }
  }
  return false;
}
#endif

constexpr Setting kSettings[] = {
    {"MODE", SetMode, "async or sync", "sync writes through on the calling thread (default async)"},
    {"CLOSE", SetClose, "wait or deferred",
     "whether H5Fclose waits until the bytes are written (default wait)"},
    {"FLUSH", SetFlush, "wait or deferred",
     "whether H5Fflush waits until the bytes are written (default wait)"},
    {"LANES", SetLanes, "a number from 1 to 64", "threads that write (default 2)"},
    {"ARENA", SetArena, "a size of at least 64k, such as 256M or 2G",
     "most memory that bytes not yet written may take (default: a quarter of what the process may "
     "use, divided by the ranks of the node, at most 4G)"},
    {"LINGER", SetLinger, "microseconds, or a time such as 2ms, up to 10s",
     "how long a small write may wait for neighbours to be merged with (default 2000)"},
    {"GAP", SetGap, "a size up to 1M, such as 4096 or 64k; 0 turns it off",
     "largest gap between two writes that is read and rewritten to join them (default 4096)"},
    {"READAHEAD", SetReadAhead, "auto, on or off", "read ahead of the program (default auto)"},
    {"SUMMARY", SetSummary, "1, 0 or a path",
     "at the end: 1 prints a table on stderr, a path receives JSON (%p: process id)"},
    {"TRACE", SetTrace, "a path, or 0",
     "at the end a timeline for chrome://tracing or Perfetto goes there (%p: process id)"},
#ifdef TIDELANE_BREAK
    {"BREAK", SetBreak, "overlay, truncate, order or adopt",
     "which rule this deliberately broken build breaks"},
#endif
};

bool BelongsToScripts(std::string_view name) {
  return name == "HDF5_ROOT" || name.starts_with("TEST_") || name.starts_with("BENCH_");
}

const Setting* Find(std::string_view name) {
  for (const Setting& setting : kSettings) {
    if (setting.name == name) return &setting;
  }
  return nullptr;
}

// Levenshtein's distance.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

std::string_view NearestName(std::string_view name) {
  return std::ranges::min(
             kSettings, {},
             [name](const Setting& setting) { return EditDistance(name, setting.name); })
      .name;
}

// `entry` is "NAME=value" without the prefix.
Status Apply(Config& config, std::string_view entry) {
  const size_t equals = entry.find('=');
  if (equals == std::string_view::npos) return {};
  const std::string_view name = entry.substr(0, equals);
  const std::string_view value = entry.substr(equals + 1);
  if (BelongsToScripts(name)) return {};
  const std::string variable = std::string(kPrefix) + std::string(name);
  const Setting* setting = Find(name);
  if (setting == nullptr) {
    return Status::Failed(EINVAL, "use the environment variable " + variable +
                                      ": there is no such setting; the nearest is " +
                                      std::string(kPrefix) + std::string(NearestName(name)));
  }
  if (value.empty() || setting->set(config, value)) return {};
  return Status::Failed(EINVAL, "use " + variable + "='" + std::string(value) + "': accepted are " +
                                    std::string(setting->accepted));
}

}  // namespace

Status LoadConfig(Config& config) {
  Config loaded;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    std::string_view text = *entry;
    if (!text.starts_with(kPrefix)) continue;
    text.remove_prefix(kPrefix.size());
    if (Status status = Apply(loaded, text); !status.ok()) return status;
  }
  if (loaded.arena_bytes == 0) loaded.arena_bytes = DefaultArenaBytes();
  config = std::move(loaded);
  return {};
}

std::string DescribeConfig() {
  std::string text;
  for (const Setting& setting : kSettings) {
    text += std::string(kPrefix) + std::string(setting.name) + "=" + std::string(setting.accepted) +
            "\n    " + std::string(setting.doc) + "\n";
  }
  return text;
}

uint64_t DefaultArenaBytes() {
  const uint64_t share = UsableMemoryBytes() / 4 / RanksOnThisNode();
  return std::clamp(share, uint64_t{16} << 20, uint64_t{4} << 30);
}

}  // namespace tidelane
