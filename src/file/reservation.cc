#include "file/reservation.h"

#include <cerrno>

#include "base/counters.h"

namespace tidelane {
namespace {
constexpr uint64_t kStep = 1u << 20;
}

int Reservation::Cover(Store& store, uint64_t address, uint64_t size) {
  const uint64_t end = address + size;
  if (ranges_.Covers(address, end)) return 0;
  uint64_t stepped = (end / kStep + 1) * kStep;
  int error = store.Reserve(address, stepped - address);
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
    stepped = end;
    error = store.Reserve(address, size);
  }
  if (error == EOPNOTSUPP || error == ENOSYS || error == EINVAL) {
    wanted_ = false;
    Count(Fallback::kNoReservation);
    return 0;
  }
  if (error == 0) ranges_.Add(address, stepped);
  return error;
}

}  // namespace tidelane
