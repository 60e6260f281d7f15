/// \file
/// The table of rules. A rule gives what is at stake and its words, or no words.
///
/// Thread safety: as advice.h.
#include "base/advice.h"

#include <algorithm>

#include "base/words.h"

namespace tidelane {
namespace {

constexpr size_t kTold = 2;
constexpr uint64_t kLeastNs = 100'000'000;
constexpr uint64_t kLeastShare = 20;  // of the run: one in so many

struct Finding {
  uint64_t ns = 0;
  std::string text;  // empty: nothing to say
};

bool Matters(const Summary& summary, uint64_t ns) {
  return ns >= kLeastNs && ns >= summary.run_ns / kLeastShare;
}

double Seconds(uint64_t ns) { return static_cast<double>(ns) / 1e9; }

uint64_t Written(const Summary& summary) {
  return summary[Counter::kBytesDeferred] + summary[Counter::kBytesSync];
}

// A deferred wait is hidden by what the program does afterwards: at its end there is nothing left.
Finding Deferrable(const Summary& summary, Counter wait, uint64_t free_ns, const std::string& what,
                   const char* setting) {
  const uint64_t ns = summary[wait];
  const uint64_t hidden = std::min(ns, free_ns);
  if (!Matters(summary, hidden)) return {};
  Finding found{hidden, what};
  Print(found.text, ": %s ", setting);
  if (hidden < ns - ns / 10) {
    Print(found.text, "would hide %.1f s of it", Seconds(hidden));
  } else {
    found.text += "hides it";
  }
  return found;
}

Finding CloseWaits(const Summary& summary) {
  if (summary.config.close_deferred) return {};
  std::string what;
  Print(what, "close waited %.1f s in %s", Seconds(summary[Counter::kWaitCloseNs]),
        CountInWords(summary[Counter::kWaitsClose], "file").c_str());
  return Deferrable(
      summary, Counter::kWaitCloseNs, summary.free_after_close_ns, what,
      summary.config.close_in_tier ? "TIDELANE_CLOSE=tier_deferred" : "TIDELANE_CLOSE=deferred");
}

Finding FlushWaits(const Summary& summary) {
  if (summary.config.flush_deferred) return {};
  std::string what;
  Print(what, "flush waited %.1f s in %s", Seconds(summary[Counter::kWaitFlushNs]),
        CountInWords(summary[Counter::kWaitsFlush], "call").c_str());
  return Deferrable(summary, Counter::kWaitFlushNs, summary.free_after_flush_ns, what,
                    "TIDELANE_FLUSH=deferred");
}

// The same whether the program waited for room or, where waiting could not help, wrote itself.
Finding ArenaFull(const Summary& summary) {
  const uint64_t ns = summary[Counter::kWaitArenaNs];
  if (!Matters(summary, ns)) return {};
  Finding found{ns, ""};
  constexpr uint64_t kMib = 1u << 20;
  const uint64_t twice = std::max<uint64_t>(2 * summary[Counter::kArenaCapBytes] / kMib, 1);
  Print(found.text,
        "the arena was full for %.1f s in %s: TIDELANE_ARENA=%lluM gives twice as much room",
        Seconds(ns), CountInWords(summary[Counter::kWaitsArena], "write").c_str(),
        static_cast<unsigned long long>(twice));
  return found;
}

Finding ModeSync(const Summary& summary) {
  if (summary[Fallback::kModeSync] == 0 || summary.bytes(Fallback::kModeSync) == 0) return {};
  const uint64_t ns = summary[Counter::kWaitWriteNs];
  Finding found{ns, ""};
  Print(found.text,
        "TIDELANE_MODE=sync wrote %s in %.1f s while the program waited: with async it goes on",
        BytesInWords(summary.bytes(Fallback::kModeSync)).c_str(), Seconds(ns));
  return found;
}

Finding NotCaptured(const Summary& summary) {
  if (summary[Fallback::kDriver] == 0 || Written(summary) != 0) return {};
  return {summary.run_ns,
          "no write was captured: the files use another driver than sec2, HDF5's "
          "default (H5Pset_fapl_…, driver= of h5py), and run natively"};
}

Finding NothingWritten(const Summary& summary) {
  if (summary[Counter::kFilesOpened] == 0 || Written(summary) != 0) return {};
  if (summary[Fallback::kDriver] != 0 || summary[Counter::kAheadBytes] != 0) return {};
  return {0, "nothing was written: there was nothing to hide"};
}

Finding QuickStorage(const Summary& summary) {
  const uint64_t ns = summary[Counter::kWaitWriteNs];
  if (summary.bytes(Fallback::kQuickStorage) < Written(summary) / 2 || !Matters(summary, ns)) {
    return {};
  }
  return {ns, "storage is as quick as memory here: there is hardly anything to hide"};
}

Finding Swmr(const Summary& summary) {
  const uint64_t ns = summary[Counter::kWaitWriteNs];
  if (summary.bytes(Fallback::kSwmrWrite) < Written(summary) / 2 || !Matters(summary, ns))
    return {};
  Finding found{ns, ""};
  Print(found.text,
        "SWMR files wrote through for %.1f s: where no reader follows, open without SWMR",
        Seconds(ns));
  return found;
}

Finding NotLocked(const Summary& summary) {
  const uint64_t ns = summary[Counter::kWaitReadNs];
  if (summary[Fallback::kLocking] == 0 || !Matters(summary, ns)) return {};
  Finding found{ns, ""};
  Print(found.text,
        "%s took %.1f s, none read ahead because files are not locked: "
        "HDF5_USE_FILE_LOCKING=BEST_EFFORT allows it where the file system can lock",
        CountInWords(summary[Counter::kWaitsRead], "read").c_str(), Seconds(ns));
  return found;
}

Finding ReadAheadOff(const Summary& summary) {
  const uint64_t ns = summary[Counter::kWaitReadNs];
  if (summary.config.read_ahead != Toggle::kOff || !Matters(summary, ns)) return {};
  Finding found{ns, ""};
  Print(found.text, "%s took %.1f s with TIDELANE_READAHEAD=off: auto reads metadata ahead",
        CountInWords(summary[Counter::kWaitsRead], "read").c_str(), Seconds(ns));
  return found;
}

Finding OneCore(const Summary& summary) {
  const uint64_t ns = summary.overlap.storage_ns;
  if (summary[Fallback::kOneCore] == 0 || !Matters(summary, ns)) return {};
  return {ns,
          "the program is bound to one core: bind it to two (srun -c 2, mpirun --bind-to none) "
          "and lanes need not look for another"};
}

struct Rule {
  const char* key;
  Finding (*find)(const Summary&);
};

constexpr Rule kRules[] = {
    {"not_captured", NotCaptured},       {"mode_sync", ModeSync},
    {"close_waits", CloseWaits},         {"flush_waits", FlushWaits},
    {"arena_full", ArenaFull},           {"not_locked", NotLocked},
    {"read_ahead_off", ReadAheadOff},    {"swmr", Swmr},
    {"quick_storage", QuickStorage},     {"one_core", OneCore},
    {"nothing_written", NothingWritten},
};

}  // namespace

std::vector<Advice> AdviceFor(const Summary& summary) {
  std::vector<Advice> advice;
  for (const Rule& rule : kRules) {
    Finding found = rule.find(summary);
    if (!found.text.empty()) advice.push_back({rule.key, found.ns, std::move(found.text)});
  }
  std::stable_sort(advice.begin(), advice.end(),
                   [](const Advice& a, const Advice& b) { return a.ns > b.ns; });
  if (advice.size() > kTold) advice.resize(kTold);
  return advice;
}

std::vector<std::string> AdviceRules() {
  std::vector<std::string> keys;
  for (const Rule& rule : kRules) keys.emplace_back(rule.key);
  return keys;
}

}  // namespace tidelane
