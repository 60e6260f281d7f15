/// \file
/// The page is a frame (page/page.html), its style and its script, and the run as JSON, from which
/// the script draws. Without a script, the page shows the table.
///
/// Thread safety: as page.h.
#include "tools/page.h"

#include <algorithm>
#include <cmath>
#include <ctime>

#include "base/output_file.h"
#include "base/version.h"
#include "tools/page_assets.h"

namespace tidelane::tools {
namespace {

constexpr size_t kMostSpans = 40'000;  // a page of about a megabyte
constexpr size_t kBins = 600;

// Nothing in the JSON can end the script element that holds it.
std::string ForScript(const Json& json) {
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string ForHtml(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '<') {
      safe += "&lt;";
    } else if (c == '&') {
      safe += "&amp;";
    } else {
      safe += c;
    }
  }
  return safe;
}

int64_t Whole(double value) { return static_cast<int64_t>(std::llround(value)); }

Json SpansOf(const Track& track, double zero_us) {
  Json spans = Json::array();
  for (const TimelineSpan& span : track.spans) {
    spans.insert(spans.end(), {Json(span.kind), Json(Whole(span.begin_us - zero_us)),
                               Json(std::max<int64_t>(Whole(span.duration_us), 1)),
                               Json(span.bytes), Json(span.times)});
  }
  return spans;
}

/// Time in equal parts, over the whole timeline.
class Bins {
 public:
  explicit Bins(const Timeline& timeline)
      : begin_us_(timeline.begin_us),
        width_us_(std::max(timeline.end_us - timeline.begin_us, 1.0) / kBins) {}

  size_t At(double at_us) const {
    const double bin = (at_us - begin_us_) / width_us_;
    return static_cast<size_t>(std::clamp(bin, 0.0, static_cast<double>(kBins - 1)));
  }

  /// Bytes that went to storage during a span, evenly.
  void Spread(const TimelineSpan& span, std::vector<double>& to) const {
    const size_t first = At(span.begin_us);
    const size_t last = At(span.begin_us + span.duration_us);
    const double each = static_cast<double>(span.bytes) / static_cast<double>(last - first + 1);
    for (size_t bin = first; bin <= last; ++bin) to[bin] += each;
  }

 private:
  double begin_us_;
  double width_us_;
};

// What all processes had captured and not stored, and what they stored, over time.
void AddCurves(const Timeline& timeline, Json& json) {
  const Bins bins(timeline);
  std::vector<int64_t> changes(kBins);
  std::vector<double> stored(kBins);
  for (const Track& track : timeline.tracks) {
    for (const TimelineSpan& span : track.spans) {
      const auto [at_us, bytes] = timeline.ChangeBy(span);
      changes[bins.At(at_us)] += bytes;
      if (bytes < 0) bins.Spread(span, stored);
    }
  }
  int64_t waiting = 0;
  for (size_t i = 0; i < kBins; ++i) {
    waiting = std::max<int64_t>(waiting + changes[i], 0);
    json["waiting"].push_back(waiting);
    json["stored"].push_back(Whole(stored[i]));
  }
}

Json TimelineJson(Timeline timeline) {
  Json json{{"seconds", (timeline.end_us - timeline.begin_us) / 1e6},
            {"kinds", timeline.kinds},
            {"lost", timeline.lost_spans}};
  AddCurves(timeline, json);
  Coarsen(timeline, kMostSpans);
  json["tracks"] = Json::array();
  for (const Track& track : timeline.tracks) {
    json["tracks"].push_back({{"pid", track.pid},
                              {"rank", track.rank},
                              {"name", track.name},
                              {"lane", track.lane},
                              {"spans", SpansOf(track, timeline.begin_us)}});
  }
  return json;
}

std::string Now() {
  const std::time_t now = std::time(nullptr);
  struct tm parts = {};
  localtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts);
  return text;
}

Json ContentJson(PageContent& content) {
  Json json{{"version", TIDELANE_VERSION}, {"made", Now()}, {"command", content.command}};
  json["sum"] = Json::parse(SummaryJson(Together(content.processes)));
  json["advice"] = AdviceOf(content.processes);
  json["processes"] = Json::array();
  for (ProcessSummary& process : content.processes) {
    json["processes"].push_back({{"rank", process.rank}, {"summary", std::move(process.json)}});
  }
  if (!content.timeline.tracks.empty()) {
    json["timeline"] = TimelineJson(std::move(content.timeline));
  }
  return json;
}

void Put(std::string& text, const std::string& place, const std::string& what) {
  const size_t at = text.find(place);
  if (at != std::string::npos) text.replace(at, place.size(), what);
}

}  // namespace

Status WritePage(PageContent content, const std::string& path) {
  std::string page = kPageHtml;
  // The run comes last: what stands in it is not looked at again.
  Put(page, "{{style}}", kPageStyle);
  Put(page, "{{script}}", kPageScript);
  Put(page, "{{table}}", ForHtml(TableOf(content.processes)));
  Put(page, "{{run}}", ForScript(ContentJson(content)));
  OutputFile file;
  if (Status status = file.Open(path); !status.ok()) return status;
  std::fputs(page.c_str(), file.stream());
  return file.Commit();
}

}  // namespace tidelane::tools
