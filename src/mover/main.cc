/// \file
/// The program `tidelane-mover`, which lies beside the plugin and is started by it (tier/mover.h): brings files from a tier to their own places.
///
///   tidelane-mover TIER [MS]      ends when there was nothing to do for MS milliseconds (default: 5000)
///
/// Thread safety: a process of its own.
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "tier/mover.h"

int main(int argc, char** argv) {
  char* end = nullptr;
  const long idle_ms = argc == 3 ? std::strtol(argv[2], &end, 10) : 0;
  if (argc < 2 || argc > 3 || argv[1][0] != '/' || (end != nullptr && *end != '\0') ||
      idle_ms < 0) {
    std::fputs(
        "tidelane-mover: started by Tidelane, with the path of a tier; by hand: tidelane drain\n",
        stderr);
    return 2;
  }
  tidelane::tier::MoverOptions options;
  if (argc == 3) options.idle = std::chrono::milliseconds(idle_ms);
  return tidelane::tier::RunMover(argv[1], options) == 0 ? 0 : 1;
}
