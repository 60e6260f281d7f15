// The clocks of the measuring programs, in microseconds.
//
// Thread safety: every function may be called from any thread.
#pragma once

#include <time.h>

namespace tidelane::measure {

inline double clock_us(clockid_t clock) {
  timespec t;
  ::clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) / 1e3;
}

inline double now_us() { return clock_us(CLOCK_MONOTONIC); }

}  // namespace tidelane::measure
