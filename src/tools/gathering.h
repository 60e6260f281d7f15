/// \file
/// Where the processes of a run leave their summaries, and who tells about all of them.
///
/// One `tidelane run` has a folder of its own. When a launcher starts one for each rank
/// (`mpirun -n 4 tidelane run -- program`), those of a node share a folder, and the last one to end
/// tells for all: nobody waits for anybody.
///
/// Invariant: the folder is ours alone (mode 0700), and the one who tells removes it. Folders of
/// launchers that are gone are removed at the next run.
///
/// Thread safety: one thread.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace tidelane::tools {

struct Left {
  std::string path;
  int rank = -1;
};

class Gathering {
 public:
  Gathering() = default;
  ~Gathering();
  Gathering(const Gathering&) = delete;
  Gathering& operator=(const Gathering&) = delete;

  Status Begin();
  /// For TIDELANE_SUMMARY and TIDELANE_TRACE.
  std::string SummaryPattern() const { return place_ + "/%p.json"; }
  std::string TracePattern() const { return place_ + "/%p.trace"; }

  /// Our program has ended. True if we are the last one, and tell.
  bool End();
  /// In the order of ranks and process ids.
  std::vector<Left> Summaries() const { return Files(".json"); }
  std::vector<Left> Traces() const { return Files(".trace"); }

  /// Whether the launcher started programs on other nodes too, which tell there.
  bool other_nodes() const { return other_nodes_; }

 private:
  std::vector<Left> Files(const std::string& extension) const;

  std::string folder_;  // shared
  std::string place_;   // of our rank
  int rank_ = -1;
  unsigned ranks_ = 1;
  bool other_nodes_ = false;
  bool telling_ = false;
};

}  // namespace tidelane::tools
