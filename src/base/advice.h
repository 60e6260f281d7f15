/// \file
/// Which setting would help this program: one table of rules, read from what happened.
///
/// A rule speaks only where enough is at stake: a wait of a twentieth of the run and a tenth of a
/// second. The rules with most at stake are told, two at most.
///
/// Thread safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "base/summary.h"

namespace tidelane {

struct Advice {
  const char* rule;  ///< a stable key: "close_waits"
  uint64_t ns = 0;   ///< what is at stake
  std::string text;
};

/// Most at stake first.
std::vector<Advice> AdviceFor(const Summary& summary);

/// The keys of all rules, for the schema.
std::vector<std::string> AdviceRules();

}  // namespace tidelane
