#include "tools/run.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/config.h"
#include "base/output_file.h"
#include "base/words.h"
#include "tools/drain_command.h"
#include "tools/environment.h"
#include "tools/find_hdf5.h"
#include "tools/gathering.h"
#include "tools/locate.h"
#include "tools/page.h"
#include "tools/plugin_environment.h"
#include "tools/process.h"
#include "tools/summary_file.h"
#include "tools/terminal.h"
#include "tools/timeline.h"

namespace tidelane::tools {
namespace {

struct Wanted {
  bool quiet = false;
  std::string summary;  // "1" or a path
  std::string trace;    // a path
  std::string page;     // a path
  bool drains = false;  // what was closed into a tier, at the end
};

// Puts everything into the environment; false if `status` is to be returned.
bool Prepare(const Arguments& arguments, Gathering& gathering, Wanted& wanted, int& status) {
  std::string error;
  const std::string plugins = FindPlugins(arguments.Get("plugins"), error);
  if (plugins.empty()) return status = Fail(kCannotRun, error), false;
  Config config;
  Status applied = ApplySettings(SettingsOf(arguments));
  if (applied.ok()) applied = LoadConfig(config);
  if (!applied.ok()) return status = Fail(kCannotRun, InWords(applied)), false;
  if (Status begun = gathering.Begin(); !begun.ok()) {
    return status = Fail(kCannotRun, begun.Message() + " (TMPDIR says where)"), false;
  }
  wanted.quiet = arguments.Has("quiet");
  wanted.page = arguments.Get("html");
  wanted.summary = config.summary;
  wanted.trace = config.trace;
  wanted.drains = config.close_in_tier && !config.tier.empty();
  if (wanted.drains) ForceSetting("tier_drained", "on");
  ForceSetting("summary", gathering.SummaryPattern());
  if (!wanted.trace.empty() || !wanted.page.empty()) {
    ForceSetting("trace", gathering.TracePattern());
  }
  std::string replaced;
  TurnOn(plugins, replaced);
  if (!replaced.empty() && !wanted.quiet) {
    Tell("HDF5_VOL_CONNECTOR said '" + replaced + "': Tidelane takes its place for this program");
  }
  return true;
}

int NotStarted(const std::string& program, int error) {
  std::string text = "cannot run '" + program + "': " + std::strerror(error);
  if (program.starts_with("-")) text += "; options of tidelane stand before the program";
  return Fail(error == ENOENT ? kNotFound : kNotExecutable, text);
}

// "run-x.json" for "run.json".
std::string WithWord(std::string path, const std::string& word) {
  const size_t dot = path.rfind('.');
  const size_t slash = path.rfind('/');
  const bool has = dot != std::string::npos && (slash == std::string::npos || dot > slash + 1);
  return path.insert(has ? dot : path.size(), "-" + word);
}

// Nodes that tell for themselves must not write over each other.
void NameAfterNode(Wanted& wanted) {
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) != 0) return;
  for (std::string* path : {&wanted.summary, &wanted.trace, &wanted.page}) {
    if (!path->empty() && *path != "1") *path = WithWord(*path, name);
  }
}

// `pattern` with %p; where several processes would write over each other, the id is put in.
std::string PathFor(std::string pattern, int pid, bool several) {
  const std::string id = std::to_string(pid);
  if (several && pattern.find("%p") == std::string::npos) pattern = WithWord(pattern, "%p");
  for (size_t at = 0; (at = pattern.find("%p", at)) != std::string::npos;) {
    pattern.replace(at, 2, id);
  }
  return pattern;
}

void SaveSummaries(const std::vector<ProcessSummary>& processes, const std::string& pattern) {
  for (const ProcessSummary& process : processes) {
    std::string text;
    OutputFile file;
    Status status = file.Open(PathFor(pattern, process.summary.pid, processes.size() > 1));
    if (status.ok() && ReadWhole(process.path, text)) {
      std::fputs(text.c_str(), file.stream());
      status = file.Commit();
    }
    if (!status.ok()) return Tell("--summary: " + status.Message());
  }
}

Timeline ReadTimeline(const Gathering& gathering) {
  Timeline timeline;
  for (const Left& left : gathering.Traces()) {
    std::string error;
    if (!ReadTrace(left.path, left.rank, timeline, error)) Tell(error);
  }
  Arrange(timeline);
  return timeline;
}

std::string CommandLine(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + word;
  return line;
}

void SaveTimelines(const Gathering& gathering, const Wanted& wanted, PageContent content) {
  if (wanted.trace.empty() && wanted.page.empty()) return;
  content.timeline = ReadTimeline(gathering);
  if (!wanted.trace.empty()) {
    const Status status = WriteChromeTrace(content.timeline, PathFor(wanted.trace, 0, false));
    if (!status.ok()) Tell("--trace: " + status.Message());
  }
  if (wanted.page.empty()) return;
  if (const Status status = WritePage(std::move(content), wanted.page); !status.ok()) {
    Tell("--html: " + status.Message());
  } else if (!wanted.quiet) {
    Tell("the page is " + wanted.page);
  }
}

void TellNothingWasLoaded(const std::vector<std::string>& command, int status) {
  if (WIFSIGNALED(status)) {
    Tell("no summary: '" + command[0] + "' was ended by signal " +
         std::to_string(WTERMSIG(status)) + ", and only programs that end by themselves tell");
    return;
  }
  Tell("nothing was asynchronous: no process loaded Tidelane and ended by itself. " +
       WhyNotLoaded(command));
}

// Whether anything was captured, in words if not; the table's advice says more.
void TellIfNothingWasCaptured(const std::vector<ProcessSummary>& processes) {
  const Summary sum = Together(processes);
  if (sum[Counter::kFilesOpened] == 0) {
    Tell("Tidelane was loaded, but no file was opened through it");
  } else if (sum[Counter::kBytesDeferred] == 0 && sum[Counter::kAheadBytes] == 0) {
    Tell("Tidelane was loaded, but nothing was asynchronous: the table says why");
  }
}

void TellAll(const Gathering& gathering, const Wanted& wanted,
             const std::vector<std::string>& command, int status) {
  std::vector<ProcessSummary> processes;
  for (const Left& left : gathering.Summaries()) {
    ProcessSummary process;
    std::string error;
    if (!ReadSummary(left.path, process, error)) {
      Tell(error);
      continue;
    }
    if (process.rank < 0) process.rank = left.rank;
    processes.push_back(std::move(process));
  }
  if (processes.empty()) {
    if (!wanted.quiet) TellNothingWasLoaded(command, status);
    return;
  }
  if (!wanted.quiet) {
    std::fputs(TableOf(processes).c_str(), stderr);
    TellIfNothingWasCaptured(processes);
  }
  if (!wanted.summary.empty() && wanted.summary != "1") SaveSummaries(processes, wanted.summary);
  SaveTimelines(gathering, wanted, {CommandLine(command), std::move(processes), {}});
}

}  // namespace

int Run(const Arguments& arguments) {
  const std::vector<std::string>& command = arguments.operands;
  if (command.empty()) {
    return Fail(kCannotRun, "no program: tidelane run [options] -- program [arguments]");
  }
  Ended ended;
  {
    Gathering gathering;  // removed before we end, maybe by a signal
    Wanted wanted;
    int status = kDone;
    if (!Prepare(arguments, gathering, wanted, status)) return status;
    int pid = 0;
    ended = RunInFront(command, pid);
    // The job may end with this, and the mover with it.
    if (wanted.drains) DrainAll();
    const bool last = gathering.End();
    if (!ended.started) return NotStarted(command[0], ended.error);
    if (gathering.other_nodes()) NameAfterNode(wanted);
    if (last) TellAll(gathering, wanted, command, ended.status);
  }
  EndAs(ended.status);
}

}  // namespace tidelane::tools
