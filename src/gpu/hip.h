/// \file
/// AMD's HIP runtime (libamdhip64.so), by the few functions that copies need.
///
/// A context is a device's number plus one. Names and values are those of HIP's reference manual.
///
/// Thread safety: see gpu/runtime.h.
#pragma once

#include "gpu/runtime.h"

namespace tidelane::gpu {

/// The library at `path`, which the program has loaded; nullptr: it lacks a function. Never deleted once it is known.
Runtime* OpenHip(const char* path);

}  // namespace tidelane::gpu
