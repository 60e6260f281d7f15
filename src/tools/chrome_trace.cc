/// \file
/// A timeline as the JSON that chrome://tracing and ui.perfetto.dev read.
///
/// Thread safety: as timeline.h.
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <map>

#include "base/output_file.h"
#include "base/version.h"
#include "tools/summary_file.h"
#include "tools/terminal.h"
#include "tools/timeline.h"

namespace tidelane::tools {
namespace {

// Written an event at a time: a long run's would not fit into memory as JSON.
class Writer {
 public:
  explicit Writer(std::FILE* out) : out_(out) {}

  void Put(const Json& event) {
    std::fputs(first_ ? "\n" : ",\n", out_);
    first_ = false;
    std::fputs(event.dump(-1, ' ', false, Json::error_handler_t::replace).c_str(), out_);
  }

  void PutName(const char* what, int pid, uint64_t thread, const char* key, const Json& value) {
    Put({{"name", what}, {"ph", "M"}, {"pid", pid}, {"tid", thread}, {"args", {{key, value}}}});
  }

 private:
  std::FILE* out_;
  bool first_ = true;
};

void PutNames(Writer& writer, const Timeline& timeline) {
  int order = 0;
  int pid = -1;
  for (const Track& track : timeline.tracks) {
    if (track.pid != pid) {
      pid = track.pid;
      const std::string process = "process " + std::to_string(pid);
      writer.PutName(
          "process_name", pid, static_cast<uint64_t>(pid), "name",
          track.rank < 0 ? process : "rank " + std::to_string(track.rank) + ", " + process);
      writer.PutName("process_sort_index", pid, static_cast<uint64_t>(pid), "sort_index", order);
    }
    writer.PutName("thread_name", pid, track.thread, "name", track.name);
    writer.PutName("thread_sort_index", pid, track.thread, "sort_index", order++);
  }
}

const char* CategoryOf(const Track& track, const std::string& kind) {
  if (track.lane) return "storage";
  return kind.find("wait") == std::string::npos ? "call" : "wait";
}

void PutSpans(Writer& writer, const Timeline& timeline) {
  Progress progress("writing the timeline");
  const double all = static_cast<double>(std::max<size_t>(timeline.Spans(), 1));
  size_t done = 0;
  for (const Track& track : timeline.tracks) {
    for (const TimelineSpan& span : track.spans) {
      const std::string& kind = timeline.kinds[span.kind];
      writer.Put({{"name", kind},
                  {"cat", CategoryOf(track, kind)},
                  {"ph", "X"},
                  {"ts", span.begin_us - timeline.begin_us},
                  {"dur", span.duration_us},
                  {"pid", track.pid},
                  {"tid", track.thread},
                  {"args", {{"bytes", span.bytes}}}});
      if (++done % 4096 == 0) progress.At(static_cast<double>(done) / all);
    }
  }
}

// What a process had captured and not stored, at each change.
void PutWaitingBytes(Writer& writer, const Timeline& timeline) {
  std::map<int, std::vector<std::pair<double, int64_t>>> changes;
  for (const Track& track : timeline.tracks) {
    for (const TimelineSpan& span : track.spans) {
      const auto [at_us, bytes] = timeline.ChangeBy(span);
      if (bytes != 0) changes[track.pid].emplace_back(at_us - timeline.begin_us, bytes);
    }
  }
  for (auto& [pid, list] : changes) {
    std::ranges::stable_sort(list);
    int64_t waiting = 0;
    for (const auto& [at_us, change] : list) {
      waiting = std::max<int64_t>(waiting + change, 0);
      writer.Put({{"name", "bytes waiting in memory"},
                  {"ph", "C"},
                  {"ts", at_us},
                  {"pid", pid},
                  {"args", {{"bytes", waiting}}}});
    }
  }
}

}  // namespace

Status WriteChromeTrace(const Timeline& timeline, const std::string& path) {
  OutputFile file;
  if (Status status = file.Open(path == "-" ? "/dev/stdout" : path); !status.ok()) return status;
  std::FILE* const out = file.stream();
  Writer writer(out);
  std::fputs("{\"traceEvents\":[", out);
  PutNames(writer, timeline);
  PutSpans(writer, timeline);
  PutWaitingBytes(writer, timeline);
  std::fprintf(out,
               "\n],\n\"displayTimeUnit\":\"ms\",\n\"otherData\":{\"tidelane\":\"" TIDELANE_VERSION
               "\",\"lost_spans\":%" PRIu64 "}}\n",
               timeline.lost_spans);
  return file.Commit();
}

}  // namespace tidelane::tools
