#include "tools/drain_command.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/words.h"
#include "device/claim.h"
#include "log/recover_file.h"
#include "tier/drain.h"
#include "tier/mover.h"
#include "tier/trouble.h"
#include "tools/terminal.h"
#include "tools/tiers.h"

namespace tidelane::tools {
namespace {

constexpr auto kLook = std::chrono::milliseconds(20);
constexpr int kMostLooks = 50;
constexpr auto kPatience = std::chrono::seconds(10);
constexpr auto kMoverLooks = std::chrono::seconds(2);
using Clock = std::chrono::steady_clock;

// That the marker beside a file names.
std::string TierInWords(const std::string& path) {
  DirectoryEntry beside;
  tier::Marker marker;
  if (DirectoryEntry::Find(path.c_str(), true, beside) != 0 ||
      tier::Marker::Read(beside, marker) != 0)
    return {};
  return "; it is in the tier " + marker.tier + " of " + marker.host;
}

class Draining {
 public:
  explicit Draining(bool discards) : discards_(discards) {}

  void Print() const {
    std::fputs(text_.empty() && !failed_ ? "nothing in the tier\n" : text_.c_str(), stdout);
  }

  int Run(const std::vector<TieredFile>& files) {
    std::signal(SIGIO, SIG_IGN);  // leases are looked at (tier/moved_file.h)
    uint64_t all = 0;
    for (const TieredFile& file : files) all += file.bytes;
    Progress progress("draining");
    uint64_t done = 0;
    for (const TieredFile& file : files) {
      progress.At(all == 0 ? 1 : static_cast<double>(done) / static_cast<double>(all),
                  BytesInWords(all - done) + " to go");
      One(file, progress);
      done += file.bytes;
    }
    progress.Hide();
    return failed_ ? kFailed : kDone;
  }

  // Files that wait in a tier of another machine, or in one that is gone; and folders that nobody could look into.
  int ComplainOfOthers(const Marked& marked) {
    for (const Status& unread : marked.unread) Complain(InWords(unread));
    for (const std::string& path : marked.files) {
      log::FileByName file;
      std::optional<tier::FoundLog> found;
      if (!file.Open(path, log::Purpose::kLook).ok() || !file.marked()) continue;
      Status status = LogInTier(path, file.superblock(), found);
      log::Snapshot snapshot;
      if (status.ok() && !found.has_value()) status = file.Read(snapshot);
      if (!status.ok()) Complain(status.Message() + TierInWords(path));
    }
    return failed_ ? kFailed : kDone;
  }

 private:
  // A mover goes on with what it has begun, and is not disturbed as long as it gets on. What stands still is tried here, and says why.
  static void AwaitMover(const TieredFile& file) {
    uint64_t before = UINT64_MAX;
    auto changed_at = Clock::now();
    tier::Trouble trouble;
    while (IsThere(file) && tier::HasMover(*file.place) &&
           !tier::Trouble::Read(*file.place, file.entry.name, trouble)) {
      const uint64_t now = file.place->used();
      if (now != std::exchange(before, now)) changed_at = Clock::now();
      if (Clock::now() - changed_at > kPatience) return;
      std::this_thread::sleep_for(kLook);
    }
  }
  static bool IsThere(const TieredFile& file) {
    tier::Entry again;
    return tier::Entry::Read(*file.place, file.entry.name, again) == 0;
  }

  void One(const TieredFile& file, Progress& progress) {
    const std::string& path = file.entry.path;
    AwaitMover(file);
    const auto begin = Clock::now();
    for (;;) {
      if (!IsThere(file)) return Say(file, "drained");
      Status why;
      switch (tier::Drain(*file.place, file.entry, {}, 0, why)) {
        case tier::Drained::kYes: return Say(file, "drained");
        case tier::Drained::kUseless: return Say(file, "no longer needed:");
        case tier::Drained::kInUse:
          if (IsMoved(file.entry)) continue;
          progress.Hide();
          return Complain(path + ": a program has it open");
        case tier::Drained::kLost:
          // A mover that it was handed to knows whether it was deleted, and looks soon.
          if (tier::HasMover(*file.place) && Clock::now() - begin < kMoverLooks) {
            std::this_thread::sleep_for(kLook);
            continue;
          }
          progress.Hide();
          return Lost(file);
        case tier::Drained::kFailed: progress.Hide(); return StandsStill(file, why);
      }
    }
  }

  // Waits for a mover that has it. False: a program has it, as far as can be told: a mover may begin between two looks.
  static bool IsMoved(const tier::Entry& entry) {
    Descriptor file;
    if (tier::OpenFileOf(entry, file) != 0) return false;
    for (int looks = 0; file.valid() && looks < kMostLooks; ++looks) {
      const bool moved = AwaitMove(file.get());
      std::this_thread::sleep_for(kLook);
      if (moved || !IsClaimed(file.get())) return true;
    }
    return false;
  }

  // Told as a mover would, for whoever asks later.
  void StandsStill(const TieredFile& file, const Status& why) {
    const std::string& entry = file.entry.name;
    tier::Trouble::Tell(*file.place, entry, tier::Trouble::ReasonOf(why), 0);
    tier::Trouble trouble{.reason = tier::Trouble::ReasonOf(why), .since = std::time(nullptr)};
    static_cast<void>(tier::Trouble::Read(*file.place, entry, trouble));
    Complain(file.entry.path + " stays in the tier, " + WaitingInWords(trouble));
  }

  void Lost(const TieredFile& file) {
    const std::string what = file.entry.path + " is not there any more; " + file.place->path + '/' +
                             file.entry.name + "-wal.0 has its last commit";
    if (!discards_)
      return Complain(what +
                      " (tidelane recover --log takes it; tidelane drain --discard removes it)");
    tier::RemoveEntry(*file.place, file.entry.name, file.entry.path);
    Say(file, "discarded");
  }

  void Say(const TieredFile& file, const char* what) {
    text_ += std::string(what) + ' ' + file.entry.path + " (" + BytesInWords(file.bytes) + ")\n";
  }
  void Complain(const std::string& message) {
    Tell(message);
    failed_ = true;
  }

  const bool discards_;
  std::string text_;
  bool failed_ = false;
};

}  // namespace

int DrainFiles(const Arguments& arguments) {
  std::vector<std::filesystem::path> operands;
  if (const int status = WholePaths(arguments.operands, operands); status != kDone) return status;
  const Marked marked = FilesWithMarkers(operands);
  std::vector<TieredFile> wanted = FilesIn(Tiers(marked.files));
  std::erase_if(wanted,
                [&](const TieredFile& file) { return !IsBelow(file.entry.path, operands); });
  Draining draining(arguments.Has("discard"));
  static_cast<void>(draining.Run(wanted));
  const int status = draining.ComplainOfOthers(marked);
  draining.Print();
  return status;
}

void DrainAll() { static_cast<void>(Draining(false).Run(FilesIn(Tiers()))); }

}  // namespace tidelane::tools
