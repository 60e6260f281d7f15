// What memory this process has, as the system counts it.
//
// Thread safety: any thread.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <fstream>

namespace tidelane::testing {

struct Memory {
  uint64_t mapped = 0;  // bytes
  uint64_t resident = 0;
};

inline Memory memory_now() {
  Memory now;
  std::ifstream("/proc/self/statm") >> now.mapped >> now.resident;
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return {now.mapped * page, now.resident * page};
}

}  // namespace tidelane::testing
