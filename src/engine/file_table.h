/// \file
/// The files that the engine knows (open; closed, and on their way to storage; stored, whose device is being closed), and which of
/// them a name leads to.
///
/// A name leads to the file whose inode is there now, and to one that was opened by it: the program may have renamed it since, or gone
/// to another folder. One that is not published yet has another inode than its name, which leads to it all the same.
///
/// Invariants: a file is in one state; an inode may have several files, of which the older ones are about to be removed. Once Reserve
/// has returned, moving files that were there takes no memory.
/// Thread safety: none; guarded by Registry::mutex. FileName::LeadsTo asks the file system, and belongs outside it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/identity.h"
#include "file/file.h"
#include "publish/names.h"

namespace tidelane {

/// What a name leads to.
struct FileName {
  std::string path;
  std::optional<FileIdentity> identity;  ///< of the regular file that is there, if one is

  /// Looks at it, as stat does.
  static FileName LeadsTo(const char* path) {
    return {path == nullptr ? "" : path, IdentityBehind(path)};
  }
  bool IsInodeOf(const File& file) const { return identity == file.identity(); }
  bool Is(const File& file) const { return IsInodeOf(file) || file.path() == path; }
};

class FileTable {
 public:
  using Files = std::vector<std::shared_ptr<File>>;

  /// Who has opened a file.
  struct Opener {
    int number = 0;       ///< OpenOptions::opener
    bool inside = false;  ///< for a call of another file's
  };

  /// One more file will come, and go through all states: std::bad_alloc now or never.
  void Reserve();
  void AddOpen(const std::shared_ptr<File>& file, std::optional<Opener> opener);
  /// A closed file is opened again, if it can still be (Closing::Adopt).
  bool Reopen(const std::shared_ptr<File>& file, Opener opener);
  /// It is closed, and drains.
  void StartDraining(const std::shared_ptr<File>& file);
  /// Whoever gets true closes its device; until Remove it is still found by who opens it, as its lock may not be gone yet. False:
  /// it was reopened, or somebody else was faster.
  bool StartLeaving(const std::shared_ptr<File>& file);
  void Remove(const std::shared_ptr<File>& file);

  const Files& open() const { return open_; }
  const Files& draining() const { return draining_; }
  const Files& leaving() const { return leaving_; }
  size_t closed() const { return draining_.size() + leaving_.size(); }
  /// Open and draining.
  Files Known() const;
  /// Leaving and draining, in this order.
  Files Closed() const;
  /// Of the file that the name leads to now: the one that drains, and may be opened again; nullptr: none.
  std::shared_ptr<File> DrainingAt(const FileName& name) const;
  /// All that are closed: each may still hold its lock.
  Files ClosedAt(const FileName& name) const;
  Files All() const;
  /// All that are known by the name.
  Files At(const FileName& name) const;
  bool Knows(const FileIdentity& identity) const;
  /// Open files whose inode this is; those of ranks have no opener.
  enum class By : uint8_t { kAnyone, kAnOpener, kRanks };
  Files OpenAs(const FileIdentity& identity, By by = By::kAnyone) const;
  /// `opener` has opened this inode inside a call of another file's: the files that it has open already may be kept open by that.
  void NoteInside(const FileIdentity& identity, int opener);
  /// Open files that `opener` has opened inside calls of other files', or opened again so.
  Files Inside(int opener) const;
  bool IsInside(const File& file) const;
  /// Whether nobody but `opener` has opened any.
  bool OnlyBy(int opener) const;

 private:
  void CountOpen(const std::shared_ptr<File>& file, std::optional<Opener> opener);
  void UncountOpen(const std::shared_ptr<File>& file);

  Files open_;  // every handle's file, from Open to Close
  Files draining_;
  Files leaving_;                          // drained; the device is being closed
  std::map<const File*, Opener> openers_;  // of those in open_
  // How many of open_ there are: programs open thousands of files, and each open asks.
  std::map<int, size_t> by_opener_;
  std::map<FileIdentity, size_t> by_identity_;
};

}  // namespace tidelane
