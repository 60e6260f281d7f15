// Behaviours are tried in child processes: each has its own HDF5 library, environment and end, and the
// summary that the plugin writes at that end is the proof of what was deferred.
//
// Invariant: the test process itself never opens the HDF5 library, so that a fork of it starts clean.
// Thread safety: none; tests start children from one thread.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>

#include "support/summary.h"

namespace tidelane::testing {

using Environment =
    std::map<std::string, std::string>;  // of TIDELANE_* and HDF5_* the whole; "" is unset

class Child {
 public:
  // Forks and runs `scenario` under `environment`. The child then exits as any program does: HDF5's
  // own exit handler ends the library. Its status is 0 if no expectation failed in it.
  Child(const Environment& environment, const std::function<void()>& scenario);
  ~Child();  // a child that nobody waited for is killed
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  // The status as waitpid gives it.
  int wait();
  void kill();
  // Waits and expects status 0.
  void expect_success();
  // For children that ended by themselves, under TIDELANE_SUMMARY=`where` (with %p).
  Summary summary(std::string where) const;

 private:
  pid_t pid_ = -1;
};

// One process tells another that it has come so far. Create it before the fork.
class Gong {
 public:
  Gong();
  ~Gong();
  Gong(const Gong&) = delete;
  Gong& operator=(const Gong&) = delete;

  void ring() const;
  bool wait() const { return rung_within(20'000); }  // false when nobody rang within some seconds
  bool rung() const { return rung_within(0); }

 private:
  bool rung_within(int milliseconds) const;

  int ends_[2];
};

}  // namespace tidelane::testing
