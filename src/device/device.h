/// \file
/// Where bytes land. A device is one open file; it knows nothing of extents, lanes or HDF5.
///
/// Invariant: a call either did all of what it was asked or says why not; short transfers and EINTR
/// are retried inside.
///
/// Thread safety: all functions may be called from any thread at once; calls on overlapping bytes
/// are ordered by the caller.
#pragma once

#include <sys/uio.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "device/identity.h"

namespace tidelane {

/// What changes when somebody changes a file.
struct FileVersion {
  uint64_t size = 0;
  uint64_t modified_ns = 0;  ///< since 1970, by the file system's clock
  uint64_t changed_ns = 0;
  bool operator==(const FileVersion&) const = default;
};

/// When others are to see a file that was hidden from them.
enum class Publishing : uint8_t { kWithLastClose, kNow };
/// Why they never will.
enum class Withholding : uint8_t {
  kLost,       ///< bytes are gone for good
  kLeftOpen,   ///< the program ends by an error, with the file open
  kNotCreated  ///< HDF5 failed to create it: the opening that made it says so
};

/// Functions return 0 or an errno unless they say otherwise.
class Device {
 public:
  virtual ~Device() = default;

  /// Reads `n` bytes at `address`; bytes beyond the end of the file read as zero (as HDF5 expects
  /// of a driver).
  virtual int Read(uint64_t address, void* buffer, size_t n) = 0;
  /// Writes all of `parts` at `address`. `count` may exceed IOV_MAX.
  virtual int Write(uint64_t address, const struct iovec* parts, size_t count) = 0;
  virtual int Truncate(uint64_t size) = 0;
  /// Makes sure that writing [address, address + size) will not fail for lack of space; the file's size stays as it is.
  /// EOPNOTSUPP where the file system cannot promise that.
  virtual int Reserve(uint64_t address, uint64_t size) = 0;
  /// Of what is no regular file (/dev/null) it is not known: an errno.
  virtual int Size(uint64_t& size) = 0;
  virtual int Version(FileVersion& /*version*/) { return EOPNOTSUPP; }
  /// Advisory lock, never blocking: EAGAIN/EWOULDBLOCK when somebody else holds it.
  virtual int Lock(bool exclusive) = 0;
  virtual int Unlock() = 0;
  /// What was written, and the size, are found after the machine has ended. An error is told once.
  virtual int Sync() = 0;
  /// All that was written is stored: what is still hidden from others (publish/publication.h) is shown to them, once nobody in this
  /// process has it open any more, or now. The first, of each opening, is its last call before Close.
  virtual Status Publish(Publishing /*when*/) { return {}; }
  /// It is not shown, whatever comes.
  virtual void Withhold(Withholding /*why*/) {}
  /// Closes; errors of close(2) count. No other call may follow.
  virtual int Close() = 0;
  /// Whether writes end in this machine's memory, as far as the kind of file system tells: a local disk's do, until the
  /// page cache has too many of them.
  virtual bool WritesToMemory() const { return false; }
  /// The descriptor, for programs that ask HDF5 for it; points to -1 where there is none.
  virtual int* descriptor() = 0;
};

/// Where a write that failed, of bytes up to `end`, may have left the end of the file: a part of them may have made it longer, which a
/// later truncation must know.
inline uint64_t EndAfterFailure(Device& device, uint64_t end) {
  uint64_t size = 0;
  if (device.Size(size) != 0) return 0;
  return size < end ? size : end;
}

/// A POSIX file that was opened as `fd`; the device owns the descriptor from now on.
std::unique_ptr<Device> MakePosixDevice(int fd);

}  // namespace tidelane
