/// \file
/// A file and its log as they lie in a folder, without a program that has the file open: what state it is in, its recovery by name, what
/// can be done by hand where the log is lost, and logs that belong to no file. For the program `tidelane`.
///
/// Invariant: who opens a file only to look changes nothing. Who opens it to change it has HDF5's lock and the claim, as long as the object
/// lives.
/// Thread safety: one thread an object; the functions may be called from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "device/device.h"
#include "log/folder.h"
#include "log/mark.h"
#include "log/recovery.h"
#include "publish/directory_entry.h"

namespace tidelane::log {

/// A file that may be a log: by its name, and by what is in it.
struct FoundSegment {
  std::string path;
  std::string name;
  uint64_t id = 0;      ///< 0: its header cannot be read
  uint64_t before = 0;  ///< the segment that it continues
  std::string of;       ///< the path that its file had
  uint64_t size = 0;
  int64_t modified = 0;  ///< seconds since 1970
  bool in_use = false;   ///< a program has it
};

/// Whether `name` is that of a segment, or of one that was set aside; then `file` is whose.
bool IsLogName(const std::string& name, std::string& file);
/// 0 or an errno.
int LookAtSegment(const std::string& path, FoundSegment& found);
/// Those of a folder, by their names in order.
std::vector<FoundSegment> LogsIn(const std::string& folder);
/// What lies beside `path` by the names of its two segments.
std::vector<FoundSegment> SegmentsBeside(const std::string& path);

enum class Purpose : bool { kLook, kChange };

class FileByName {
 public:
  /// EWOULDBLOCK: a program has it, and it is to be changed.
  Status Open(const std::string& path, Purpose purpose);

  /// Empty: it is no HDF5 file.
  const Superblock& superblock() const { return superblock_; }
  bool marked() const { return superblock_.marked(); }
  bool never_committed() const { return marked() && superblock_.mark() == kNeverCommitted; }
  uint64_t size() const { return size_; }
  /// Who only looks: whether a program has it open for writing.
  bool in_use() const { return in_use_; }

  /// Its log is not beside it: `segment` and the one that continues it, or that it continues, are. 0 or an errno.
  int UseLog(const std::string& segment);
  /// Of a marked file: its last commit, by its log.
  Status Read(Snapshot& snapshot);
  /// Makes it so, for good, and removes the log.
  Status Recover(const Snapshot& snapshot);
  /// Of a marked file, without its log: takes the mark away, and what is there counts as the file, up to its size.
  Status ClearMark();
  /// Of a file that is not marked: logs beside it of which it has everything already. `spent`: their names. They are removed when the file's superblock is on storage.
  Status FindSpentLog(std::vector<std::string>& spent, bool removes);

 private:
  Status Failed(int error, const char* operation) const;
  Status LockIt();
  bool HasWriter() const;
  int Store(const Superblock& superblock);

  std::string path_;
  Purpose purpose_ = Purpose::kLook;
  std::shared_ptr<Device> file_;
  std::unique_ptr<Folder> folder_;
  SegmentNames names_;
  Superblock superblock_;
  uint64_t size_ = 0;
  bool in_use_ = false;
};

/// Bytes of a snapshot that are in the log.
uint64_t BytesLogged(const Snapshot& snapshot);

}  // namespace tidelane::log
