#include "tools/timeline.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <map>

#include <nlohmann/json.hpp>

#include "tools/locate.h"
#include "tools/summary_file.h"
#include "tools/terminal.h"

namespace tidelane::tools {
namespace {

constexpr double kTypicalEvent = 110;  // bytes of the file

// Takes the events of one file as the parser meets them, so that they are never all in memory as
// JSON.
class Reader {
 public:
  Reader(Timeline& timeline, int rank) : timeline_(timeline), rank_(rank) {}

  bool Read(const std::string& text) {
    Progress progress("reading the timeline");
    size_t events = 0;
    const auto take = [&](int, Json::parse_event_t event, Json& parsed) {
      if (event != Json::parse_event_t::object_end || !parsed.contains("ph")) return true;
      if (++events % 4096 == 0) {
        progress.At(static_cast<double>(events) * kTypicalEvent / static_cast<double>(text.size()));
      }
      Take(parsed);
      return false;
    };
    const Json rest = Json::parse(text, take, false);
    if (!At(rest, "traceEvents").is_array()) return false;
    timeline_.lost_spans += WholeAt(At(rest, "otherData"), "lost_spans");
    return true;
  }

 private:
  void Take(const Json& event) {
    const std::string phase = TextAt(event, "ph");
    const std::string name = TextAt(event, "name");
    if (phase == "M" && name == "thread_name") {
      TrackOf(event).name = TextAt(At(event, "args"), "name");
    } else if (phase == "X") {
      const double begin = NumberAt(event, "ts");
      const double duration = NumberAt(event, "dur");
      if (!std::isfinite(begin) || !std::isfinite(duration) || duration < 0) return;
      TrackOf(event).spans.push_back(
          {begin, duration, WholeAt(At(event, "args"), "bytes"), 1, KindOf(name)});
    }
  }

  Track& TrackOf(const Json& event) {
    const auto key = std::pair(WholeAt(event, "pid"), WholeAt(event, "tid"));
    const auto [at, added] = tracks_.emplace(key, timeline_.tracks.size());
    if (added) {
      Track track;
      track.pid = static_cast<int>(key.first);
      track.thread = key.second;
      track.rank = rank_;
      timeline_.tracks.push_back(std::move(track));
    }
    return timeline_.tracks[at->second];
  }

  uint16_t KindOf(const std::string& name) {
    const auto found = std::ranges::find(timeline_.kinds, name);
    if (found != timeline_.kinds.end()) {
      return static_cast<uint16_t>(found - timeline_.kinds.begin());
    }
    if (timeline_.kinds.size() >= 1000) return 0;  // no trace of ours
    timeline_.kinds.push_back(name);
    return static_cast<uint16_t>(timeline_.kinds.size() - 1);
  }

  Timeline& timeline_;
  int rank_;
  std::map<std::pair<uint64_t, uint64_t>, size_t> tracks_;
};

void NameTrack(Track& track) {
  track.lane = track.name.starts_with("lane");
  if (!track.name.empty()) return;
  track.name = track.thread == static_cast<uint64_t>(track.pid)
                   ? "main thread"
                   : "thread " + std::to_string(track.thread);
}

double EndOf(const TimelineSpan& span) { return span.begin_us + span.duration_us; }

std::vector<TimelineSpan> Joined(const std::vector<TimelineSpan>& spans, double gap_us) {
  std::vector<TimelineSpan> joined;
  for (const TimelineSpan& span : spans) {
    if (!joined.empty() && joined.back().kind == span.kind &&
        span.begin_us - EndOf(joined.back()) <= gap_us) {
      TimelineSpan& last = joined.back();
      last.duration_us = std::max(EndOf(last), EndOf(span)) - last.begin_us;
      last.bytes += span.bytes;
      last.times += span.times;
    } else {
      joined.push_back(span);
    }
  }
  return joined;
}

}  // namespace

size_t Timeline::Spans() const {
  size_t count = 0;
  for (const Track& track : tracks) count += track.spans.size();
  return count;
}

Timeline::Change Timeline::ChangeBy(const TimelineSpan& span) const {
  const std::string& kind = kinds[span.kind];
  const auto bytes = static_cast<int64_t>(span.bytes);
  if (kind == "write") return {span.begin_us, bytes};
  // A write that goes through is a span inside one of "write".
  return {EndOf(span), kind == "pwrite" || kind == "write through" ? -bytes : 0};
}

bool ReadTrace(const std::string& path, int rank, Timeline& timeline, std::string& error) {
  std::string text;
  if (IsFolder(path) || !ReadWhole(path, text)) {
    error = path + ": cannot be read: " + std::strerror(IsFolder(path) ? EISDIR : errno);
    return false;
  }
  Timeline read = timeline;
  if (Reader(read, rank).Read(text)) {
    timeline = std::move(read);
    return true;
  }
  const Json json = Json::parse(text, nullptr, false);
  error = path + (At(json, "schema_version").is_number()
                      ? ": is a summary, not a timeline: tidelane report reads it"
                      : ": is no timeline of Tidelane, or a damaged one: TIDELANE_TRACE=run.trace "
                        "makes one");
  return false;
}

void Arrange(Timeline& timeline) {
  std::erase_if(timeline.tracks, [](const Track& track) { return track.spans.empty(); });
  bool first = true;
  for (Track& track : timeline.tracks) {
    NameTrack(track);
    std::ranges::stable_sort(track.spans, {}, &TimelineSpan::begin_us);
    for (const TimelineSpan& span : track.spans) {
      timeline.begin_us = first ? span.begin_us : std::min(timeline.begin_us, span.begin_us);
      timeline.end_us = first ? EndOf(span) : std::max(timeline.end_us, EndOf(span));
      first = false;
    }
  }
  std::ranges::stable_sort(timeline.tracks, [](const Track& a, const Track& b) {
    const auto key = [](const Track& track) {
      const bool main = track.thread == static_cast<uint64_t>(track.pid);
      return std::tuple(track.rank, track.pid, track.lane, !main,
                        track.lane ? track.name.size() : 0, track.lane ? track.name : "",
                        track.thread);
    };
    return key(a) < key(b);
  });
}

void Coarsen(Timeline& timeline, size_t most) {
  double gap_us = (timeline.end_us - timeline.begin_us) / 50'000;
  for (int round = 0; timeline.Spans() > most && round < 24; ++round, gap_us *= 2) {
    for (Track& track : timeline.tracks) track.spans = Joined(track.spans, gap_us);
  }
}

}  // namespace tidelane::tools
