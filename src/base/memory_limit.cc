/// \file
/// Memory limits from sysconf, cgroups and resource limits; ranks from launcher variables.
///
/// Without C++ streams: nothing else in the plugin uses them, and every program would pay for setting up their locales.
///
/// Thread safety: as memory_limit.h.
#include "base/memory_limit.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <limits>

namespace tidelane {
namespace {

constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

// Of /proc or of a cgroup; empty when it is not there.
std::string ReadFile(const std::string& path) {
  std::string text;
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return text;
  char piece[1024];
  for (ssize_t got = 0; (got = read(descriptor, piece, sizeof piece)) > 0;) {
    text.append(piece, static_cast<size_t>(got));
  }
  close(descriptor);
  return text;
}

// The number in a cgroup file; kNoLimit for "max" and for files that are not there.
uint64_t LimitInFile(const std::string& path) {
  const std::string text = ReadFile(path);
  uint64_t limit = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), limit);
  return parsed.ec == std::errc() ? limit : kNoLimit;
}

// A limit set on any ancestor binds too. Inside a container the path may not exist below the mount:
// then only the mount's own directory answers, which is the container's group.
uint64_t LimitOfGroup(const std::string& mount, std::string group, const char* name) {
  uint64_t limit = LimitInFile(mount + "/" + name);
  while (group.size() > 1) {
    limit = std::min(limit, LimitInFile(mount + group + "/" + name));
    const size_t slash = group.rfind('/');
    if (slash == std::string::npos) break;
    group.resize(slash);
  }
  return limit;
}

uint64_t CgroupLimit(const std::string& root) {
  const std::string mount = root + "/sys/fs/cgroup";
  const std::string groups = ReadFile(root + "/proc/self/cgroup");
  uint64_t limit = kNoLimit;
  for (size_t begin = 0, end = 0; begin < groups.size(); begin = end + 1) {
    end = std::min(groups.find('\n', begin), groups.size());
    const std::string line =
        groups.substr(begin, end - begin);  // "0::/group" (v2) or "5:cpu,memory:/group" (v1)
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string group = line.substr(second + 1);
    if (controllers == ",,") {
      limit = std::min(limit, LimitOfGroup(mount, group, "memory.max"));
    } else if (controllers.find(",memory,") != std::string::npos) {
      limit = std::min(limit, LimitOfGroup(mount + "/memory", group, "memory.limit_in_bytes"));
    }
  }
  return limit;
}

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
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_size = sysconf(_SC_PAGESIZE);
  uint64_t usable = uint64_t{1} << 30;  // where the system does not say
  if (pages > 0 && page_size > 0) {
    usable = static_cast<uint64_t>(pages) * static_cast<uint64_t>(page_size);
  }
  return std::min(
      {usable, CgroupLimit(root), ResourceLimit(RLIMIT_AS), ResourceLimit(RLIMIT_DATA)});
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
