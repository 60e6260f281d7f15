/// \file
/// A store whose file is, after any end of the program or of the machine, what it was at its last commit (docs/formats/log.md).
///
/// Bytes that no commit has go straight to the file; what is to take the place of bytes that a commit has goes to the log (commit_log.h), until a
/// checkpoint moves it. What is read is the log over the file. HDF5's superblock is kept in memory until a commit: storage has the last
/// commit's, and while the file alone is not that commit, a mark in it.
///
/// Invariant: the file is not changed before it is settled, and then only as its journal says.
/// Thread safety: as Store; Settle before any other call but size.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/annotations.h"
#include "base/config.h"
#include "log/marked_file.h"
#include "log/placement.h"

namespace tidelane {

/// A log that was left, by another program perhaps, in another place than where this one's would be.
struct LeftLog {
  std::unique_ptr<log::Folder> folder;
  std::string name;
  /// It may become this one's log, with all that is in it; the machine has run since it was left.
  bool goes_on = false;
  std::function<void()> used = [] {};  ///< the file has everything
};

/// What a LoggedStore is made of.
struct LoggedFile {
  std::shared_ptr<Device> file;
  bool writable = false;
  Journal journal = Journal::kOff;  ///< off: it is only recovered
  bool must_journal = false;        ///< where it turns out that it cannot be, writes fail
  log::LogParts log;
  /// Where the log of a file lies that is found marked so; nullptr: where this one's would be. May be asked again.
  std::function<Status(const Superblock& marked, LeftLog& left)> find_left = nullptr;
  /// The last close leaves the log, and tells who brings it to the file; nullptr: the close does.
  std::function<void(const std::string& log, int descriptor)> left = nullptr;
};

class LoggedStore final : public Store {
 public:
  explicit LoggedStore(LoggedFile parts);

  int Write(Run& run) override;
  int WriteBytes(Run& run, const void* bytes) override;
  int Read(uint64_t address, void* buffer, size_t n) override;
  uint64_t size() const override { return bytes_.size(); }
  int SetSize(uint64_t size) override;
  int Reserve(uint64_t address, uint64_t size) override;
  void EndReservations(uint64_t& found) override;
  int Version(FileVersion& version) override { return file_.direct().Version(version); }
  bool memory_speed() const override { return memory_speed_; }
  Status Publish(Publishing when) override { return file_.direct().Publish(when); }
  void Withhold(Withholding why) override { file_.direct().Withhold(why); }
  int Close() override;

  Status Settle() override;
  void SetSuperblock(uint64_t begin, uint64_t end) override;
  bool commits() const override { return way() == Way::kJournal; }
  int Commit(Committing when) override;
  int Finish() override;
  int EndCommits() override;

 private:
  enum class Way : uint8_t {
    kUnsettled,
    kJournal,
    kThrough,   // to the file, as natively
    kSnapshot,  // a marked file that is only read: through its log
    kLeft,      // the last commit is in the log, and nothing more is written
    kFinished   // nothing more is written
  };
  Way way() const { return way_.load(std::memory_order_relaxed); }

  Status Failed(int error, const char* operation) const {
    return Status::Failed(error, operation).At(parts_.log.path, 0, 0);
  }
  Status Recover(Superblock& found, bool& goes_on);
  bool CanGoOn(const log::Snapshot& snapshot) const;
  Status GoOn(LeftLog left, log::Snapshot snapshot);
  Status FindLeft(const Superblock& marked, LeftLog& left);
  Status ReadLeft(const Superblock& marked, const LeftLog& left, log::KnownCommits known,
                  log::Snapshot& snapshot);
  void LookAgain();
  int Claimed() TL_EXCLUDES(claim_mutex_);
  void GoThrough();
  int MayWrite();
  int WriteParts(Run& run, std::span<const log::Part> parts);
  int ReadStored(uint64_t address, std::byte* buffer, uint64_t n);
  void Find(uint64_t begin, uint64_t end, std::vector<log::Source>& sources,
            Superblock& superblock) const;

  LoggedFile parts_;
  log::MarkedFile file_;
  log::Placement bytes_;
  std::atomic<Way> way_{Way::kUnsettled};
  const bool memory_speed_;  // when it was opened
  const int process_;        // a child of fork is not who writes the file
  log::Snapshot snapshot_;   // Way::kSnapshot's
  Mutex claim_mutex_;
  std::atomic<bool> claimed_{false};
};

}  // namespace tidelane
