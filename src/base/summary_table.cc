/// \file
/// The summary as a short table: what a person asks first, and nothing about what did not happen.
///
/// Thread safety: pure functions.
#include <cinttypes>

#include "base/activity.h"
#include "base/advice.h"
#include "base/summary.h"
#include "base/version.h"
#include "base/words.h"

namespace tidelane {
namespace {

constexpr size_t kNamedFiles = 3;

double Seconds(uint64_t ns) { return static_cast<double>(ns) / 1e9; }

double Percent(uint64_t part, uint64_t whole) {
  return 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

// "  waited        ": labels are as wide as each other, lines below continue without one.
void Label(std::string& text, const char* label) { Print(text, "  %-13s ", label); }

void Written(std::string& text, const Summary& summary) {
  Label(text, "asynchronous");
  Print(text, "%s in %s, copied in %.3f s", BytesInWords(summary[Counter::kBytesDeferred]).c_str(),
        CountInWords(summary[Counter::kWritesDeferred], "write").c_str(),
        Seconds(summary[Counter::kCopyNs]));
  if (const uint64_t lent = summary[Counter::kBytesLent]; lent != 0) {
    text += "; " + BytesInWords(lent) + " of it lent, not copied";
  }
  text += '\n';
  Label(text, "synchronous");
  Print(text, "%s in %s\n", BytesInWords(summary[Counter::kBytesSync]).c_str(),
        CountInWords(summary[Counter::kWritesSync], "write").c_str());
}

void FellBack(std::string& text, const Summary& summary) {
  const char* label = "fell back";
  for (unsigned i = 0; i < kFallbackCount; ++i) {
    const auto reason = static_cast<Fallback>(i);
    if (summary[reason] == 0) continue;
    Label(text, label);
    label = "";
    if (summary.bytes(reason) != 0) text += BytesInWords(summary.bytes(reason)) + ", ";
    if (*Unit(reason) != '\0') text += CountInWords(summary[reason], Unit(reason)) + ": ";
    Print(text, "%s (%s)\n", Text(reason), Name(reason));
  }
}

void Storage(std::string& text, const Summary& summary) {
  Label(text, "merged");
  Print(text, "%s into %s, %s\n", CountInWords(summary[Counter::kWritesDeferred], "write").c_str(),
        CountInWords(summary[Counter::kRequestsWritten], "request").c_str(),
        BytesInWords(summary[Counter::kBytesWritten]).c_str());
  if (summary[Counter::kGapFillBytes] != 0) {
    Label(text, "gaps filled");
    Print(text, "%s with %s: %.1f %% more bytes written\n",
          BytesInWords(summary[Counter::kGapFillBytes]).c_str(),
          CountInWords(summary[Counter::kGapFillReads], "read").c_str(),
          Percent(summary[Counter::kGapFillBytes],
                  summary[Counter::kBytesWritten] - summary[Counter::kGapFillBytes]));
  }
  if (summary[Counter::kStorageReads] + summary[Counter::kReadAheadHits] == 0) return;
  Label(text, "read");
  Print(text, "%s in %s, %s answered from what was read ahead\n",
        BytesInWords(summary[Counter::kStorageReadBytes]).c_str(),
        CountInWords(summary[Counter::kStorageReads], "request").c_str(),
        CountInWords(summary[Counter::kReadAheadHits], "read").c_str());
}

void Gpus(std::string& text, const Summary& summary) {
  const uint64_t down = summary[Counter::kGpuBytesDown];
  const uint64_t up = summary[Counter::kGpuBytesUp];
  if (down + up == 0) return;
  Label(text, "GPU memory");
  Print(text, "%s copied from there, %s there; calls waited %.3f s for that\n",
        BytesInWords(down).c_str(), BytesInWords(up).c_str(),
        Seconds(summary[Counter::kGpuCopyNs]));
}

void FetchedAhead(std::string& text, const Summary& summary) {
  if (summary[Counter::kAheadBytes] == 0) return;
  Label(text, "fetched ahead");
  Print(text, "%s, %s of it in vain; %s found theirs, %" PRIu64 " did not\n",
        BytesInWords(summary[Counter::kAheadBytes]).c_str(),
        BytesInWords(summary[Counter::kAheadBytesWasted]).c_str(),
        CountInWords(summary[Counter::kAheadHits], "read").c_str(), summary[Counter::kAheadMisses]);
}

void Decoded(std::string& text, const Summary& summary) {
  const uint64_t lanes = summary[Counter::kChunksByLanes];
  const uint64_t chunks = summary[Counter::kChunksByCallers] + lanes;
  if (chunks == 0) return;
  Label(text, "decoded");
  Print(text, "%s in %s, %.1f %% of them by lanes\n",
        BytesInWords(summary[Counter::kChunkBytesRead]).c_str(),
        CountInWords(chunks, "chunk").c_str(), Percent(lanes, chunks));
}

void Waited(std::string& text, const Summary& summary) {
  uint64_t all_ns = 0;
  std::string where;
  for (unsigned i = 0; i < kWaitCount; ++i) {
    const WaitKind& kind = KindOf(static_cast<Wait>(i));
    if (summary[kind.times] == 0) continue;
    all_ns += summary[kind.ns];
    Print(where, "%s%s %.3f s (%" PRIu64 ")", where.empty() ? "" : ", ", kind.label,
          Seconds(summary[kind.ns]), summary[kind.times]);
  }
  Label(text, "waited");
  if (where.empty()) {
    text += "nowhere\n";
    return;
  }
  Print(text, "%.3f s of %.3f s: %s\n", Seconds(all_ns), Seconds(summary.run_ns), where.c_str());
}

void Hidden(std::string& text, const Summary& summary) {
  if (summary.overlap.storage_ns == 0) return;
  Label(text, "overlap");
  Print(text, "%.1f %% of %.3f s of storage's work was hidden\n",
        Percent(summary.overlap.hidden_ns, summary.overlap.storage_ns),
        Seconds(summary.overlap.storage_ns));
}

void Chose(std::string& text, const Summary& summary) {
  const Decisions& decisions = summary.decisions;
  if (decisions.epochs == 0) return;
  Label(text, "epochs");
  Print(text, "%" PRIu64 ", %" PRIu64 " of them asynchronous, %s of the mode", decisions.epochs,
        decisions.async_epochs, CountInWords(decisions.changes, "change").c_str());
  if (decisions.forecasts != 0)
    Print(text, "; expected within %.1f %%", 100 * decisions.forecast_error);
  text += '\n';
}

void ReadPhases(std::string& text, const Summary& summary) {
  const ReadEpochs& reads = summary.decisions.reads;
  if (reads.epochs == 0) return;
  Label(text, "read epochs");
  Print(text, "%" PRIu64 ", %" PRIu64 " of them brought by lanes", reads.epochs,
        reads.async_epochs);
  if (reads.forecasts != 0) Print(text, "; expected within %.1f %%", 100 * reads.forecast_error);
  text += '\n';
}

void Files(std::string& text, const char* label, const FileNames& files) {
  if (files.count() == 0) return;
  Label(text, label);
  Print(text, "%s: ", CountInWords(files.count(), "file").c_str());
  for (size_t i = 0; i < files.listed().size() && i < kNamedFiles; ++i) {
    text += (i == 0 ? "" : ", ") + files.listed()[i];
  }
  if (files.count() > kNamedFiles)
    Print(text, " and %" PRIu64 " more", files.count() - kNamedFiles);
  text += '\n';
}

// What was set, apart from where reports go: that, the reader knows.
void Set(std::string& text, const Config& config) {
  std::string set;
  for (const SettingValue& setting : EffectiveSettings(config)) {
    if (setting.origin == "default" || !setting.note.empty()) continue;
    if (setting.name == "summary" || setting.name == "trace") continue;
    if (!set.empty()) set += ", ";
    set += setting.name + "=" + setting.value + " (" + setting.origin + ")";
  }
  if (set.empty()) return;
  Label(text, "settings");
  text += set + '\n';
}

void WentWrong(std::string& text, const Summary& summary) {
  const Incidents& incidents = summary.incidents;
  if (!incidents.first_error.empty()) {
    Label(text, "first error");
    text += incidents.first_error + '\n';
  }
  if (incidents.last_error != incidents.first_error) {
    Label(text, "last error");
    text += incidents.last_error + '\n';
  }
  Files(text, "not stored", incidents.not_stored);
  Files(text, "not closed", incidents.left_open);
}

}  // namespace

std::string SummaryTable(const Summary& summary) {
  std::vector<std::string> advice;
  for (Advice& found : AdviceFor(summary)) advice.push_back(std::move(found.text));
  std::string text;
  Print(text, "tidelane %s, process %d: %s opened, %s, %.3f s\n", TIDELANE_VERSION, summary.pid,
        CountInWords(summary[Counter::kFilesOpened], "file").c_str(),
        CountInWords(summary[Counter::kErrors], "error").c_str(), Seconds(summary.run_ns));
  return text + SummaryLines(summary, advice);
}

std::string SummaryLines(const Summary& summary, const std::vector<std::string>& advice) {
  std::string text;
  Written(text, summary);
  FellBack(text, summary);
  Storage(text, summary);
  Gpus(text, summary);
  FetchedAhead(text, summary);
  Decoded(text, summary);
  Waited(text, summary);
  Hidden(text, summary);
  Chose(text, summary);
  ReadPhases(text, summary);
  Label(text, "arena");
  Print(text, "peak %s of %s\n", BytesInWords(summary[Counter::kArenaPeakBytes]).c_str(),
        BytesInWords(summary[Counter::kArenaCapBytes]).c_str());
  Set(text, summary.config);
  WentWrong(text, summary);
  const char* label = "advice";
  for (const std::string& words : advice) {
    Label(text, label);
    label = "";
    text += words + '\n';
  }
  return text;
}

}  // namespace tidelane
