#include "base/control_groups.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <new>

namespace tidelane {
namespace {

constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();
constexpr uint64_t kMoreThanAnyMemory = uint64_t{1} << 60;
constexpr uint64_t kProgramsShare = 8;

// What the files of a version are called that bound memory. The kernel counts pages of files by whether they were used lately.
struct Version {
  const char* controller;
  const char* limit;
  const char* slower;  // from where on the process is slowed down; nullptr: there is no such thing
  const char* usage;
  const char* file_pages[2];
};
constexpr Version kFirst = {"memory",
                            "memory.limit_in_bytes",
                            nullptr,
                            "memory.usage_in_bytes",
                            {"total_inactive_file ", "total_active_file "}};
constexpr Version kSecond = {
    "", "memory.max", "memory.high", "memory.current", {"inactive_file ", "active_file "}};

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

// The number that `text` begins with; `otherwise` for "max" and nothing.
uint64_t NumberAt(const char* text, const char* end, uint64_t otherwise) {
  uint64_t number = 0;
  return std::from_chars(text, end, number).ec == std::errc() ? number : otherwise;
}

uint64_t NumberInFile(const std::string& path, uint64_t otherwise) {
  const std::string text = ReadFile(path);
  return NumberAt(text.data(), text.data() + text.size(), otherwise);
}

// Version 1 writes the largest number of pages for "none".
uint64_t LimitOf(const std::string& folder, const Version& version) {
  uint64_t limit = NumberInFile(folder + version.limit, kNoLimit);
  if (version.slower != nullptr)
    limit = std::min(limit, NumberInFile(folder + version.slower, kNoLimit));
  return limit < kMoreThanAnyMemory ? limit : kNoLimit;
}

uint64_t FilePages(const std::string& folder, const Version& version) {
  const std::string lines = "\n" + ReadFile(folder + "memory.stat");
  uint64_t bytes = 0;
  for (const char* const name : version.file_pages) {
    const size_t at = lines.find(std::string("\n") + name);
    if (at == std::string::npos) continue;
    bytes += NumberAt(lines.data() + at + 1 + std::strlen(name), lines.data() + lines.size(), 0);
  }
  return bytes;
}

uint64_t LeftIn(const std::string& folder, const Version& version) {
  const uint64_t limit = LimitOf(folder, version);
  if (limit == kNoLimit) return kNoLimit;
  const uint64_t usage = NumberInFile(folder + version.usage, 0);
  const uint64_t taken = usage - std::min(usage, FilePages(folder, version));
  const uint64_t ours = limit - limit / kProgramsShare;
  return ours - std::min(ours, taken);
}

// Two files of version 1, one of version 2; "-1" and "max" are none.
constexpr Version kFirstProcessors = {"cpu", "cpu.cfs_quota_us", nullptr, "cpu.cfs_period_us", {}};
constexpr Version kSecondProcessors = {"", "cpu.max", nullptr, nullptr, {}};

uint64_t ProcessorsIn(const std::string& folder, const Version& version) {
  std::string text = ReadFile(folder + version.limit);
  if (version.usage != nullptr) text += " " + ReadFile(folder + version.usage);
  const uint64_t quota = NumberAt(text.data(), text.data() + text.size(), kNoLimit);
  const size_t second = text.find_first_of("0123456789", std::min(text.find(' '), text.size()));
  if (quota == kNoLimit || second == std::string::npos) return kNoLimit;
  const uint64_t period = NumberAt(text.data() + second, text.data() + text.size(), 0);
  return period == 0 ? kNoLimit : std::max<uint64_t>((quota + period - 1) / period, 1);
}

using Look = uint64_t (*)(const std::string& folder, const Version& version);

// The smallest that `look` finds on any level. Inside a container the path may not exist below the mount: then only
// the mount's own directory answers, which is the container's group.
uint64_t SmallestOfLevels(const std::string& mount, std::string group, const Version& version,
                          Look look) {
  uint64_t smallest = look(mount + "/", version);
  while (group.size() > 1) {
    smallest = std::min(smallest, look(mount + group + "/", version));
    const size_t slash = group.rfind('/');
    if (slash == std::string::npos) break;
    group.resize(slash);
  }
  return smallest;
}

uint64_t Smallest(const std::string& root, const Version& first_version,
                  const Version& second_version, Look look) {
  const std::string mount = root + "/sys/fs/cgroup";
  const std::string groups = ReadFile(root + "/proc/self/cgroup");
  uint64_t smallest = kNoLimit;
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
      smallest = std::min(smallest, SmallestOfLevels(mount, group, second_version, look));
    } else if (controllers.find(std::string(",") + first_version.controller + ",") !=
               std::string::npos) {
      smallest = std::min(smallest, SmallestOfLevels(mount + "/" + first_version.controller, group,
                                                     first_version, look));
    }
  }
  return smallest;
}

}  // namespace

uint64_t MemoryGroupLimit(const std::string& root) {
  return Smallest(root, kFirst, kSecond, &LimitOf);
}

uint64_t MemoryGroupLeft(const std::string& root) noexcept {
  try {
    return Smallest(root, kFirst, kSecond, &LeftIn);
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

uint64_t ProcessorGroupLimit(const std::string& root) noexcept {
  try {
    return Smallest(root, kFirstProcessors, kSecondProcessors, &ProcessorsIn);
  } catch (const std::bad_alloc&) {
    return kNoLimit;
  }
}

}  // namespace tidelane
