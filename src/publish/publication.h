/// \file
/// A file that is written under a hidden name, and gets its own when it is whole (publish=atomic).
///
///   1. Begin makes the hidden file beside the place where the name leads, new and locked. Its name is the same for every process, so
///      that a second one finds it, and the lock of whoever writes it. What nobody holds any more is left of a program that was killed:
///      it is removed.
///   2. Everybody in this process who opens the name gets the hidden file (publish/unpublished.h), and is counted (Join).
///   3. The last one who leaves gives it its name by rename(2), which shows the old whole file or the new one to everybody else; if one
///      of them could not store all of it, or was told to withhold it, the old file stays, and the hidden one is left for whoever
///      comes next.
///
/// Invariants: the name leads to a whole file, or to none, at every moment. The hidden file is locked until it is published or given up.
/// What is whole and cannot be published (somebody else has made a file of that name) is kept under a visible name, and its close says so.
/// Thread safety: all functions may be called from any thread.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>

#include "base/annotations.h"
#include "base/counters.h"
#include "base/status.h"
#include "device/identity.h"
#include "publish/directory_entry.h"

namespace tidelane {

class Publication {
 public:
  enum class Beginning : uint8_t {
    kHidden,    ///< the hidden file was made
    kInPlace,   ///< it cannot be; `why` says so. The file is written in place
    kNatively,  ///< open(2) itself has something to say
    kAgain,     ///< it is another one by now
    kLocked,    ///< another program writes it
    kFailed,    ///< `error` says why
  };
  struct Begun {
    Descriptor file;  ///< of the hidden file, claimed
    std::shared_ptr<Publication> publication;
    Fallback why{};
    int error = 0;
  };
  /// Of a file that is created at `path`: `only_new` as O_EXCL says.
  static Beginning Begin(const char* path, bool only_new, mode_t mode, Begun& begun);
  /// Of one that another process of this program has begun, and publishes: this one only has to find the hidden file, whose inode is
  /// told, by the name. 0 or an errno: it is not here.
  static int Follow(const char* path, bool only_new, uint64_t inode,
                    std::shared_ptr<Publication>& publication);

  ~Publication();
  Publication(const Publication&) = delete;
  Publication& operator=(const Publication&) = delete;

  /// Held while it is hidden: the file, the claim, the folder and what is replaced.
  static constexpr size_t kDescriptors = 4;

  const FileIdentity& identity() const { return identity_; }
  const std::string& hidden_name() const { return hidden_; }
  /// From the root; empty: there is no such path.
  std::string HiddenPath() const;
  /// Opens the hidden file once more, with flags as open(2)'s: 0 or an errno. ENOENT: it is hidden no more.
  int Open(int flags, Descriptor& file) const;

  /// Somebody has it open.
  void Join() TL_EXCLUDES(mutex_);
  /// And not any more. `whole`: everything that was written is stored. The last one publishes; what that came to. `path` is for words.
  Status Leave(bool whole, const std::string& path) TL_EXCLUDES(mutex_);
  /// Publishes what is there, for readers that are to follow it.
  Status PublishNow(const std::string& path) TL_EXCLUDES(mutex_);
  /// It is never published. `useless`: and removed, as there is nothing in it.
  void Withhold(bool useless = false) TL_EXCLUDES(mutex_);
  bool withheld() TL_EXCLUDES(mutex_);
  bool discarded() TL_EXCLUDES(mutex_);
  /// The process that publishes it has, or has given it up: the name leads to what is there.
  void NoteEnd() TL_EXCLUDES(mutex_);
  /// The program deletes the file, by its name: 0 or an errno.
  int Discard() TL_EXCLUDES(mutex_);

 private:
  enum class State : uint8_t { kHidden, kPublished, kDiscarded };

  Publication(DirectoryEntry entry, bool only_new, bool follows, FileIdentity identity,
              Descriptor replaced, Descriptor claim);
  bool IsAnothers() const;
  bool HasHiddenFile() const;
  bool Link(const std::string& name) const;
  int Rename(Descriptor& other) const TL_REQUIRES(mutex_);
  std::string Keep() const;
  int Settle() const TL_REQUIRES(mutex_);
  Status Publish(const std::string& path) TL_REQUIRES(mutex_);
  void Remove() TL_REQUIRES(mutex_);
  void End(State state) TL_REQUIRES(mutex_);

  const DirectoryEntry entry_;
  const std::string hidden_;
  const bool only_new_;
  const bool follows_;
  const FileIdentity identity_;
  const pid_t process_;
  Mutex mutex_;
  Descriptor replaced_ TL_GUARDED_BY(mutex_);  // the file that was there; not valid: none was
  Descriptor claim_ TL_GUARDED_BY(mutex_);     // what was opened first, which has the lock
  State state_ TL_GUARDED_BY(mutex_) = State::kHidden;
  unsigned open_ TL_GUARDED_BY(mutex_) = 0;
  bool withheld_ TL_GUARDED_BY(mutex_) = false;
  bool useless_ TL_GUARDED_BY(mutex_) = false;
};

/// Removes what a program that was killed has left: the hidden file of `path`, if nobody holds its lock.
void SweepHidden(const char* path);
/// Likewise one whose name is known, in `folder`. Whether it was removed, or could be: 0, or why not (EWOULDBLOCK: a program writes it).
int SweepHidden(int folder, const std::string& hidden, bool only_look = false);

/// Whether `path` is the hidden file itself of a program that writes it.
bool IsBeingWritten(const char* path);

/// Whether the program ends by an error: from then on what it has left open is not published.
bool ExitsByError();
void SetExitsByError();
/// Has the exit noticed. Called when a copy of HDF5 (its number) creates a file: its own handler, which closes what the program has left
/// open, was registered before, and is called later.
void WatchExit(int library);

}  // namespace tidelane
