#include "device/claim.h"

#include <fcntl.h>

#include <cerrno>
#include <limits>

namespace tidelane {
namespace {

struct flock ClaimOf(short kind) {
  struct flock byte{};
  byte.l_type = kind;
  byte.l_start = std::numeric_limits<off_t>::max() - 1;
  byte.l_len = 1;
  return byte;
}

}  // namespace

int Claim(int fd) {
  struct flock claim = ClaimOf(F_WRLCK);
  int result;
  do {
    result = fcntl(fd, F_OFD_SETLK, &claim);
  } while (result != 0 && errno == EINTR);
  if (result == 0) return 0;
  return errno == EACCES || errno == EAGAIN ? EWOULDBLOCK : errno;
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
