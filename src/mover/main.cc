/// \file
/// The program `tidelane-mover`, which lies beside the plugin and is started by it (tier/mover.h): brings files from a tier to their own places.
///
///   tidelane-mover TIER [MS [RATE [NICENESS [STREAMS]]]]
///
/// It ends when there was nothing to do for MS milliseconds (default: 5000), writes at most RATE bytes a second (0: as fast as it goes), is at
/// least so nice, and writes so many files at once.
///
/// Thread safety: a process of its own.
#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string_view>

#include "tier/mover.h"

namespace {

// Nothing but digits; false otherwise.
bool Parse(std::string_view text, uint64_t most, uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number <= most;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr uint64_t kMostMs = uint64_t{1} << 40;
  constexpr uint64_t kNicest = 19;
  constexpr uint64_t kMostStreams = 16;
  tidelane::tier::MoverOptions options;
  uint64_t idle_ms = static_cast<uint64_t>(options.idle.count());
  uint64_t niceness = 0;
  uint64_t streams = options.streams;
  const std::span<char*> words(argv, static_cast<size_t>(argc));
  if (argc < 2 || argc > 6 || words[1][0] != '/' ||
      (argc > 2 && !Parse(words[2], kMostMs, idle_ms)) ||
      (argc > 3 && !Parse(words[3], UINT64_MAX, options.rate)) ||
      (argc > 4 && !Parse(words[4], kNicest, niceness)) ||
      (argc > 5 && !Parse(words[5], kMostStreams, streams)) || streams == 0) {
    std::fputs(
        "tidelane-mover: started by Tidelane, with the path of a tier; by hand: tidelane drain\n",
        stderr);
    return 2;
  }
  options.idle = std::chrono::milliseconds(idle_ms);
  options.streams = static_cast<unsigned>(streams);
  // Never less nice than who has started it.
  setpriority(PRIO_PROCESS, 0, std::max(getpriority(PRIO_PROCESS, 0), static_cast<int>(niceness)));
  return tidelane::tier::RunMover(words[1], options) == 0 ? 0 : 1;
}
