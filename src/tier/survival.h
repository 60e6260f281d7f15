/// \file
/// Whether a tier and its mover outlive the program here: schedulers end every process of a job, and login managers those of a session.
///
/// Thread safety: reads the environment; must not race with setenv.
#pragma once

#include <string>

namespace tidelane::tier {

/// What ends a mover, or takes a tier in memory away, when the program's job or session ends: in words. Empty: nothing that is known.
/// `settings`: where logind's are; for tests.
std::string WhatEndsIt(bool in_memory, const std::string& settings = "/etc/systemd/logind.conf");

}  // namespace tidelane::tier
