/// \file
/// The version that summaries, traces and `tidelane --version` report; CMake reads it from here
/// too.
///
/// Thread safety: a constant.
#pragma once

#define TIDELANE_VERSION "0.1.0"
