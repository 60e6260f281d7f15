/// \file
/// What can be said without HDF5 is said first; then a child does the work (query_child.h).
///
/// Invariant: the file of -o has its name when it is whole, whatever becomes of the child; otherwise nothing is left.
/// Thread safety: as query_command.h.
#include "tools/query_command.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "base/fresh_file.h"
#include "base/nearest.h"
#include "predicate/text.h"
#include "tools/arrow_messages.h"
#include "tools/find_hdf5.h"
#include "tools/locate.h"
#include "tools/plugin_environment.h"
#include "tools/process.h"
#include "tools/query_cells.h"
#include "tools/query_child.h"
#include "tools/summary_file.h"
#include "tools/terminal.h"

namespace tidelane::tools {
namespace {

namespace fs = std::filesystem;

constexpr double kLoadSeconds = 20;
constexpr int kInterrupted = 130;

void EndInterrupted(int) { _exit(kInterrupted); }

// -o - is stdout, where hits can be written in one go.
bool HasNewFile(const Arguments& arguments) {
  return arguments.Has("output") && !(arguments.Has("arrow") && arguments.Get("output") == "-");
}

std::string WrongOptions(const Arguments& arguments) {
  const std::vector<std::string>& operands = arguments.operands;
  if (operands.empty()) return "no file: tidelane query FILE 'Energy > 1.9'";
  if (operands.size() == 1) return "no query: tidelane query " + operands[0] + " 'Energy > 1.9'";
  if (operands.size() > 2)
    return "'" + operands[2] + "' is one word too many: the query is one word, in quotes";
  std::string given;
  for (const char* way : {"count", "csv", "arrow", "output"}) {
    if (!arguments.Has(way) || (given == "arrow" && way == std::string_view("output"))) continue;
    if (!given.empty()) return "--" + given + " and --" + way + " are one or the other";
    given = way;
  }
  if (arguments.Has("explain") && !given.empty() && given != "count")
    return "--explain goes with --count or alone";
  if (arguments.Has("group") && arguments.Has("dataset"))
    return "--group and --dataset are one or the other";
  if (arguments.Has("force") && !arguments.Has("output")) return "--force is for --output";
  if (arguments.Has("arrow") && !ArrowIsBuilt())
    return "this tidelane was built without Arrow: it takes flatbuffers' headers (on Debian the "
           "package libflatbuffers-dev) when it is built";
  if (arguments.Has("arrow") && !HasNewFile(arguments) && isatty(STDOUT_FILENO) != 0)
    return "--arrow is nothing for a terminal: --output FILE, or a pipe";
  const std::string limit = arguments.Get("limit", "20");
  uint64_t rows = 0;
  const auto end = std::from_chars(limit.data(), limit.data() + limit.size(), rows);
  if (end.ec != std::errc() || end.ptr != limit.data() + limit.size())
    return "--limit is a number of hits, 0 for all: '" + limit + "'";
  return {};
}

// "at character 7: reason", with the text and a caret below it.
int WrongQuery(const std::string& text, const std::string& why) {
  constexpr size_t kMostShown = 60;  // characters before the caret
  Tell("the query is wrong " + why);
  size_t place = 0;
  if (std::sscanf(why.c_str(), "at character %zu", &place) != 1 || place == 0) return kUsage;
  size_t begin = 0;
  size_t before = 0;
  std::string line;
  size_t at = 1;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool first = (static_cast<unsigned char>(text[i]) & 0xc0) != 0x80;
    if (i > 0 && first) ++at;
    if (at + kMostShown == place && first) begin = i;
    if (at <= place) before = i + (at < place ? 1 : 0);
  }
  if (place > at) before = text.size();
  if (before < begin) before = begin;
  line = Shown(std::string_view(text).substr(begin, before - begin), SIZE_MAX);
  const size_t column = Characters(line);
  line += Shown(std::string_view(text).substr(before), kMostShown / 2);
  std::fprintf(stderr, "  %s\n  %s^\n", line.c_str(), std::string(column, ' ').c_str());
  return kUsage;
}

std::string WrongFile(const std::string& path) {
  if (IsFolder(path)) return path + " is a folder";
  if (access(path.c_str(), R_OK) == 0) return {};
  if (errno != ENOENT) return path + ": " + std::strerror(errno);
  const fs::path parent = fs::path(path).parent_path();
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(parent.empty() ? "." : parent, ignored))
    names.push_back(entry.path().filename().string());
  const std::vector<std::string_view> known(names.begin(), names.end());
  const std::string_view meant = Meant(fs::path(path).filename().string(), known);
  return path + ": no such file" +
         (meant.empty() ? "" : "; the nearest is " + (parent / meant).string());
}

/// The file of -o under a name of its own until it is whole.
class NewFile {
 public:
  ~NewFile() {
    if (!temporary_.empty()) unlink(temporary_.c_str());
  }

  std::string Begin(const std::string& path, const std::string& source, bool force) {
    path_ = path;
    force_ = force;
    struct stat about{};
    if (stat(path.c_str(), &about) == 0) {
      std::error_code ignored;
      if (fs::equivalent(path, source, ignored)) return path + " is the file that is asked";
      if (!S_ISREG(about.st_mode)) return path + " is no regular file";
      if (!force) return path + " exists already: --force replaces it";
    }
    constexpr mode_t kAll = 0666;  // less the umask
    const int descriptor = CreateFresh(path, kAll, temporary_);
    if (descriptor < 0) {
      temporary_.clear();
      return path + ": " + std::strerror(errno);
    }
    close(descriptor);
    return {};
  }

  std::string End() {
    // Without --force a file that has come meanwhile stays.
    const int error =
        force_ ? rename(temporary_.c_str(), path_.c_str())
               : renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE);
    if (error == 0) {
      temporary_.clear();
      return {};
    }
    if (errno == EINVAL || errno == ENOSYS) {  // not of this file system
      if (link(temporary_.c_str(), path_.c_str()) == 0) return {};
    }
    return path_ + ": " + std::strerror(errno);
  }

  const std::string& temporary() const { return temporary_; }

 private:
  std::string path_;
  std::string temporary_;
  bool force_ = false;
};

// Whether it loads the plugin; else why not.
std::string Unfit(const FoundHdf5& found, const std::string& plugins) {
  if (found.path.empty()) return found.how;
  const Ended ended =
      RunAndRead({OwnPath(), "probe", "about", found.path},
                 {"HDF5_VOL_CONNECTOR", "HDF5_PLUGIN_PATH=" + plugins}, kLoadSeconds);
  const Json about = Json::parse(ended.output, nullptr, false);
  if (ended.ok() && At(about, "connector") == true) return {};
  return found.path + " (" + found.how + ") cannot load the plugin";
}

// The first that is fit. Empty with the reason.
std::string FitHdf5(const Arguments& arguments, const std::string& plugins, std::string& error) {
  FoundHdf5 found = arguments.Has("hdf5") ? Hdf5At(arguments.Get("hdf5")) : Hdf5OfThisMachine();
  error = Unfit(found, plugins);
  if (error.empty()) return found.path;
  const std::string first = found.path;
  if (!arguments.Has("hdf5") && !FindProgram("python3").empty()) {
    found = Hdf5Of("python3");
    if (found.path != first && Unfit(found, plugins).empty()) return found.path;
  }
  if (!first.empty()) {
    error += "; tidelane check --hdf5 " + first + " says more";
  } else if (!arguments.Has("hdf5")) {
    error += "; --hdf5 PATH names one";
  }
  error = "no HDF5 that is fit: " + error;
  return {};
}

std::vector<std::string> ChildWords(const Arguments& arguments, const std::string& library,
                                    const std::string& plugins, const std::string& output) {
  std::vector<std::string> words{OwnPath(), "query-hits"};
  for (const auto& [name, values] : arguments.values) {
    if (values.empty()) words.push_back("--" + name);
    for (const std::string& value : values) words.push_back("--" + name + "=" + value);
  }
  const size_t options = words.size();
  words.insert(words.end(), {library, plugins + "/libtidelane.so", arguments.operands[0],
                             arguments.operands[1]});
  if (!output.empty()) words.push_back(output);
  // A colon first, so that none of them is taken for an option.
  for (size_t i = options; i < words.size(); ++i) words[i].insert(0, ":");
  return words;
}

// The new file needs no log and no hidden name, as its name comes at the end; and hits that wait to be written are to be few.
void PrepareEnvironment(const std::string& plugins) {
  std::string replaced;
  TurnOn(plugins, replaced);
  setenv("TIDELANE_ARENA", "64M", 0);
  for (const auto& [name, value] : {std::pair("journal", "off"),
                                    {"journal_required", "off"},
                                    {"publish", "inplace"},
                                    {"close", "wait"}})
    ForceSetting(name, value);
}

int EndOf(const Ended& ended, const std::string& library) {
  if (!ended.started) return Fail(kFailed, "the query " + ended.HowInWords());
  if (!WIFSIGNALED(ended.status)) return WEXITSTATUS(ended.status);
  if (isatty(STDERR_FILENO) != 0) std::fputs("\r\033[K", stderr);
  const int by = WTERMSIG(ended.status);
  if (by == SIGINT) return kInterrupted;
  if (by == SIGPIPE || by == SIGTERM || by == SIGHUP || by == SIGQUIT) return 128 + by;
  return Fail(kFailed, "the query with " + library + " " + ended.HowInWords());
}

}  // namespace

int Query(const Arguments& arguments) {
  if (const std::string wrong = WrongOptions(arguments); !wrong.empty()) return Fail(kUsage, wrong);
  // While an HDF5 is looked for; who has it ignored means that.
  if (signal(SIGINT, EndInterrupted) == SIG_IGN) signal(SIGINT, SIG_IGN);
  std::string error;
  if (predicate::Parse(arguments.operands[1], error) == nullptr)
    return WrongQuery(arguments.operands[1], error);
  if (const std::string wrong = WrongFile(arguments.operands[0]); !wrong.empty())
    return Fail(kUsage, wrong);
  const std::string plugins = FindPlugins(arguments.Get("plugins"), error);
  if (plugins.empty()) return Fail(kFailed, error);
  const std::string library = FitHdf5(arguments, plugins, error);
  if (library.empty()) return Fail(kFailed, error);
  // From now on the end is ours, so that nothing is left; the child takes them as they come.
  const sigset_t ends = SignalsThatEnd();
  sigprocmask(SIG_BLOCK, &ends, nullptr);
  NewFile output;
  if (HasNewFile(arguments)) {
    error = output.Begin(arguments.Get("output"), arguments.operands[0], arguments.Has("force"));
    if (!error.empty()) return Fail(kUsage, error);
  }
  PrepareEnvironment(plugins);
  // One that came before there was a child reached nobody.
  sigset_t come;
  if (sigpending(&come) == 0 && sigismember(&come, SIGINT) == 1) return kInterrupted;
  int pid = 0;
  const Ended ended = RunInFront(ChildWords(arguments, library, plugins, output.temporary()), pid);
  const int status = EndOf(ended, library);
  if (status == kDone && HasNewFile(arguments)) {
    if (error = output.End(); !error.empty()) return Fail(kFailed, error);
  }
  return status;
}

}  // namespace tidelane::tools
