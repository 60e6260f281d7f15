#include "tools/status_command.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "base/words.h"
#include "device/claim.h"
#include "log/recover_file.h"
#include "publish/directory_entry.h"
#include "tools/summary_file.h"
#include "tools/survey.h"
#include "tools/tier_status.h"
#include "tools/tiers.h"

namespace tidelane::tools {
namespace {

// A file's state: by a word for scripts, and in words.
struct State {
  const char* word;
  const char* words;
};
constexpr State kPlain{"plain", "plain"};
constexpr State kWritten{"written", "being written"};
constexpr State kRecoverable{"recoverable", "to be recovered"};
constexpr State kInTier{"in_tier", "in the tier"};
constexpr State kNeverCommitted{"never_committed", "never committed"};
constexpr State kLogMissing{"log_missing", "log missing"};
constexpr State kLogUnusable{"log_unusable", "log unusable"};
constexpr State kLeftOpen{"left_open", "left open"};
constexpr State kUnpublished{"unpublished", "not published"};
constexpr State kStrayLog{"stray_log", "stray log"};
constexpr State kNoHdf5{"no_hdf5", "no HDF5 file"};

class Looking final : public Survey {
 public:
  explicit Looking(bool as_json) : as_json_(as_json) {}

  void End() const {
    if (as_json_) {
      std::puts(json_.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
    } else {
      std::fputs(text_.empty() ? "no HDF5 file\n" : text_.c_str(), stdout);
    }
  }

 private:
  void File(log::FileByName& file, const std::string& path, bool named) override {
    Json facts{{"size", file.size()}};
    const Superblock& superblock = file.superblock();
    if (superblock.empty() && !file.in_use()) {
      if (named) Add(kNoHdf5, path, facts, BytesInWords(file.size()));
      return;
    }
    std::optional<tier::FoundLog> tiered;
    // A mover may have it.
    if (file.marked()) static_cast<void>(LogInTier(path, superblock, tiered));
    if (file.in_use() && !tiered.has_value()) return Add(kWritten, path, facts, Sizes(path, facts));
    if (file.marked()) return Marked(file, path, facts);
    if (superblock.Closed() != superblock)
      return Add(kLeftOpen, path, facts,
                 BytesInWords(file.size()) + "; HDF5 refuses it until h5clear -s");
    Add(kPlain, path, facts, BytesInWords(file.size()));
  }

  void Marked(log::FileByName& file, const std::string& path, Json& facts) {
    if (file.never_committed())
      return Add(kNeverCommitted, path, facts, "tidelane recover makes it empty");
    std::optional<tier::FoundLog> tiered;
    Status status = LogInTier(path, file.superblock(), tiered);
    if (tiered.has_value()) {
      facts["tier"] = tiered->place->path;
      facts["entry"] = tiered->entry;
      std::string words = tiered->place->path + "; ";
      tier::Trouble trouble;
      if (tier::Trouble::Read(*tiered->place, tiered->entry, trouble)) {
        facts["waiting"] = trouble.reason;
        facts["waiting_seconds"] = trouble.age();
        words += WaitingInWords(trouble);
      } else {
        words += "tidelane drain brings it here";
      }
      return Add(kInTier, path, facts, words);
    }
    log::Snapshot snapshot;
    if (status.ok()) status = file.Read(snapshot);
    if (!status.ok()) {
      std::string reason = status.Message();
      if (const std::string other = LogElsewhere(path, file.superblock()); !other.empty()) {
        reason += "; " + other + " is its log";
        facts["log"] = Json::array({other});
      }
      facts["reason"] = reason;
      return Add(status.code() == log::kNoLog ? kLogMissing : kLogUnusable, path, facts, reason);
    }
    facts["commit"] = snapshot.generation;
    facts["logged"] = log::BytesLogged(snapshot);
    const std::string commit = snapshot.generation == 0
                                   ? "the commit before its log"
                                   : "commit " + std::to_string(snapshot.generation);
    Add(kRecoverable, path, facts, commit + "; " + Sizes(path, facts));
  }

  // Of a file and its log.
  static std::string Sizes(const std::string& path, Json& facts) {
    const std::vector<log::FoundSegment> segments = log::SegmentsBeside(path);
    std::string words = BytesInWords(facts["size"].get<uint64_t>());
    if (segments.empty()) return words;
    uint64_t bytes = 0;
    int64_t modified = 0;
    Json names = Json::array();
    for (const log::FoundSegment& segment : segments) {
      bytes += segment.size;
      modified = std::max(modified, segment.modified);
      names.push_back(segment.path);
    }
    const int64_t age = std::max<int64_t>(std::time(nullptr) - modified, 0);
    facts["log"] = names;
    facts["log_bytes"] = bytes;
    facts["log_age"] = age;
    return words + ", log " + BytesInWords(bytes) + ", " + AgeInWords(age) + " old";
  }

  void Hidden(const std::string& path, bool /*named*/) override {
    const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
    struct stat found;
    if (!file.valid() || fstat(file.get(), &found) != 0) return Complain(path, errno);
    const bool in_use = IsClaimed(file.get());
    const auto size = static_cast<uint64_t>(found.st_size);
    Json facts{{"size", size}, {"in_use", in_use}};
    Add(kUnpublished, path, facts, BytesInWords(size) + (in_use ? ", being written" : ""));
  }

  void Stray(const log::FoundSegment& segment, const std::string& beside) override {
    Json facts{{"size", segment.size}, {"of", segment.of}};
    const std::string of = segment.id == 0 ? "cannot be read" : "of " + segment.of;
    Add(kStrayLog, segment.path, facts,
        of + ", " + BytesInWords(segment.size) + (beside.empty() ? "" : "; not of " + beside));
  }

  void Add(const State& state, const std::string& path, const Json& facts,
           const std::string& words) {
    Json entry{{"file", path}, {"state", state.word}};
    entry.update(facts);
    json_.push_back(std::move(entry));
    Print(text_, "%-16s ", state.words);
    text_ += path + " (" + words + ")\n";
  }

  const bool as_json_;
  Json json_ = Json::array();
  std::string text_;
};

}  // namespace

int ShowStatus(const Arguments& arguments) {
  if (arguments.Has("tier")) return ShowTiers(arguments);
  Looking looking(arguments.Has("json"));
  const int status = looking.Run(arguments);
  if (status != kUsage) looking.End();
  return status;
}

}  // namespace tidelane::tools
