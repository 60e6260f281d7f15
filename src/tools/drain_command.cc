#include "tools/drain_command.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/words.h"
#include "device/claim.h"
#include "tier/drain.h"
#include "tier/mover.h"
#include "tier/trouble.h"
#include "tools/terminal.h"
#include "tools/tiers.h"

namespace tidelane::tools {
namespace {

namespace fs = std::filesystem;
constexpr auto kLook = std::chrono::milliseconds(20);
constexpr int kMostLooks = 50;
constexpr auto kPatience = std::chrono::seconds(10);
using Clock = std::chrono::steady_clock;

// Whether the file is one of the operands, or below one.
bool IsWanted(const std::string& path, const std::vector<fs::path>& operands) {
  for (const fs::path& operand : operands) {
    const fs::path rest = fs::path(path).lexically_relative(operand);
    if (!rest.empty() && *rest.begin() != "..") return true;
  }
  return operands.empty();
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
        case tier::Drained::kLost: progress.Hide(); return Lost(file);
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
  std::vector<fs::path> operands;
  for (const std::string& operand : arguments.operands) {
    std::error_code error;
    operands.push_back(fs::canonical(operand, error));
    if (error) return Fail(kUsage, operand + ": " + error.message());
  }
  std::vector<TieredFile> wanted;
  for (TieredFile& file : FilesIn(Tiers())) {
    if (IsWanted(file.entry.path, operands)) wanted.push_back(std::move(file));
  }
  Draining draining(arguments.Has("discard"));
  const int status = draining.Run(wanted);
  draining.Print();
  return status;
}

void DrainAll() { static_cast<void>(Draining(false).Run(FilesIn(Tiers()))); }

}  // namespace tidelane::tools
