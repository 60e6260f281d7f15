/// \file
/// A file while a mover changes it: its locks, and what keeps others' writes apart from its own.
///
/// HDF5 cuts a file that it is to create anew before it asks for a lock of it. So the file is held with a lease where there are any (fcntl,
/// F_SETLEASE): who opens it is held by the system until the mover, which looks before each write, has let go. Where there are none, or somebody has
/// it open to read, it is looked at before each write whether it is marked as it was, and whether somebody waits for the mover (device/claim.h).
///
/// Invariant: nothing is written after somebody else has asked for the file, has changed its superblock, or has deleted it.
/// Thread safety: one thread.
#pragma once

#include <memory>

#include "device/device.h"
#include "log/mark.h"
#include "tier/pace.h"

namespace tidelane::tier {

class MovedFile {
 public:
  /// `fd` stays the caller's.
  explicit MovedFile(int fd);
  ~MovedFile();
  MovedFile(const MovedFile&) = delete;
  MovedFile& operator=(const MovedFile&) = delete;

  /// 0; EWOULDBLOCK: somebody else has it; another errno.
  int Lock();
  /// Whether HDF5's lock is had, too, without which the file may not be changed. After Lock.
  bool is_locked() const { return is_locked_; }
  /// Whether somebody else has it open, as far as the file system says so. After Lock.
  bool is_open_elsewhere() const { return is_open_elsewhere_; }
  /// Empty: it is no HDF5 file. After Lock; 0 or an errno.
  int Find(Superblock& superblock);
  /// To be changed as long as it is marked so. Its writes fail with EWOULDBLOCK where somebody wants it, with ESTALE where it is another one by now.
  /// `pace`: of its writes, if any.
  std::unique_ptr<Device> Changed(const Superblock& marked, Pace* pace = nullptr);

 private:
  const int fd_;
  std::unique_ptr<Device> device_;
  bool leased_ = false;
  bool is_locked_ = false;
  bool is_open_elsewhere_ = false;
};

}  // namespace tidelane::tier
