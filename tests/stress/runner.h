// Runs one generated sequence against both sides and compares after every operation.
//
// Protocol of the whole program (main.cc): 1. one Runner per thread, each with directories of its
// own; 2. all files closed; 3. H5close(), which drains deferred closes and writes the summary;
// 4. the finished files are compared by HDF5's own tools in separate processes, without the plugin.
//
// Thread safety: a Runner belongs to one thread; different Runners share nothing.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "stress/commit_log.h"
#include "stress/side.h"

namespace tidelane::stress {

// The exit status that means "a difference was found", so that a negative control can tell it from
// a crash, a failed assertion of a sanitizer (1) or wrong usage (2).
inline constexpr int kExitDifference = 10;
inline constexpr int kExitNotDeferred = 11;

struct RunOptions {
  uint64_t seed = 1;
  uint64_t ops = 20000;
  std::string dir;  // holds a/ (through the environment) and b/ (native)
  std::vector<std::pair<uint64_t, uint64_t>> drop;  // ranges of operations to leave out
  int64_t fault_at =
      -1;  // damage the first read at or after this operation: the program's own check
  bool native_both = false;
  bool verbose = false;
  // To be killed: one side alone, which says what it commits (commit_log.h); its files lie in `dir` itself.
  std::string commits;
  std::string images;
  bool alone() const { return !commits.empty(); }
};

struct Tally {
  uint64_t succeeded = 0;
  uint64_t failed = 0;  // on both sides alike
};

class Runner {
 public:
  explicit Runner(const RunOptions& options);

  // False after the first difference, which has then been reported on stderr.
  bool run();
  // Gives every identifier back, comparing what the closes return.
  bool finish();
  const std::map<std::string, Tally>& tally() const { return tally_; }

 private:
  bool step(uint64_t index);
  bool step_alone(uint64_t index);
  bool finish_alone();
  bool same(const Op& op, const Outcome& plugin, const Outcome& native);
  bool dropped(uint64_t index) const;
  void remember(const Op& op, bool ok);

  RunOptions options_;
  std::unique_ptr<Side> plugin_;
  std::unique_ptr<Side> native_;
  Catalog catalog_;
  std::deque<std::string> history_;
  std::map<std::string, Tally> tally_;
  bool fault_done_ = false;
  std::unique_ptr<CommitLog> commits_;
};

// Compares every file the two directories hold, using h5diff and h5dump from `tools`.
bool compare_files(const std::string& dir, const std::string& tools);

}  // namespace tidelane::stress
