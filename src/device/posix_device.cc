/// \file
/// A POSIX file as a device.
///
/// Invariant: only positioned calls transfer bytes, so the descriptor's own offset means nothing
/// (SEEK_HOLE moves it).
///
/// Thread safety: as device.h; the kernel orders the calls.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <linux/magic.h>
#include <utility>

#include "device/device.h"
#include "device/fork_locks.h"

namespace tidelane {
namespace {

constexpr size_t kMaxParts = IOV_MAX;
// File systems that are memory, or that leave writes in the page cache. (magic.h has no ZFS, and not everywhere F2FS.)
constexpr uint64_t kInMemory[] = {TMPFS_MAGIC,         RAMFS_MAGIC,       EXT4_SUPER_MAGIC,
                                  XFS_SUPER_MAGIC,     BTRFS_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC,
                                  0xF2F52010 /*F2FS*/, 0x2FC12FC1 /*ZFS*/};

uint64_t Nanoseconds(const timespec& time) {
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
}

// Calls `call` until it is not interrupted; 0 or an errno.
template <typename Call>
int Retry(Call call) {
  while (call() != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

// `n` bytes, or an errno. A file that takes nothing and says nothing would loop for ever: that is
// EIO.
int WriteAll(int fd, const std::byte* from, size_t n, uint64_t address) {
  while (n > 0) {
    const ssize_t done = pwrite(fd, from, n, static_cast<off_t>(address));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return done < 0 ? errno : EIO;
    from += done;
    n -= static_cast<size_t>(done);
    address += static_cast<uint64_t>(done);
  }
  return 0;
}

class PosixDevice final : public Device {
 public:
  explicit PosixDevice(int fd) : fd_(fd) {}
  ~PosixDevice() override { static_cast<void>(Close()); }

  int Read(uint64_t address, void* buffer, size_t n) override {
    auto* to = static_cast<std::byte*>(buffer);
    while (n > 0) {
      const ssize_t done = pread(fd_, to, n, static_cast<off_t>(address));
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) return errno;
      if (done == 0) break;  // the end of the file
      to += done;
      n -= static_cast<size_t>(done);
      address += static_cast<uint64_t>(done);
    }
    if (n > 0) std::memset(to, 0, n);
    return 0;
  }

  int Write(uint64_t address, const struct iovec* parts, size_t count) override {
    while (count > 0) {
      const size_t batch = std::min(count, kMaxParts);
      const ssize_t done =
          pwritev(fd_, parts, static_cast<int>(batch), static_cast<off_t>(address));
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) return errno;
      // Skip the parts that were written whole; what is left of a part cut short goes out by
      // itself, so that the caller's array need not be copied.
      auto left = static_cast<size_t>(done);
      size_t whole = 0;
      while (whole < batch && left >= parts[whole].iov_len) left -= parts[whole++].iov_len;
      address += static_cast<uint64_t>(done);
      parts += whole;
      count -= whole;
      if (whole == batch) continue;
      const size_t rest = parts->iov_len - left;
      if (int error = WriteAll(fd_, static_cast<std::byte*>(parts->iov_base) + left, rest, address))
        return error;
      address += rest;
      ++parts;
      --count;
    }
    return 0;
  }

  int Truncate(uint64_t size) override {
    return Retry([&] { return ftruncate(fd_, static_cast<off_t>(size)); });
  }

  int Reserve(uint64_t address, uint64_t size) override {
    return Retry([&] {
      return fallocate(fd_, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(address),
                       static_cast<off_t>(size));
    });
  }

  int Size(uint64_t& size) override {
    struct stat found;
    if (fstat(fd_, &found) != 0) return errno;
    if (!S_ISREG(found.st_mode)) return ESPIPE;
    size = static_cast<uint64_t>(found.st_size);
    return 0;
  }

  int Version(FileVersion& version) override {
    struct stat found;
    if (fstat(fd_, &found) != 0) return errno;
    version = {static_cast<uint64_t>(found.st_size), Nanoseconds(found.st_mtim),
               Nanoseconds(found.st_ctim)};
    return 0;
  }

  int Lock(bool exclusive) override {
    return Retry([&] { return flock(fd_, (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB); });
  }

  int Unlock() override {
    return Retry([&] { return flock(fd_, LOCK_UN); });
  }

  int Sync() override {
    // Times are not needed to read it back, and cost a file system's own journal a commit.
    return Retry([&] { return fdatasync(fd_); });
  }

  // Never repeated: Linux has released the descriptor even when close fails, and the number may be
  // somebody else's.
  int Close() override {
    const int fd = std::exchange(fd_, -1);
    if (fd < 0) return 0;  // it was given up before
    ForkLocks::Get().Remove(fd);
    return close(fd) == 0 ? 0 : errno;
  }

  bool WritesToMemory() const override {
    struct statfs found;
    if (fstatfs(fd_, &found) != 0) return false;
    return std::ranges::find(kInMemory, static_cast<uint64_t>(found.f_type)) != std::end(kInMemory);
  }

  int* descriptor() override { return &fd_; }

 private:
  int fd_;
};

}  // namespace

std::unique_ptr<Device> MakePosixDevice(int fd) { return std::make_unique<PosixDevice>(fd); }

}  // namespace tidelane
