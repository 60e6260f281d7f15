/// \file
/// Files that follow one another by name: time_0001.h5, time_0002.h5, … A program that opened one after the other, reads
/// the same places of each: when it has closed one, lanes open the next and fetch these.
///
///   1. A file that is only read notes the places that were asked for (ReadPath::RecordRanges).
///   2. It is closed, and the file opened before it has the name before it: the next one is fetched, by POSIX calls alone.
///   3. The program opens that file, only to read: what was fetched becomes the file's (ReadPath::TakeOverAhead), which believes
///      it once it holds its lock and size and times are those that the file had before it was fetched.
///
/// Invariant: at most one file is fetched; a file that is open or draining here is not, nor one that was changed a moment
/// ago (a second change within one tick of its clock would not be seen).
/// Thread safety: all functions may be called from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/annotations.h"
#include "cache/prefetch_buffer.h"
#include "device/device.h"
#include "file/file.h"
#include "lane/lanes.h"

namespace tidelane {

/// "run/time_0007.h5": the last number of its name, and what stands around it.
struct NumberedName {
  std::string before;
  uint64_t number = 0;
  size_t digits = 0;
  std::string after;

  static std::optional<NumberedName> Of(const std::string& path);
  /// The same with another number; as many digits at least.
  std::string With(uint64_t other) const;
  bool Alike(const NumberedName& other) const {
    return before == other.before && after == other.after;
  }
};

class NextFile;

class SeriesPrefetcher {
 public:
  /// `is_ours`: whether that file is open or draining here, or being written.
  SeriesPrefetcher(Lanes& lanes, std::shared_ptr<PrefetchBudget> room,
                   std::function<bool(const FileIdentity&)> is_ours);

  /// A file was opened, only to read it.
  void Opened(File& file) TL_EXCLUDES(mutex_);
  /// It is about to be closed.
  void Closing(File& file) TL_EXCLUDES(mutex_);
  /// The end of the program: what was fetched and not read was fetched for nothing.
  void Forget() TL_EXCLUDES(mutex_);

 private:
  Lanes& lanes_;
  const std::shared_ptr<PrefetchBudget> room_;
  const std::function<bool(const FileIdentity&)> is_ours_;
  Mutex mutex_;
  std::optional<NumberedName> last_ TL_GUARDED_BY(mutex_);  // the file opened last
  uint64_t step_ TL_GUARDED_BY(mutex_) =
      0;  // from the one before it (modulo 2^64); 0: they are not of one series
  std::shared_ptr<NextFile> next_ TL_GUARDED_BY(mutex_);
};

}  // namespace tidelane
