#include "tools/report_command.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>

#include "base/words.h"
#include "tools/locate.h"
#include "tools/page.h"
#include "tools/summary_file.h"
#include "tools/terminal.h"
#include "tools/timeline.h"

namespace tidelane::tools {
namespace {

namespace fs = std::filesystem;

double Seconds(uint64_t ns) { return static_cast<double>(ns) / 1e9; }

double WaitedSeconds(const ProcessSummary& process) {
  double seconds = 0;
  for (const Json& wait : At(process.json, "waits")) seconds += NumberAt(wait, "seconds");
  return seconds;
}

std::string HiddenInWords(const Summary& summary) {
  if (summary.overlap.storage_ns == 0) return "-";
  std::string text;
  Print(text, "%.0f %%",
        100 * Seconds(summary.overlap.hidden_ns) / Seconds(summary.overlap.storage_ns));
  return text;
}

std::string ProcessTable(const std::vector<ProcessSummary>& processes) {
  if (processes.size() < 2) return {};
  std::string text = "\n";
  Print(text, "%6s %9s %9s %12s %12s %9s %8s %7s\n", "rank", "process", "run", "asynchronous",
        "synchronous", "waited", "hidden", "errors");
  for (const ProcessSummary& process : processes) {
    const Summary& summary = process.summary;
    const std::string rank = process.rank < 0 ? "-" : std::to_string(process.rank);
    Print(text, "%6s %9d %7.2f s %12s %12s %7.2f s %8s %7llu\n", rank.c_str(), summary.pid,
          Seconds(summary.run_ns), BytesInWords(summary[Counter::kBytesDeferred]).c_str(),
          BytesInWords(summary[Counter::kBytesSync]).c_str(), WaitedSeconds(process),
          HiddenInWords(summary).c_str(),
          static_cast<unsigned long long>(summary[Counter::kErrors]));
  }
  return text;
}

std::string Signed(double percent) {
  std::string text;
  Print(text, "%+.0f %%", percent);
  return text;
}

// The last epochs of a run: what the cost model expected in both modes, and what came.
std::string EpochTable(const ProcessSummary& process) {
  constexpr size_t kRows = 20;
  const Decisions& decisions = process.summary.decisions;
  if (decisions.last.empty()) return {};
  std::string text = "\n";
  Print(text, "%6s %11s %-6s %11s %11s %8s %11s\n", "epoch", "bytes", "mode", "measured",
        "expected", "off", "other mode");
  const size_t rows = std::min(decisions.last.size(), kRows);
  for (size_t i = decisions.last.size() - rows; i < decisions.last.size(); ++i) {
    const Decision& epoch = decisions.last[i];
    Print(text, "%6llu %11s %-6s %9.3f s", static_cast<unsigned long long>(epoch.epoch),
          BytesInWords(epoch.bytes).c_str(), epoch.async ? "async" : "sync", epoch.seconds);
    if (epoch.last) {
      text += "  the last one: no computation after it";
    } else if (epoch.forecast && epoch.seconds > 0) {
      const double off = 100 * (epoch.forecast->chosen / epoch.seconds - 1);
      Print(text, " %9.3f s %8s %9.3f s", epoch.forecast->chosen, Signed(off).c_str(),
            epoch.async ? epoch.forecast->sync : epoch.forecast->async);
    }
    text += '\n';
  }
  return text;
}

// What storage gives, as the model has fitted it.
std::string RateTable(const ProcessSummary& process) {
  std::string text;
  const auto line = [&text](const std::string& storage, const char* what, const ModeledRate& rate) {
    if (rate.samples == 0) return;
    if (text.empty())
      Print(text, "\n%-24s %-24s %13s %11s %7s %6s\n", "storage", "", "a second", "form", "r2",
            "off");
    std::string r2 = "-";
    if (rate.r2) r2.clear(), Print(r2, "%.2f", *rate.r2);
    Print(text, "%-24s %-24s %13s %11s %7s %4.0f %%\n", storage.c_str(), what,
          BytesInWords(static_cast<uint64_t>(rate.bytes_per_second)).c_str(), rate.form.c_str(),
          r2.c_str(), 100 * rate.error);
  };
  for (const ModeledStorage& storage : process.summary.decisions.storages) {
    line(storage.name, "written by the program", storage.sync);
    line(storage.name, "written by lanes", storage.lanes);
    line(storage.name, "read by the program", storage.reads.sync);
    line(storage.name, "read by lanes", storage.reads.lanes);
  }
  return text;
}

// Who did what for how long: a line for each track and kind.
std::string TrackTable(const Timeline& timeline) {
  std::string text = "\n";
  Print(text, "%-28s %-14s %8s %10s %11s\n", "timeline", "", "times", "seconds", "bytes");
  for (const Track& track : timeline.tracks) {
    std::map<uint16_t, TimelineSpan> sums;
    for (const TimelineSpan& span : track.spans) {
      TimelineSpan& sum = sums.try_emplace(span.kind, TimelineSpan{0, 0, 0, 0, 0}).first->second;
      sum.duration_us += span.duration_us;
      sum.bytes += span.bytes;
      sum.times += span.times;
    }
    std::string name = std::to_string(track.pid) + " " + track.name;
    if (track.rank >= 0) name = "rank " + std::to_string(track.rank) + ", " + track.name;
    for (const auto& [kind, sum] : sums) {
      Print(text, "%-28s %-14s %8u %10.3f %11s\n", name.c_str(), timeline.kinds[kind].c_str(),
            sum.times, sum.duration_us / 1e6, BytesInWords(sum.bytes).c_str());
      name.clear();
    }
  }
  if (timeline.lost_spans != 0) {
    Print(text, "the timeline was too long: its first %s are lost\n",
          CountInWords(timeline.lost_spans, "span").c_str());
  }
  return text;
}

// Where the summary says that its timeline went, or beside the summary if it was moved.
std::string TraceOf(const ProcessSummary& process) {
  std::string path = process.summary.config.trace;
  const std::string pid = std::to_string(process.summary.pid);
  for (size_t at = 0; (at = path.find("%p", at)) != std::string::npos;) path.replace(at, 2, pid);
  if (path.empty() || IsFile(path)) return path;
  const fs::path beside = fs::path(process.path).parent_path() / fs::path(path).filename();
  return IsFile(beside.string()) ? beside.string() : std::string();
}

bool ReadSummaries(const std::vector<std::string>& paths, std::vector<ProcessSummary>& processes) {
  for (const std::string& path : paths) {
    ProcessSummary process;
    std::string error;
    if (!ReadSummary(path, process, error)) {
      Tell(error);
      return false;
    }
    processes.push_back(std::move(process));
  }
  std::ranges::stable_sort(processes, {}, [](const ProcessSummary& process) {
    return std::pair(process.rank, process.summary.pid);
  });
  return true;
}

bool ReadTimelines(const Arguments& arguments, const std::vector<ProcessSummary>& processes,
                   Timeline& timeline) {
  std::vector<std::pair<std::string, int>> paths;
  for (const std::string& path : arguments.All("trace")) paths.emplace_back(path, -1);
  if (paths.empty()) {
    for (const ProcessSummary& process : processes) {
      const std::string path = TraceOf(process);
      if (!path.empty()) paths.emplace_back(path, process.rank);
    }
  }
  for (const auto& [path, rank] : paths) {
    std::string error;
    if (!ReadTrace(path, rank, timeline, error)) {
      Tell(error);
      return false;
    }
  }
  for (Track& track : timeline.tracks) {
    for (const ProcessSummary& process : processes) {
      if (process.summary.pid == track.pid) track.rank = process.rank;
    }
  }
  Arrange(timeline);
  return true;
}

}  // namespace

int Report(const Arguments& arguments) {
  if (arguments.operands.empty()) {
    return Fail(kUsage, "no file: tidelane report run.json (TIDELANE_SUMMARY=run.json makes one)");
  }
  PageContent content;
  if (!ReadSummaries(arguments.operands, content.processes)) return kUsage;
  if (!ReadTimelines(arguments, content.processes, content.timeline)) return kUsage;
  if (!arguments.Has("html")) {
    std::string text = TableOf(content.processes) + ProcessTable(content.processes);
    if (content.processes.size() == 1)
      text += EpochTable(content.processes.front()) + RateTable(content.processes.front());
    if (!content.timeline.tracks.empty()) text += TrackTable(content.timeline);
    std::fputs(text.c_str(), stdout);
    return kDone;
  }
  const std::string path = arguments.Get("html");
  const Status status = WritePage(std::move(content), path == "-" ? "/dev/stdout" : path);
  return status.ok() ? kDone : Fail(kUsage, "--html: " + status.Message());
}

int Trace(const Arguments& arguments) {
  if (arguments.operands.empty()) {
    return Fail(kUsage, "no file: tidelane trace run.trace -o out.json (TIDELANE_TRACE makes one)");
  }
  Timeline timeline;
  for (const std::string& path : arguments.operands) {
    std::string error;
    if (!ReadTrace(path, -1, timeline, error)) return Fail(kUsage, error);
  }
  Arrange(timeline);
  const std::string output = arguments.Get("output", "-");
  const Status status = WriteChromeTrace(timeline, output);
  if (!status.ok()) return Fail(kUsage, "--output: " + status.Message());
  if (output != "-") {
    std::string text;
    Print(text, "%s: %s of %s; open it in ui.perfetto.dev or chrome://tracing", output.c_str(),
          CountInWords(timeline.Spans(), "span").c_str(),
          CountInWords(timeline.tracks.size(), "thread").c_str());
    Tell(text);
  }
  return kDone;
}

}  // namespace tidelane::tools
