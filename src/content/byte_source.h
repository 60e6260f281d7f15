/// \file
/// What a reader sees of a file, whatever lies behind it: today pending bytes over a store.
///
/// Blocks and prefetch stand on this, reads that lanes share on a ReadPath over it (parallel_read_source.h); none of them knows what a
/// file is.
///
/// Invariant: Read gives what a synchronous driver would give at that moment.
/// Thread safety: all functions may be called from any thread, with no lock held; bytes that somebody reads are not
/// changed meanwhile, by the caller's order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "device/device.h"

namespace tidelane {

/// Who reads: the program waits for its own reads, and for those that lanes make for it; not for those of deferred
/// reads, and those made ahead.
enum class Reader { kProgram, kLane, kLater, kAhead };

/// What storage did for a read: all zero if it was not asked.
struct ReadTimes {
  uint64_t begin_ns = 0;      // of the first request
  uint64_t end_ns = 0;        // of the last one
  uint64_t last_ns = 0;       // which took so long
  uint64_t bytes = 0;         // of all of them
  uint64_t copied_bytes = 0;  // from what lanes had fetched, where that was timed, and
  uint64_t copy_ns = 0;       // what it took
  uint64_t waited_ns = 0;     // for lanes that were fetching

  void Add(uint64_t request_begin_ns, uint64_t request_end_ns, uint64_t size) {
    if (bytes == 0) begin_ns = request_begin_ns;
    end_ns = request_end_ns;
    last_ns = request_end_ns - request_begin_ns;
    bytes += size;
  }
};

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  virtual Status Read(Reader reader, uint64_t address, uint64_t size, void* buffer,
                      ReadTimes& times) = 0;
  /// Bytes: where it ends, or will when everything is stored.
  virtual uint64_t size() const = 0;
  /// For messages.
  virtual const std::string& path() const = 0;
  /// Whether what was read may be kept to be read again: nobody but the caller changes it.
  enum class Keep { kYes, kNotLocked, kNever };
  virtual Keep keep() const = 0;
  /// What storage says of a file that others may change although it may be kept, since not all of them heed locks; nothing of one that we
  /// write ourselves.
  virtual std::optional<FileVersion> watched() const { return std::nullopt; }
};

}  // namespace tidelane
