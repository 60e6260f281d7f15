/// \file
/// The VOL connector classes: `tidelane`, and `async`, the name that existing programs and job
/// scripts know.
///
/// Thread safety: PluginInfo may be called from any thread.
#pragma once

#include "h5/hdf5.h"

namespace tidelane::vol {

inline constexpr H5VL_class_value_t kTidelaneValue = 5120;
inline constexpr H5VL_class_value_t kAsyncValue = 512;  // as the existing asynchronous connector's

/// The class of the connector called `name` ("tidelane" or "async") for the libhdf5 that contains
/// the address `caller`. nullptr, with the reason on stderr, when that library cannot be served.
const H5VL_class_t* PluginInfo(const void* caller, const char* name);

}  // namespace tidelane::vol
