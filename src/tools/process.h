/// \file
/// Child processes: one whose output is read within a time limit, and one that takes this process's
/// place for its user.
///
/// Thread safety: one thread; nothing else here waits for children.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace tidelane::tools {

struct Ended {
  bool started = false;
  int error = 0;      ///< errno, where it could not be started
  int status = 0;     ///< as waitpid gives it
  bool late = false;  ///< it was killed at the time limit
  std::string output;
  std::string errors;

  bool ok() const { return started && !late && status == 0; }
  /// "ended with status 3", "was ended by signal 11 (Segmentation fault)", …
  std::string HowInWords() const;
};

/// Runs to its end, at most `seconds`; `environment` are NAME=value added to ours, or NAME to leave
/// one out. `meanwhile` is called ten times a second.
Ended RunAndRead(
    const std::vector<std::string>& command, const std::vector<std::string>& environment,
    double seconds, const std::function<void()>& meanwhile = [] {});

/// Runs `command` with our terminal, passing on signals that are sent to us; `pid` is its id.
Ended RunInFront(const std::vector<std::string>& command, int& pid);

/// Ends this process as a child ended: with its status, or by its signal.
[[noreturn]] void EndAs(int status);

}  // namespace tidelane::tools
