/// \file
/// Whether a file that is only read has been changed by somebody whom its lock does not keep out: a writer with
/// HDF5_USE_FILE_LOCKING=FALSE, or one that does not know of locks.
///
/// Natively such a reader finds the new bytes, so what is kept of the file has to go. The file system says when it was changed. That costs a
/// third of a microsecond, and is asked at most every kLookNs. A file that was changed a moment ago may be changed again without another
/// time: until that is over nothing that was kept is believed.
///
/// Invariant: what was kept after a look that said "unchanged" had these bytes at that look or later.
/// Thread safety: none; the program's side.
#pragma once

#include <cstdint>

#include "content/byte_source.h"
#include "device/device.h"

namespace tidelane {

class FileWatch {
 public:
  enum class Look { kNow, kNowAndThen };
  /// Whether it was, or may have been, since the last call. The first call only looks.
  bool Changed(const ByteSource& source, Look look = Look::kNowAndThen);
  /// No change was ever seen, and the last one before is so old that another would have another time. A change of the last kLookNs may not have
  /// been seen yet.
  bool unchanged() const { return settled_ && !changed_; }
  /// Of a version that was looked up just now: a change from now on has another time.
  static bool Settled(const FileVersion& version);

 private:
  static constexpr uint64_t kLookNs = 20'000;
  static constexpr uint64_t kTickNs = 20'000'000;  // the file system's clock, and some more

  uint64_t looked_ns_ = 0;
  bool settled_ = false;
  bool changed_ = false;
  FileVersion seen_;
};

}  // namespace tidelane
