/// \file
/// What tests ask event sets.
///
/// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>

#include <hdf5.h>

#include "conformance/fixture.h"

namespace tidelane::testing {

/// How many operations a set holds.
inline size_t count(hid_t set) {
  size_t operations = SIZE_MAX;
  EXPECT_GE(H5ESget_count(set, &operations), 0);
  return operations;
}

/// Waits; how many are still in progress. None may fail.
inline size_t wait(hid_t set, uint64_t timeout_ns = H5ES_WAIT_FOREVER) {
  size_t in_progress = SIZE_MAX;
  hbool_t failed = true;
  EXPECT_GE(H5ESwait(set, timeout_ns, &in_progress, &failed), 0) << error_text();
  EXPECT_FALSE(failed);
  return in_progress;
}

}  // namespace tidelane::testing
