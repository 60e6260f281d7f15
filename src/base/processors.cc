#include "base/processors.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>

#include "base/control_groups.h"
#include "base/memory_limit.h"

namespace tidelane {

unsigned ProcessorsForRanks() {
  cpu_set_t allowed;
  const int own = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 0;
  if (own > 1) return static_cast<unsigned>(own);
  return static_cast<unsigned>(std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L));
}

unsigned ProcessorsForLanes() {
  const uint64_t all = std::min<uint64_t>(ProcessorsForRanks(), ProcessorGroupLimit());
  return static_cast<unsigned>(std::max<uint64_t>(all / RanksOnThisNode(), 1));
}

bool HasMoreRanksThanProcessors() { return RanksOnThisNode() > ProcessorsForRanks(); }

}  // namespace tidelane
