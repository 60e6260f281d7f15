/// \file
/// CUDA's driver library (libcuda.so), by the few functions that copies need.
///
/// Names, values and layouts are those of the CUDA driver API's reference manual, whose entry points with a version in their name
/// (cuMemcpy2DAsync_v2) keep their meaning for ever.
///
/// Thread safety: see gpu/runtime.h.
#pragma once

#include "gpu/runtime.h"

namespace tidelane::gpu {

/// The library at `path`, which the program has loaded; nullptr: it lacks a function. Never deleted once it is known.
Runtime* OpenCuda(const char* path);

}  // namespace tidelane::gpu
