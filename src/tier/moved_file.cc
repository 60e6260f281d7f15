#include "tier/moved_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "device/claim.h"

namespace tidelane::tier {
namespace {

class GuardedDevice final : public Device {
 public:
  GuardedDevice(Device& inner, const Superblock& marked, int leased, Pace* pace)
      : inner_(inner), marked_(marked), leased_(leased), pace_(pace) {}

  int Read(uint64_t address, void* buffer, size_t n) override {
    return inner_.Read(address, buffer, n);
  }
  int Write(uint64_t address, const struct iovec* parts, size_t count) override {
    if (pace_ == nullptr) {
      const int error = MayChange();
      return error == 0 ? inner_.Write(address, parts, count) : error;
    }
    int error = pace_->Await([this] { return MayChange(); });
    if (error == 0) error = inner_.Write(address, parts, count);
    for (size_t i = 0; error == 0 && i < count; ++i) pace_->Wrote(parts[i].iov_len);
    return error;
  }
  int Truncate(uint64_t size) override {
    const int error = MayChange();
    return error == 0 ? inner_.Truncate(size) : error;
  }
  int Reserve(uint64_t address, uint64_t size) override { return inner_.Reserve(address, size); }
  int Size(uint64_t& size) override { return inner_.Size(size); }
  int Version(FileVersion& version) override { return inner_.Version(version); }
  int Lock(bool exclusive) override { return inner_.Lock(exclusive); }
  int Unlock() override { return inner_.Unlock(); }
  int Sync() override { return inner_.Sync(); }
  int Close() override { return 0; }
  int* descriptor() override { return inner_.descriptor(); }

 private:
  int MayChange() {
    // Of a file that was deleted the log is dropped: whoever has it looks again, instead of writing the rest at its rate.
    struct stat found{};
    if (fstat(*inner_.descriptor(), &found) == 0 && found.st_nlink == 0) return EWOULDBLOCK;
    if (leased_ >= 0) return fcntl(leased_, F_GETLEASE) == F_WRLCK ? 0 : EWOULDBLOCK;
    if (IsMoveAwaited(*inner_.descriptor())) return EWOULDBLOCK;
    Superblock own;
    if (const int error = Superblock::Find(inner_, own); error != 0) return error;
    return own == marked_ ? 0 : ESTALE;
  }

  Device& inner_;
  const Superblock marked_;
  const int leased_;  // -1: there is no lease
  Pace* const pace_;  // may be none
};

}  // namespace

MovedFile::MovedFile(int fd) : fd_(fd), device_(MakePosixDevice(dup(fd))) {}

// The opening may go on.
MovedFile::~MovedFile() {
  if (leased_) fcntl(fd_, F_SETLEASE, F_UNLCK);
  if (is_locked_) static_cast<void>(device_->Unlock());
  GiveUpClaim(fd_);
  GiveUpMove(fd_);
}

int MovedFile::Lock() {
  // First of all the claim that others can wait for.
  int error = ClaimMove(fd_);
  if (error == 0) error = Claim(fd_);
  Superblock own;
  if (error == 0) error = Superblock::Find(*device_, own);
  // Others may open one that is not marked by any driver, and would be refused for a lock that is of no use: nothing is changed in it.
  is_locked_ = own.marked();
  if (error == 0 && is_locked_) error = device_->Lock(false);
  if (error == ENOSYS || error == EOPNOTSUPP) error = 0;
  if (error != 0) return error;
  leased_ = fcntl(fd_, F_SETLEASE, F_WRLCK) == 0;
  is_open_elsewhere_ = !leased_ && errno == EAGAIN;
  return 0;
}

int MovedFile::Find(Superblock& superblock) { return Superblock::Find(*device_, superblock); }

std::unique_ptr<Device> MovedFile::Changed(const Superblock& marked, Pace* pace) {
  return std::make_unique<GuardedDevice>(*device_, marked, leased_ ? fd_ : -1, pace);
}

}  // namespace tidelane::tier
