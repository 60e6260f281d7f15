#include "tools/query_child.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/trace.h"
#include "base/words.h"
#include "predicate/text.h"
#include "tools/locate.h"
#include "tools/query_arrow.h"
#include "tools/query_hdf5.h"
#include "tools/query_print.h"
#include "tools/query_scan.h"
#include "tools/query_source.h"
#include "tools/query_write.h"
#include "tools/terminal.h"

namespace tidelane::tools {
namespace {

/// "12.5 M elements/s, 14 s left" beside the bar.
std::string RateInWords(Progressed progressed, double seconds) {
  if (progressed.done == 0 || seconds <= 0) return {};
  const double rate = static_cast<double>(progressed.done) / seconds;
  const double left = static_cast<double>(progressed.total - progressed.done) / rate;
  std::string text;
  if (rate >= 1e9) {
    Print(text, "%.1f G", rate / 1e9);
  } else if (rate >= 1e6) {
    Print(text, "%.1f M", rate / 1e6);
  } else if (rate >= 1e3) {
    Print(text, "%.1f k", rate / 1e3);
  } else {
    Print(text, "%.0f ", rate);
  }
  text += text.ends_with(' ') ? "elements/s, " : " elements/s, ";
  constexpr double kMinute = 60;
  constexpr double kHour = 3600;
  if (left < 100) {
    Print(text, "%.0f s left", left);
  } else if (left < 2 * kHour) {
    Print(text, "%.0f min left", left / kMinute);
  } else {
    Print(text, "%.1f h left", left / kHour);
  }
  return text;
}

class Hits {
 public:
  Hits(const Arguments& arguments, const LoadedLibrary& library, const LoadedLibrary& plugin)
      : arguments_(arguments),
        hdf5_(library),
        source_(hdf5_),
        scan_(hdf5_, plugin, source_),
        progress_("query") {}

  int Run() {
    if (!hdf5_.Start()) return Fail(kFailed, "HDF5 does not start: " + hdf5_.Why());
    const std::string& text = arguments_.operands[3];
    if (const std::string wrong = Find(text); !wrong.empty()) return Fail(kUsage, wrong);
    std::string error;
    if (!scan_.Open(text, [this](Progressed progressed) { Show(progressed); }, error))
      return Fail(kUsage, error);
    begin_ns_ = NowNs();
    const bool done = Give(error);
    progress_.Hide();
    return done ? kDone : Fail(kFailed, error);
  }

 private:
  std::string Find(const std::string& text) {
    std::string wrong = source_.Open(arguments_.operands[2]);
    if (!wrong.empty()) return wrong;
    wrong = arguments_.Has("dataset") ? source_.UseDataset(arguments_.Get("dataset"))
                                      : source_.UseGroup(arguments_.Get("group", "/"));
    if (!wrong.empty()) return wrong;
    const predicate::QueryPtr query = predicate::Parse(text, wrong);
    if (query == nullptr) return wrong;
    std::vector<std::string> names;
    for (const std::string& name : query->Columns()) names.push_back(name);
    for (const std::string& list : arguments_.All("columns")) {
      for (const std::string& name : SplitAt(list, ',')) names.push_back(name);
    }
    for (const std::string& name : names) {
      if (wrong = source_.AddColumn(name); !wrong.empty()) return wrong;
    }
    return {};
  }

  bool Give(std::string& error) {
    if (arguments_.Has("csv")) return PrintCsv(scan_, error);
    if (arguments_.Has("arrow")) return WriteArrowHits(error);
    if (arguments_.Has("output")) return Write(error);
    if (arguments_.Has("explain")) return Explain(error);
    if (arguments_.Has("count")) {
      uint64_t hits = 0;
      if (!scan_.Count(hits, error)) return false;
      progress_.Hide();
      return PrintLine(std::to_string(hits), error);
    }
    const uint64_t limit = std::strtoull(arguments_.Get("limit", "20").c_str(), nullptr, 10);
    return PrintTable(scan_, limit, [this] { progress_.Hide(); }, error);
  }

  bool Write(std::string& error) {
    if (!WriteHits(hdf5_, scan_,
                   {arguments_.operands[4], arguments_.operands[3], arguments_.operands[2]}, error))
      return false;
    progress_.Hide();
    return PrintLine(HitsInWords(scan_.found(), scan_), error);
  }

  bool WriteArrowHits(std::string& error) {
    const bool is_file = arguments_.operands.size() > 4;
    if (!WriteArrow(scan_, is_file ? arguments_.operands[4] : "", error)) return false;
    progress_.Hide();
    return !is_file || PrintLine(HitsInWords(scan_.found(), scan_), error);
  }

  bool Explain(std::string& error) {
    uint64_t hits = 0;
    const bool count = arguments_.Has("count");
    if (count && !scan_.Count(hits, error)) return false;
    progress_.Hide();
    PrintExplained(scan_, count, static_cast<double>(NowNs() - begin_ns_) / 1e9);
    return !count || PrintLine("hits      " + std::to_string(hits), error);
  }

  bool PrintLine(const std::string& line, std::string& error) {
    const bool printed = std::printf("%s\n", line.c_str()) >= 0 && std::fflush(stdout) == 0;
    if (!printed) error = "stdout cannot be written to";
    return printed;
  }

  void Show(Progressed progressed) {
    if (progressed.total == 0) return;
    // Lines of CSV on a terminal would be cut in two.
    if (arguments_.Has("csv") && isatty(STDOUT_FILENO) != 0) return;
    progress_.At(static_cast<double>(progressed.done) / static_cast<double>(progressed.total),
                 RateInWords(progressed, static_cast<double>(NowNs() - begin_ns_) / 1e9));
  }

  const Arguments& arguments_;
  Hdf5 hdf5_;
  Source source_;
  QueryScan scan_;
  Progress progress_;
  uint64_t begin_ns_ = 0;
};

}  // namespace

sigset_t SignalsThatEnd() {
  sigset_t ends;
  sigemptyset(&ends);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&ends, signal);
  return ends;
}

int QueryHits(const Arguments& given) {
  NameCommand("query");
  const sigset_t ends = SignalsThatEnd();
  sigprocmask(SIG_UNBLOCK, &ends, nullptr);
  Arguments arguments = given;
  if (arguments.operands.size() < 4) return kUsage;
  for (std::string& operand : arguments.operands) operand.erase(0, 1);
  const LoadedLibrary library(arguments.operands[0]);
  const LoadedLibrary plugin(arguments.operands[1]);
  for (const LoadedLibrary* loaded : {&library, &plugin}) {
    if (!loaded->error().empty()) return Fail(kFailed, loaded->error());
  }
  return Hits(arguments, library, plugin).Run();
}

}  // namespace tidelane::tools
