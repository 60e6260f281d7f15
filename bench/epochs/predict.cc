// predict: what the model expects of an epoch, from a history: for bench/cases/modes.py, which then runs it.
//
//   predict --history=FOLDER --bytes=N --write-bytes=N --compute-us=N    one line of JSON, the newest entry's
#include <cstdio>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/options.h"
#include "common/published_equation.h"
#include "model/epoch.h"
#include "model/history.h"

int main(int argc, char** argv) {
  using namespace tidelane::model;
  tidelane::measure::CommandLine line("What the model expects of an epoch, from a history.");
  std::string folder;
  double bytes = 0, write_bytes = 4 << 20, compute_us = 0, ranks = 1;
  line.option("--history", folder).required();
  line.option("--bytes", bytes).required().positive();
  line.option("--write-bytes", write_bytes).positive();
  line.option("--compute-us", compute_us).not_negative();
  line.option("--ranks", ranks).positive();
  if (const auto status = line.parse(argc, argv)) return *status;
  const std::vector<HistoryEntry> entries = ListHistory(folder);
  if (entries.empty()) {
    std::fprintf(stderr, "predict: %s has no history\n", folder.c_str());
    return 1;
  }
  const Learned& learned = entries.front().learned;
  nlohmann::ordered_json out;
  const auto tell = [&](const char* key, const IoRate& rate, auto epoch) {
    const auto io = rate.Predict(bytes, ranks);
    if (!io) return;
    const EpochTimes times{io->seconds, compute_us / 1e6, learned.copy.Seconds(write_bytes, bytes)};
    out[key] = {{"seconds", epoch(times)},
                {"as_printed", tidelane::bench::PublishedAsyncEpoch(times)},
                {"error", io->relative_error},
                {"form", Name(io->form)},
                {"samples", rate.weight()},
                {"r2", io->r2 ? nlohmann::ordered_json(*io->r2) : nlohmann::ordered_json()}};
  };
  tell("sync", learned.sync, SyncEpoch);
  tell("async", learned.lanes, AsyncEpoch);
  std::printf("%s\n", out.dump().c_str());
  return 0;
}
