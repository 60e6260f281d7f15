/// \file
/// The program `tidelane-mover`, which lies beside the plugin and is started by it (tier/mover.h): brings files from a tier to their own places.
///
///   tidelane-mover TIER
///
/// Thread safety: a process of its own.
#include <cstdio>

#include "tier/mover.h"

int main(int argc, char** argv) {
  if (argc != 2 || argv[1][0] != '/') {
    std::fputs(
        "tidelane-mover: started by Tidelane, with the path of a tier; by hand: tidelane drain\n",
        stderr);
    return 2;
  }
  return tidelane::tier::RunMover(argv[1], {}) == 0 ? 0 : 1;
}
