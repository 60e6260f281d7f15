/// \file
/// Memory limits from sysconf, control groups (base/control_groups.h) and resource limits; ranks from launcher variables.
///
/// Thread safety: as memory_limit.h.
#include "base/memory_limit.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "base/control_groups.h"

namespace tidelane {
namespace {

constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

uint64_t ResourceLimit(decltype(RLIMIT_AS) resource) {
  struct rlimit limit;
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kNoLimit;
  return limit.rlim_cur;
}

}  // namespace

uint64_t AddressSpaceLeft() {
  const uint64_t space = ResourceLimit(RLIMIT_AS);
  const uint64_t data = ResourceLimit(RLIMIT_DATA);
  if (space == kNoLimit && data == kNoLimit) return kNoLimit;
  // "size resident shared text lib data dt", in pages; read without the allocator, which may have nothing.
  char text[256] = {};
  const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  const ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
  if (file >= 0) close(file);
  unsigned long pages = 0;
  unsigned long data_pages = 0;
  if (length <= 0 || std::sscanf(text, "%lu %*u %*u %*u %*u %lu", &pages, &data_pages) != 2)
    return kNoLimit;
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const auto left = [page](uint64_t limit, uint64_t used) {
    return limit == kNoLimit ? kNoLimit : limit - std::min(limit, used * page);
  };
  return std::min(left(space, pages), left(data, data_pages));
}

uint64_t UsableMemoryBytes(const std::string& root) {
  return UsableMemoryBelow(MemoryGroupLimit(root));
}

uint64_t UsableMemoryBelow(uint64_t group_limit) {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_size = sysconf(_SC_PAGESIZE);
  uint64_t usable = uint64_t{1} << 30;  // where the system does not say
  if (pages > 0 && page_size > 0) {
    usable = static_cast<uint64_t>(pages) * static_cast<uint64_t>(page_size);
  }
  return std::min({usable, group_limit, ResourceLimit(RLIMIT_AS), ResourceLimit(RLIMIT_DATA)});
}

unsigned RanksOnThisNode() {
  // Exact ones first; Slurm's describe the allocation and may say "4(x2),3": the first number is
  // taken.
  static constexpr const char* kVariables[] = {
      "OMPI_COMM_WORLD_LOCAL_SIZE",
      "MPI_LOCALNRANKS",
      "MV2_COMM_WORLD_LOCAL_SIZE",
      "PMI_LOCAL_SIZE",
      "PALS_LOCAL_SIZE",
      "JSM_NAMESPACE_LOCAL_SIZE",
      "SLURM_STEP_TASKS_PER_NODE",
      "SLURM_NTASKS_PER_NODE",
      "SLURM_TASKS_PER_NODE",
  };
  for (const char* variable : kVariables) {
    const char* text = std::getenv(variable);
    if (text == nullptr) continue;
    const long ranks = std::strtol(text, nullptr, 10);
    if (ranks > 0 && ranks < 1'000'000) return static_cast<unsigned>(ranks);
  }
  return 1;
}

}  // namespace tidelane
