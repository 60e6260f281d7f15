/// \file
/// The rates come from the history of earlier runs on the file system of the folder, or, where there are none, from
/// requests that are made and measured there now. The equations are the model's (model/epoch.h).
///
/// Thread safety: as predict.h.
#include "tools/predict.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "base/setting_value.h"
#include "base/words.h"
#include "model/copy_cost.h"
#include "model/epoch.h"
#include "model/history.h"
#include "model/history_key.h"
#include "tools/storage_speed.h"
#include "tools/summary_file.h"
#include "tools/terminal.h"

namespace tidelane::tools {
namespace {

constexpr double kMib = 1 << 20;
constexpr double kLongestPause = 1e9;   // seconds
constexpr double kUnknownError = 0.25;  // of a rate that was measured for a second only

struct Program {
  bool reads = false;  // rather than writes
  double bytes = 0;    // of an I/O phase, of each rank
  double write_bytes = 0;
  double compute = 0;  // seconds
  double ranks = 1;
  double epochs = 10;
};

/// Of writes or of reads, whichever the program makes.
struct Basis {
  model::IoRate sync;
  model::IoRate lanes;
  model::CopyCost copy;
  std::string words;  // where the rates come from
  bool known() const { return sync.weight() > 0 || lanes.weight() > 0; }
};

/// Seconds, and how far off they may be.
struct Estimate {
  double seconds = 0;
  double error = 0;  // relative
  double Low() const { return seconds * std::max(1 - error, 0.0); }
  double High() const { return seconds * (1 + error); }
};

bool ReadSeconds(const std::string& text, double& seconds) {
  uint64_t us = 0;
  if (text.ends_with("ms") && ParseMicroseconds(text, us)) {
    seconds = static_cast<double>(us) / 1e6;
    return true;
  }
  char* end = nullptr;
  seconds = std::strtod(text.c_str(), &end);
  const std::string_view rest = end;
  return end != text.c_str() && (rest.empty() || rest == "s") && seconds >= 0 &&
         seconds <= kLongestPause;
}

// Empty, or what is wrong with the options.
std::string ReadProgram(const Arguments& arguments, Program& program) {
  uint64_t size = 0;
  uint64_t write_size = 0;
  uint64_t ranks = 1;
  uint64_t epochs = 10;
  if (!ParseSize(arguments.Get("size"), size) || size == 0) {
    return "--size says how much a phase writes (or reads), of each rank: a size such as 64M";
  }
  if (!ReadSeconds(arguments.Get("compute"), program.compute)) {
    return "--compute says how long the program computes between two phases: seconds, such as 0.5 "
           "or 20ms";
  }
  if (!ParseNumber(arguments.Get("ranks", "1"), ranks) || ranks == 0 || ranks > 100'000'000) {
    return "--ranks is a number from 1 on";
  }
  if (!ParseNumber(arguments.Get("epochs", "10"), epochs) || epochs == 0) {
    return "--epochs is a number from 1 on";
  }
  if (!ParseSize(arguments.Get("write-size", "4M"), write_size) || write_size == 0) {
    return "--write-size is a size such as 4M";
  }
  program.reads = arguments.Has("read");
  program.bytes = static_cast<double>(size);
  program.write_bytes = static_cast<double>(std::min(write_size, size));
  program.ranks = static_cast<double>(ranks);
  program.epochs = static_cast<double>(epochs);
  return {};
}

// What earlier runs learned on that file system: of one program, or of all.
bool FromHistory(const std::string& folder, const std::string& program,
                 const std::string& file_system, bool reads, Basis& basis) {
  uint64_t runs = 0;
  const auto merge = [&basis](const auto& learned) {
    basis.sync.Merge(learned.sync);
    basis.lanes.Merge(learned.lanes);
    basis.copy.Merge(learned.copy);
  };
  for (const model::HistoryEntry& entry : model::ListHistory(folder)) {
    if (entry.key.file_system != file_system) continue;
    if (!program.empty() && entry.key.program != program) continue;
    if ((reads ? entry.learned.reads.epochs : entry.learned.epochs) == 0) continue;
    reads ? merge(entry.learned.reads) : merge(entry.learned);
    runs += entry.runs;
  }
  basis.words = CountInWords(runs, "earlier run") + " on " + file_system;
  return runs > 0 && basis.known();
}

Status FromMeasurement(const std::string& folder, bool reads, Basis& basis) {
  StorageSpeed speed;
  if (Status status = MeasureStorage(folder, speed); !status.ok()) return status;
  // One rate for all sizes is what a measurement of a second can say.
  const double rate = reads ? speed.read_rate : speed.write_rate;
  for (double bytes = kMib; bytes <= 1024 * kMib; bytes *= 4) {
    basis.sync.Add(bytes, 1, bytes / rate);
    basis.lanes.Add(bytes, 1, bytes / rate);
  }
  model::CalibrateCopy(basis.copy);
  basis.copy.Add(64 * kMib, 64 * kMib, 64 * kMib / speed.copy_rate);
  basis.words = (reads ? "reads measured in " : "writes measured in ") + folder + " just now";
  return {};
}

// Of a phase. Storage that was measured with one rank only is shared by all of them.
Estimate IoOf(const model::IoRate& rate, const model::IoRate& other, const Program& program,
              bool shared) {
  const model::IoRate& known = rate.weight() > 0 ? rate : other;
  const double factor = shared ? program.ranks : 1;
  const auto predicted = known.Predict(program.bytes, shared ? 1 : program.ranks);
  if (!predicted) return {};
  const double error = shared ? std::max(kUnknownError, std::min(predicted->relative_error, 1.0))
                              : predicted->relative_error;
  return {predicted->seconds * factor, std::min(error, 1.0)};
}

struct Forecast {
  Estimate sync;
  Estimate async;
  double gain = 1;      // sync's time by async's
  double gain_low = 1;  // storage that is slower than expected is so in both modes
  double gain_high = 1;
  double overhead = 0;
  Estimate io;
};

Forecast Of(const Program& program, const Basis& basis, bool measured) {
  Forecast forecast;
  const Estimate sync = IoOf(basis.sync, basis.lanes, program, measured);
  forecast.io = IoOf(basis.lanes, basis.sync, program, measured);
  model::CopyCost copy = basis.copy;
  if (!copy.known()) model::CalibrateCopy(copy);
  forecast.overhead = copy.Seconds(program.write_bytes, program.bytes);
  const auto epoch = [&](const Estimate& io, double times) {
    return model::EpochTimes{io.seconds * times, program.compute, forecast.overhead};
  };
  // The error is storage's; computing and copying are taken as they are.
  const auto with = [&](double (*equation)(const model::EpochTimes&), const Estimate& io) {
    const double seconds = equation(epoch(io, 1));
    const double off = std::max(equation(epoch(io, 1 + io.error)) - seconds,
                                seconds - equation(epoch(io, std::max(1 - io.error, 0.0))));
    return Estimate{seconds, seconds > 0 ? off / seconds : 0};
  };
  const auto sync_epoch = [](const model::EpochTimes& times) { return model::SyncEpoch(times); };
  const auto async_epoch = [](const model::EpochTimes& times) { return model::AsyncEpoch(times); };
  forecast.sync = with(sync_epoch, sync);
  forecast.async = with(async_epoch, forecast.io);
  const auto gain = [&](double sign) {
    return model::SyncEpoch(epoch(sync, 1 + sign * sync.error)) /
           model::AsyncEpoch(epoch(forecast.io, 1 + sign * forecast.io.error));
  };
  forecast.gain = gain(0);
  forecast.gain_low = std::min({gain(-1), gain(0), gain(1)});
  forecast.gain_high = std::max({gain(-1), gain(0), gain(1)});
  return forecast;
}

// "async", "sync" or "either", where the error bar leaves it open.
const char* ModeOf(const Forecast& forecast) {
  if (forecast.gain_low > 1) return "async";
  return forecast.gain_high < 1 ? "sync" : "either";
}

Json ToJson(const Estimate& estimate) {
  return {{"seconds", estimate.seconds}, {"low", estimate.Low()}, {"high", estimate.High()}};
}

void PrintJson(const Program& program, const Basis& basis, const Forecast& forecast) {
  const Json json{{"mode", ModeOf(forecast)},
                  {"gain", forecast.gain},
                  {"gain_low", forecast.gain_low},
                  {"gain_high", forecast.gain_high},
                  {"sync_epoch", ToJson(forecast.sync)},
                  {"async_epoch", ToJson(forecast.async)},
                  {"io", ToJson(forecast.io)},
                  {"overhead_seconds", forecast.overhead},
                  {"epochs", program.epochs},
                  {"basis", basis.words}};
  std::puts(json.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

void EpochLine(std::string& text, const char* name, const Estimate& epoch, double epochs) {
  Print(text, "  %-14s %9.3f s  +- %.3f   %9.1f s  +- %.1f\n", name, epoch.seconds,
        epoch.seconds * epoch.error, epoch.seconds * epochs, epoch.seconds * epoch.error * epochs);
}

void PrintTable(const Program& program, const Basis& basis, const Forecast& forecast) {
  std::string text;
  Print(text, "%s %sa phase and rank, %s, %.3f s of computation; rates from %s\n\n",
        BytesInWords(static_cast<uint64_t>(program.bytes)).c_str(), program.reads ? "read " : "",
        CountInWords(static_cast<uint64_t>(program.ranks), "rank").c_str(), program.compute,
        basis.words.c_str());
  std::string heading;
  Print(heading, "%.0f epochs", program.epochs);
  Print(text, "  %-14s %11s %19s\n", "mode", "an epoch", heading.c_str());
  EpochLine(text, "sync", forecast.sync, program.epochs);
  EpochLine(text, "async", forecast.async, program.epochs);
  Print(text, "\nof it: storage %.3f s, %s %.3f s\n", forecast.io.seconds,
        program.reads ? "copying" : "handing over", forecast.overhead);
  const std::string mode = ModeOf(forecast);
  if (mode == "either") {
    text += "either mode: they are as quick as each other, as far as this can tell\n";
  } else if (mode == "async") {
    Print(text, "async, %.2f times as quick (%.2f to %.2f)\n", forecast.gain, forecast.gain_low,
          forecast.gain_high);
  } else {
    Print(text, "sync, %.2f times as quick (%.2f to %.2f)\n", 1 / forecast.gain,
          1 / forecast.gain_high, 1 / forecast.gain_low);
  }
  std::fputs(text.c_str(), stdout);
}

}  // namespace

int Predict(const Arguments& arguments) {
  Program program;
  if (const std::string wrong = ReadProgram(arguments, program); !wrong.empty()) {
    return Fail(kUsage, wrong);
  }
  const std::string folder = arguments.Get("dir", ".");
  struct stat found;
  if (stat(folder.c_str(), &found) != 0) {
    return Fail(kUsage, "--dir: " + folder + ": " + std::strerror(errno));
  }
  Basis basis;
  const std::string history = arguments.Get("history", model::DefaultHistoryFolder());
  const bool known = !arguments.Has("measure") &&
                     FromHistory(history, arguments.Get("program"),
                                 model::FileSystemName(found.st_dev), program.reads, basis);
  if (!known) {
    basis = Basis();
    if (const Status status = FromMeasurement(folder, program.reads, basis); !status.ok()) {
      return Fail(kUsage, status.Message());
    }
  }
  const Forecast forecast = Of(program, basis, !known);
  arguments.Has("json") ? PrintJson(program, basis, forecast)
                        : PrintTable(program, basis, forecast);
  return kDone;
}

}  // namespace tidelane::tools
