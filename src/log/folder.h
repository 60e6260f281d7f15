/// \file
/// The folder in which a file's log lies: what is made there, found, removed. Power-cut tests have another one.
///
/// Functions return 0 or an errno; names are those of entries, without folders.
/// Thread safety: all functions may be called from any thread.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "device/device.h"
#include "publish/directory_entry.h"

namespace tidelane::log {

class Folder {
 public:
  virtual ~Folder() = default;

  /// Makes an empty file that is not there yet, and claims it (device/claim.h). EEXIST: it is there; EWOULDBLOCK: somebody was quicker.
  virtual int Make(const std::string& name, std::unique_ptr<Device>& file) = 0;
  /// ENOENT: there is none. `claims`: so that nobody else uses it; EWOULDBLOCK: somebody does. Otherwise it can be read alone.
  virtual int Open(const std::string& name, bool claims, std::unique_ptr<Device>& file) = 0;
  /// Nothing takes the place of what is there (EEXIST).
  virtual int Rename(const std::string& from, const std::string& to) = 0;
  /// If the name is that of `file`: with the file, it may have gone elsewhere, and be another one's here.
  virtual int Remove(const std::string& name, Device& file) = 0;
  /// What was made, renamed and removed stays so when power is lost.
  virtual int Sync() = 0;
  /// What nobody needs goes, so that there is more room; false: there was no such thing.
  virtual bool MakeRoom() { return false; }
  /// Whoever finds the file can find what was made here; before that it must not be marked.
  virtual int Announce() { return 0; }
};

/// `mode`: of what is made there.
std::unique_ptr<Folder> MakeFolder(Descriptor folder, mode_t mode);

}  // namespace tidelane::log
