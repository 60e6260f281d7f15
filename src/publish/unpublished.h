/// \file
/// Which files of this process are not published yet, by the name that they will have: whoever names one gets the hidden file, by
/// whichever path, copy of HDF5 or call.
///
/// Cost: one load where there are none.
/// Thread safety: all functions may be called from any thread; the mutex is a leaf.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/annotations.h"
#include "device/identity.h"
#include "publish/directory_entry.h"

namespace tidelane {

class Publication;

class Unpublished {
 public:
  static Unpublished& Get();

  void Add(const DirectoryEntry& entry, const std::shared_ptr<Publication>& publication)
      TL_EXCLUDES(mutex_);
  /// If it is that one.
  void Remove(const DirectoryEntry& entry, const Publication* publication) TL_EXCLUDES(mutex_);
  /// The one that `path` leads to; nullptr: none.
  std::shared_ptr<Publication> At(const char* path) TL_EXCLUDES(mutex_);

  /// fork: hold the lock across it.
  void LockForFork() TL_NO_ANALYSIS { mutex_.lock(); }
  void UnlockAfterFork() TL_NO_ANALYSIS { mutex_.unlock(); }

 private:
  struct Entry {
    const Publication* which;
    std::weak_ptr<Publication> alive;
  };
  using Name = std::pair<FileIdentity, std::string>;  // the folder's, and the name there

  std::atomic<size_t> count_{0};
  Mutex mutex_;
  std::map<Name, Entry> entries_ TL_GUARDED_BY(mutex_);
};

}  // namespace tidelane
