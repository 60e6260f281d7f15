#include "device/claim.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <limits>

namespace tidelane {
namespace {

// From the end of what a file can be, where HDF5 and MPI-IO lock nothing.
constexpr off_t kWriter = 1;
constexpr off_t kMover = 2;
constexpr off_t kWaitsForMover = 3;

struct flock ClaimOf(short kind, off_t which = kWriter) {
  struct flock byte{};
  byte.l_type = kind;
  byte.l_start = std::numeric_limits<off_t>::max() - which;
  byte.l_len = 1;
  return byte;
}

int Lock(int fd, int how, struct flock byte) {
  int result;
  do {
    result = fcntl(fd, how, &byte);
  } while (result != 0 && errno == EINTR);
  if (result == 0) return 0;
  return errno == EACCES || errno == EAGAIN ? EWOULDBLOCK : errno;
}

}  // namespace

int Claim(int fd) { return Lock(fd, F_OFD_SETLK, ClaimOf(F_WRLCK)); }

int ClaimMove(int fd) { return Lock(fd, F_OFD_SETLK, ClaimOf(F_WRLCK, kMover)); }

void GiveUpMove(int fd) { static_cast<void>(Lock(fd, F_OFD_SETLK, ClaimOf(F_UNLCK, kMover))); }

bool AwaitMove(int fd) {
  struct flock move = ClaimOf(F_RDLCK, kMover);
  if (fcntl(fd, F_OFD_GETLK, &move) != 0 || move.l_type == F_UNLCK) return false;
  static_cast<void>(Lock(fd, F_OFD_SETLK, ClaimOf(F_RDLCK, kWaitsForMover)));
  if (Lock(fd, F_OFD_SETLKW, ClaimOf(F_RDLCK, kMover)) == 0)
    static_cast<void>(Lock(fd, F_OFD_SETLK, ClaimOf(F_UNLCK, kMover)));
  static_cast<void>(Lock(fd, F_OFD_SETLK, ClaimOf(F_UNLCK, kWaitsForMover)));
  return true;
}

bool IsMoveAwaited(int fd) {
  struct flock wait = ClaimOf(F_WRLCK, kWaitsForMover);
  return fcntl(fd, F_OFD_GETLK, &wait) == 0 && wait.l_type != F_UNLCK;
}

int OpenAfterMove(int folder, const char* name, int flags) {
  const int fd = openat(folder, name, flags | O_CLOEXEC | O_NONBLOCK);
  struct stat found;
  if (fd >= 0 || errno != EWOULDBLOCK || fstatat(folder, name, &found, 0) != 0 ||
      !S_ISREG(found.st_mode))
    return fd;
  // It has a lease of it, which it gives up now, or loses after /proc/sys/fs/lease-break-time.
  return openat(folder, name, flags | O_CLOEXEC);
}

int ClaimAfterMove(int fd) {
  int error = Claim(fd);
  while (error == EWOULDBLOCK && AwaitMove(fd)) error = Claim(fd);
  // It may have ended between the two looks.
  return error == EWOULDBLOCK ? Claim(fd) : error;
}

void GiveUpClaim(int fd) {
  struct flock claim = ClaimOf(F_UNLCK);
  fcntl(fd, F_OFD_SETLK, &claim);
}

bool IsClaimed(int fd) {
  struct flock claim = ClaimOf(F_WRLCK);
  return fcntl(fd, F_OFD_GETLK, &claim) == 0 && claim.l_type != F_UNLCK;
}

}  // namespace tidelane
