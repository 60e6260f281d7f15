/// \file
/// Each part finds one thing out and says it in a line; what is wrong comes with what to do. The
/// parts that load HDF5, or a GPU's driver, run in copies of this program (tools/probe.h), with a time limit each.
///
/// Thread safety: as check.h.
#include "tools/check.h"

#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/config.h"
#include "base/processors.h"
#include "base/trace.h"
#include "base/version.h"
#include "base/words.h"
#include "tier/place.h"
#include "tier/survival.h"
#include "tools/find_hdf5.h"
#include "tools/locate.h"
#include "tools/process.h"
#include "tools/storage_speed.h"
#include "tools/summary_file.h"
#include "tools/terminal.h"

namespace tidelane::tools {
namespace {

constexpr double kLoadSeconds = 20;
constexpr double kTestSeconds = 20;  // each half of the self-test
constexpr uint64_t kMib = uint64_t{1} << 20;

enum class State { kGood, kNote, kBad };

class Checker {
 public:
  explicit Checker(const Arguments& arguments)
      : arguments_(arguments), json_(arguments.Has("json")) {}

  int Run() {
    Machine();
    Gpus();
    Tiers();
    const bool plugin = Plugin();
    const bool library = Library();
    const bool folder = Storage();
    if (plugin && library && folder) SelfTest();
    return Verdict();
  }

 private:
  void Say(State state, const std::string& part, const std::string& text,
           const std::string& advice = "");
  bool Plugin();
  bool Library();
  void Mpi();
  void Machine();
  void Gpus();
  void Tiers();
  bool Storage();
  void SelfTest();
  int Verdict();

  Ended Ask(std::vector<std::string> words, std::vector<std::string> environment, double seconds) {
    words.insert(words.begin(), {OwnPath(), "probe"});
    environment.push_back("HDF5_PLUGIN_PATH=" + plugins_);
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string variable(*entry);
      if (variable.starts_with("TIDELANE_") || variable.starts_with("HDF5_ASYNC_")) {
        environment.insert(environment.begin(), variable.substr(0, variable.find('=')));
      }
    }
    const bool tests = words[2] == "write" || words[2] == "read";
    Progress progress(tests ? "self-test, " + words[2] : "loading the library");
    const uint64_t begin = NowNs();
    return RunAndRead(words, environment, seconds,
                      [&] { progress.At(static_cast<double>(NowNs() - begin) / 1e9 / seconds); });
  }

  const Arguments& arguments_;
  bool json_;
  Json findings_ = Json::array();
  bool bad_ = false;
  std::string plugins_;
  std::string library_;
  std::string folder_;
  uint64_t test_mib_ = 64;
};

std::string LastLine(const std::string& text) {
  const std::vector<std::string> lines = SplitAt(text, '\n');
  return lines.empty() ? std::string() : lines.back();
}

// What a probe said last, or else how it ended.
std::string WhyItEnded(const Ended& ended) {
  const std::string said = LastLine(ended.errors);
  return ended.HowInWords() + (said.empty() ? "" : ": " + said);
}

void Checker::Say(State state, const std::string& part, const std::string& text,
                  const std::string& advice) {
  static constexpr const char* kWords[] = {"ok", "note", "FAILED"};
  static constexpr Colour kColours[] = {Colour::kGood, Colour::kNote, Colour::kBad};
  constexpr size_t kIndent = 19;
  const auto index = static_cast<size_t>(state);
  bad_ = bad_ || state == State::kBad;
  findings_.push_back(
      {{"check", part}, {"state", kWords[index]}, {"text", text}, {"advice", advice}});
  if (json_) return;
  std::string word;
  std::string name;
  Print(word, "%-6s", kWords[index]);
  Print(name, " %-11s ", part.c_str());
  const std::string blanks(kIndent, ' ');
  std::printf("%s%s%s\n", Coloured(kColours[index], word).c_str(), name.c_str(),
              Wrapped(text, TextWidth(), kIndent).c_str());
  if (!advice.empty()) {
    std::printf("%s-> %s\n", blanks.c_str(), Wrapped(advice, TextWidth(), kIndent + 3).c_str());
  }
  std::fflush(stdout);
}

void Checker::Machine() {
  cpu_set_t cpus;
  const int cores = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
  Config config;
  if (const Status status = LoadConfig(config); !status.ok()) {
    Say(State::kBad, "settings", InWords(status), "tidelane config shows all that are wrong");
    return;
  }
  std::string text;
  const unsigned lanes = config.lanes_for_all();
  const unsigned most = config.lanes != 0 ? lanes : std::min(ProcessorsForLanes(), kMostLanes);
  std::string more;
  if (most > lanes) Print(more, ", and up to %u for filters", most);
  Print(text, "%u beside the program%s, on %s; up to %s may wait in memory", lanes, more.c_str(),
        CountInWords(static_cast<uint64_t>(cores), "core").c_str(),
        BytesInWords(config.arena_bytes).c_str());
  Say(cores > 1 ? State::kGood : State::kNote, "lanes", text,
      cores > 1 ? ""
                : "bound to one core, lanes and program take turns: srun -c 2, mpirun "
                  "--bind-to none");
  void* const isal = dlopen("libisal.so.2", RTLD_NOW | RTLD_LOCAL);
  Say(State::kGood, "compression",
      isal != nullptr ? "libdeflate; ISA-L is there for TIDELANE_DEFLATE=isal"
                      : "libdeflate; no ISA-L (Debian's libisal2), which only "
                        "TIDELANE_DEFLATE=isal needs");
}

// Drivers are looked for where programs find them. Without one nothing is wrong.
void Checker::Gpus() {
  struct Driver {
    const char* library;
    const char* of;
    const char* more;
  };
  constexpr Driver kDrivers[] = {{"libcuda.so.1", "CUDA", "nvidia-smi"},
                                 {"libamdhip64.so.7", "HIP", "rocminfo"},
                                 {"libamdhip64.so.6", "HIP", "rocminfo"},
                                 {"libamdhip64.so.5", "HIP", "rocminfo"}};
  Json gpus = Json::array();
  std::string found;
  std::string answered;
  for (const Driver& driver : kDrivers) {
    if (driver.of == answered) continue;  // another version tells of the same devices
    const Ended ended = Ask({"gpus", driver.library}, {}, kLoadSeconds);
    const Json told = Json::parse(LastLine(ended.output), nullptr, false);
    if (ended.ok() && told.is_array()) {
      gpus.insert(gpus.end(), told.begin(), told.end());
      found += (found.empty() ? "the " : " and the ") + std::string(driver.of) + " driver";
      answered = driver.of;
      continue;
    }
    if (ended.errors.find(driver.library) != std::string::npos &&
        ended.errors.find("No such file") != std::string::npos)
      continue;
    return Say(State::kNote, "GPU",
               std::string(driver.of) + "'s driver does not answer: it " + WhyItEnded(ended),
               std::string(driver.more) + " says more; buffers in host memory do not need it");
  }
  if (found.empty())
    return Say(State::kGood, "GPU",
               "none: there is no driver of CUDA (libcuda.so.1) or HIP (libamdhip64.so)");
  std::string text;
  for (size_t i = 0; i < gpus.size();) {
    size_t same = 1;
    while (i + same < gpus.size() && gpus[i + same] == gpus[i]) ++same;
    text += (text.empty() ? "" : ", ") + (same > 1 ? std::to_string(same) + " x " : std::string()) +
            TextAt(gpus[i], "name") + " with " + BytesInWords(WholeAt(gpus[i], "bytes"));
    i += same;
  }
  Say(State::kGood, "GPU",
      text.empty() ? "none: " + found + " tells of no device"
                   : text + ": H5Dwrite and H5Dread take pointers to " +
                         (gpus.size() > 1 ? "their" : "its") + " memory");
}

bool Checker::Plugin() {
  std::string error;
  plugins_ = FindPlugins(arguments_.Get("plugins"), error);
  if (plugins_.empty()) {
    Say(State::kBad, "plugin", error, "make build, or make install, makes it");
    return false;
  }
  const std::string file = plugins_ + "/libtidelane.so";
  const Ended ended = Ask({"load", file}, {"HDF5_VOL_CONNECTOR"}, kLoadSeconds);
  if (!ended.ok()) {
    Say(State::kBad, "plugin", file + " cannot be loaded: it " + WhyItEnded(ended),
        "it is damaged, or was built for another system: build or install it here");
    plugins_.clear();
    return false;
  }
  Say(State::kGood, "plugin", file + ", " TIDELANE_VERSION);
  return true;
}

bool OldEnough(const Json& version, unsigned major, unsigned minor, unsigned release) {
  if (!version.is_array() || version.size() != 3) return false;
  const Json wanted{major, minor, release};
  return version >= wanted;
}

bool Checker::Library() {
  FoundHdf5 found;
  if (arguments_.Has("hdf5")) {
    found = Hdf5At(arguments_.Get("hdf5"));
  } else if (!arguments_.operands.empty()) {
    found = Hdf5Of(arguments_.operands[0]);
  } else {
    found = Hdf5OfThisMachine();
  }
  if (found.path.empty()) {
    Say(State::kBad, "HDF5", found.how, "--hdf5 PATH names a library, -- PROGRAM who uses it");
    return false;
  }
  library_ = found.path;
  const Ended ended = Ask({"about", library_}, {"HDF5_VOL_CONNECTOR"}, kLoadSeconds);
  const Json about = Json::parse(ended.output, nullptr, false);
  if (!ended.ok() || !about.is_object()) {
    Say(State::kBad, "HDF5", library_ + " cannot be loaded: it " + WhyItEnded(ended),
        "a library that it needs may be missing: LD_LIBRARY_PATH");
    return false;
  }
  const Json& version = At(about, "version");
  std::string text = version[0].dump() + "." + version[1].dump() + "." + version[2].dump();
  const bool parallel = At(about, "parallel") == true;
  text += At(about, "threadsafe") == true ? ", thread-safe, " : ", not thread-safe, ";
  text += std::string(parallel ? "parallel" : "serial") + ": " + library_ + " (" + found.how + ")";
  if (!OldEnough(version, 1, 14, 1)) {
    Say(State::kBad, "HDF5", text, "it is too old: Tidelane needs 1.14.1 or newer");
    return false;
  }
  if (!plugins_.empty() && At(about, "connector") != true) {
    Say(State::kBad, "HDF5", text + " cannot load the plugin from " + plugins_,
        "HDF5's own words: " + LastLine(ended.errors));
    return false;
  }
  Say(State::kGood, "HDF5", text);
  if (parallel) Mpi();
  return true;
}

// What `close=tier` is worth here.
void Checker::Tiers() {
  Config config;
  if (!LoadConfig(config).ok()) return;  // that has been said
  const std::string setting = config.tier.empty() ? tier::kMemory : config.tier;
  tier::Place place;
  if (const Status status = tier::Place::Open(setting, false, place);
      !status.ok() && status.code() != ENOENT)
    return Say(State::kNote, "tier", InWords(status), "");
  const bool in_memory = setting == tier::kMemory || place.in_memory;
  const std::string where = tier::Place::PathOf(setting);
  std::string promise = in_memory ? "survives the program, not the machine"
                                  : "survives the program, and with journal=power the machine";
  if (const std::string ends = tier::WhatEndsIt(in_memory); !ends.empty()) {
    return Say(State::kNote, "tier", ends + ": close=tier waits here as close=wait does",
               "tidelane run drains at the program's end, and so does tidelane drain in a job's "
               "script (tier_drained=on)");
  }
  Say(State::kGood, "tier", "close=tier: what is closed into " + where + ' ' + promise);
}

void Checker::Mpi() {
  static constexpr const char* kLevels[] = {"MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED",
                                            "MPI_THREAD_SERIALIZED", "MPI_THREAD_MULTIPLE"};
  const Ended ended = Ask({"mpi", library_}, {"HDF5_VOL_CONNECTOR"}, kLoadSeconds);
  const Json about = Json::parse(LastLine(ended.output), nullptr, false);
  if (!ended.ok() || !about.is_object()) {
    Say(State::kNote, "MPI", "could not be started by one process: it " + ended.HowInWords(),
        "try mpirun -n 1 tidelane check …");
    return;
  }
  const uint64_t level = std::min<uint64_t>(WholeAt(about, "threads"), 3);
  Say(State::kGood, "MPI", TextAt(about, "library") + ", threads up to " + kLevels[level]);
}

bool Checker::Storage() {
  folder_ = arguments_.Get("dir", ".");
  StorageSpeed speed;
  if (const Status status = MeasureStorage(folder_, speed); !status.ok()) {
    Say(State::kBad, "storage", status.Message(), "--dir names the folder that you will write to");
    return false;
  }
  const auto rate = [](double bytes) { return BytesInWords(static_cast<uint64_t>(bytes)) + "/s"; };
  std::string text;
  Print(text,
        "%s (%s): %s as a program sees it, %s to the disk, %.0f us for a small request; "
        "memory copies %s",
        folder_.c_str(), speed.file_system.c_str(), rate(speed.write_rate).c_str(),
        rate(speed.disk_rate).c_str(), speed.small_seconds * 1e6, rate(speed.copy_rate).c_str());
  Say(State::kGood, "storage", text);
  const double slower = speed.copy_rate / speed.write_rate;
  constexpr double kQuick = 4;
  std::string gain;
  Print(gain,
        "writing here takes %.1f times as long as a copy in memory, which is all that a "
        "deferred write costs the program",
        slower);
  Say(slower < kQuick ? State::kNote : State::kGood, "gain", gain,
      slower < kQuick ? "the system's page cache takes writes about as quickly as memory: there is "
                        "little to hide, and only where the program pauses (docs/settings.md, mode)"
                      : "");
  if (!speed.locks) {
    Say(State::kNote, "locks", "files cannot be locked in " + folder_,
        "nothing is read ahead and no gaps are filled there; HDF5_USE_FILE_LOCKING=BEST_EFFORT "
        "lets "
        "HDF5 go on without locks");
  }
  constexpr double kTestWriteSeconds = 4;
  test_mib_ = std::clamp<uint64_t>(
      static_cast<uint64_t>(std::min(speed.write_rate, speed.disk_rate) * kTestWriteSeconds) / kMib,
      4, 64);
  return true;
}

/// A folder that is gone when this is.
class TestFolder {
 public:
  explicit TestFolder(const std::string& parent) : path_(parent + "/tidelane-check-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  ~TestFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void Checker::SelfTest() {
  const TestFolder folder(folder_);
  const std::string file = folder.path() + "/test.h5";
  const std::string summary = folder.path() + "/run.json";
  const std::string mib = std::to_string(test_mib_);
  const Ended wrote =
      Ask({"write", library_, file, mib},
          {"HDF5_VOL_CONNECTOR=tidelane", "TIDELANE_MODE=async", "TIDELANE_SUMMARY=" + summary},
          kTestSeconds);
  if (!wrote.ok()) {
    Say(State::kBad, "self-test", "writing " + WhyItEnded(wrote),
        "please report it, with the output of tidelane check --json");
    return;
  }
  const Ended read = Ask({"read", library_, file, mib}, {"HDF5_VOL_CONNECTOR"}, kTestSeconds);
  if (!read.ok()) {
    Say(State::kBad, "self-test",
        "native HDF5 does not read what was written: it " + WhyItEnded(read),
        "do not use Tidelane here, and please report it with the output of tidelane check --json");
    return;
  }
  ProcessSummary process;
  std::string error;
  if (!ReadSummary(summary, process, error)) {
    Say(State::kBad, "self-test", "the plugin told nothing: " + error);
    return;
  }
  const Summary& told = process.summary;
  const bool deferred = told[Counter::kBytesDeferred] >= test_mib_ * kMib;
  std::string text;
  Print(text, "%s written asynchronously in %s, merged into %s; native HDF5 read all of it back",
        BytesInWords(told[Counter::kBytesDeferred]).c_str(),
        CountInWords(told[Counter::kWritesDeferred], "write").c_str(),
        CountInWords(told[Counter::kRequestsWritten], "request").c_str());
  Say(deferred ? State::kGood : State::kBad, "self-test", text,
      deferred ? "" : "most of it was not asynchronous: TIDELANE_SUMMARY=1 says why");
}

int Checker::Verdict() {
  if (json_) {
    const Json json{{"ok", !bad_}, {"version", TIDELANE_VERSION}, {"findings", findings_}};
    std::puts(json.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
  } else if (bad_) {
    std::puts("\nNot usable as it is: see what FAILED above.");
  } else {
    std::puts("\nOK: tidelane run -- PROGRAM runs a program with it.");
  }
  return bad_ ? kFailed : kDone;
}

}  // namespace

int Check(const Arguments& arguments) { return Checker(arguments).Run(); }

}  // namespace tidelane::tools
