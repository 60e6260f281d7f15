#include "tools/recover.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "base/words.h"
#include "log/recover_file.h"
#include "publish/directory_entry.h"
#include "publish/publication.h"
#include "tools/survey.h"
#include "tools/terminal.h"
#include "tools/tiers.h"

namespace tidelane::tools {
namespace {

namespace fs = std::filesystem;

std::string SizeOf(const std::string& path) {
  std::error_code ignored;
  return BytesInWords(fs::file_size(path, ignored));
}

class Recovery final : public Survey {
 public:
  explicit Recovery(const Arguments& arguments)
      : only_tell_(arguments.Has("dry-run")),
        without_log_(arguments.Has("without-log")),
        log_(arguments.Get("log")) {}

  bool told() const { return told_; }

 private:
  void File(log::FileByName& file, const std::string& path, bool named) override {
    if (file.marked()) return only_tell_ ? Marked(file, path, named) : Open(path, named);
    if (!file.in_use()) Spent(path);
    if (!named) return;
    if (file.superblock().empty() && file.size() != 0) return Complain(path + ": no HDF5 file");
    file.in_use() ? InUse(path, named) : Say("nothing to recover: " + path);
  }

  // To be changed, if nobody has it; by then it may be another one.
  void Open(const std::string& path, bool named) {
    log::FileByName file;
    const Status status = file.Open(path, log::Purpose::kChange);
    if (IsInUse(status.code())) return InUse(path, named);
    if (!status.ok()) return Complain(path, status.code());
    if (file.marked()) Marked(file, path, named);
  }

  void Marked(log::FileByName& file, const std::string& path, bool named) {
    if (file.in_use()) return InUse(path, named);
    if (!log_.empty()) {
      std::error_code ignored;
      if (const std::string owner = OwnerOf(log_);
          !owner.empty() && !fs::equivalent(owner, path, ignored))
        return Complain(log_ + ": " + owner + " needs this log");
      if (const int error = file.UseLog(log_); error != 0) return Complain(log_, error);
    }
    std::optional<tier::FoundLog> tiered;
    if (log_.empty() && !without_log_) {
      if (Status status = LogInTier(path, file.superblock(), tiered); !status.ok())
        return Complain(InWords(status));
    }
    if (tiered.has_value()) {
      return Say("in the tier: " + path + ": tidelane drain brings it there");
    }
    log::Snapshot snapshot;
    Status status = file.Read(snapshot);
    if (IsInUse(status.code())) return InUse(path, named);
    if (without_log_) return WithoutLog(file, path, status);
    if (!status.ok()) return NoLog(file, path, status);
    const std::string what =
        file.never_committed() || snapshot.superblock.empty()
            ? ""
            : " (" +
                  (snapshot.generation == 0 ? "the commit before its log"
                                            : "commit " + std::to_string(snapshot.generation)) +
                  ", " + BytesInWords(log::BytesLogged(snapshot)) + ")";
    if (only_tell_) {
      return Say(what.empty() ? path + ": never committed; recovered, it would be empty"
                              : "to be recovered: " + path + what);
    }
    status = file.Recover(snapshot);
    if (!status.ok()) return Complain(InWords(status));
    Say(what.empty() ? path + ": never committed; it is empty now" : "recovered " + path + what);
  }

  void NoLog(const log::FileByName& file, const std::string& path, const Status& status) {
    std::string words = InWords(status);
    const std::string other = LogElsewhere(path, file.superblock());
    if (!other.empty() && log_.empty())
      words += "; " + other + " is its log: tidelane recover --log " + other + " " + path;
    Complain(words);
  }

  // Only where nothing better is left.
  void WithoutLog(log::FileByName& file, const std::string& path, const Status& status) {
    if (status.ok() && !file.never_committed())
      return Complain(path +
                      ": its log is there; tidelane recover, without --without-log, uses it");
    if (!status.ok() && status.code() != log::kNoLog && status.code() != EIO &&
        status.code() != ESTALE)
      return Complain(InWords(status));
    if (const std::string other = LogElsewhere(path, file.superblock());
        !other.empty() && status.code() == log::kNoLog)
      return NoLog(file, path, status);
    const std::string torn = " (" + BytesInWords(file.size()) +
                             "): its content may be torn, a mixture of older and newer bytes";
    if (only_tell_) return Say("the mark would be cleared: " + path + torn);
    if (const Status cleared = file.ClearMark(); !cleared.ok()) return Complain(InWords(cleared));
    Say("mark cleared, without a log: " + path + torn);
  }

  // What a kill has left behind its file's last step.
  void Spent(const std::string& path) {
    const std::vector<log::FoundSegment> beside = log::SegmentsBeside(path);
    if (beside.empty()) return;
    log::FileByName file;
    Status status = file.Open(path, only_tell_ ? log::Purpose::kLook : log::Purpose::kChange);
    std::vector<std::string> spent;
    if (status.ok()) status = file.FindSpentLog(spent, !only_tell_);
    if (IsInUse(status.code())) return;
    if (!status.ok()) Complain(InWords(status));
    const std::set<std::string> names(spent.begin(), spent.end());
    for (const log::FoundSegment& segment : beside) {
      if (!names.contains(segment.name)) continue;
      told_of_.insert(segment.path);
      Say((only_tell_ ? "left behind: " : "removed ") + segment.path + " (" +
          BytesInWords(segment.size) + ")");
    }
  }

  void Stray(const log::FoundSegment& segment, const std::string& beside) override {
    if (told_of_.contains(segment.path)) return;
    if (segment.in_use) return InUse(segment.path, false);
    const std::string what = segment.id == 0 ? "no log that can be read" : "a log of " + segment.of;
    Say(segment.path + ": " + what +
        (beside.empty() ? ", of no file here" : ", not of " + beside + " as it is"));
  }

  void Hidden(const std::string& path, bool named) override {
    const std::string size = SizeOf(path);
    DirectoryEntry entry;
    int error = DirectoryEntry::Find(path.c_str(), false, entry);
    if (error == 0) error = SweepHidden(entry.folder.get(), entry.name, only_tell_);
    if (error == 0) {
      Say((only_tell_ ? "left behind: " : "removed ") + path + " (" + size + ")");
    } else if (IsInUse(error)) {
      InUse(path, named);
    } else if (error != ENOENT) {
      Complain(path, error);
    }
  }

  // Of a folder what is in use is left alone; who names a file wants it recovered.
  void InUse(const std::string& path, bool named) {
    const std::string words =
        "in use: " + path + " (" + SizeOf(path) + "), which a program has open";
    named ? Complain(words) : Say(words);
  }

  void Say(const std::string& line) {
    std::puts(line.c_str());
    told_ = true;
  }

  const bool only_tell_;
  const bool without_log_;
  const std::string log_;
  std::set<std::string> told_of_;
  bool told_ = false;
};

// By hand: of files that are named.
std::string Mistake(const Arguments& arguments) {
  const bool by_log = arguments.Has("log");
  const bool without = arguments.Has("without-log");
  if (!by_log && !without) return {};
  if (by_log && without) return "--log and --without-log are one or the other";
  if (by_log && arguments.operands.size() != 1) return "--log is the log of one FILE";
  if (arguments.operands.empty()) return "--without-log of which FILE?";
  for (const std::string& operand : arguments.operands) {
    std::error_code error;
    if (fs::is_directory(operand, error))
      return (by_log ? "--log " : "--without-log ") + ("is for a file: " + operand) +
             " is a folder";
  }
  return {};
}

}  // namespace

int Recover(const Arguments& arguments) {
  if (const std::string mistake = Mistake(arguments); !mistake.empty())
    return Fail(kUsage, mistake);
  Recovery recovery(arguments);
  const int status = recovery.Run(arguments);
  if (status == kDone && !recovery.told()) std::puts("nothing was left behind");
  return status;
}

}  // namespace tidelane::tools
