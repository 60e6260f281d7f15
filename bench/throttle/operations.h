// The file system's callbacks: names, attributes and data passed through to the backing directory,
// every read and write delayed as the meter says.
//
// Files are opened with direct_io: a write(2) becomes one request for each 1 MiB of it and a
// read(2) always asks the storage. With the kernel's page cache in between, what is measured would
// be the cache's read-ahead and dirty limits, which a parallel file system under load does not give
// either. The writeback cache stays off for the same reason.
//
// Invariant: a request is answered no earlier than the meter's booking for it.
// Thread safety: callbacks run on any of libfuse's threads; what they share is in Mount.
#pragma once

#ifndef FUSE_USE_VERSION
#define FUSE_USE_VERSION 32
#endif
#include <fuse3/fuse_lowlevel.h>

#include "throttle/inodes.h"
#include "throttle/meter.h"

namespace tidelane::throttle {

inline constexpr unsigned kMaxRequest = 1 << 20;

struct Mount {
  Meter meter;
  Inodes inodes;
  int root = -1;  // O_PATH descriptor of the backing directory
};

// To be given to fuse_session_new with a Mount as user data.
fuse_lowlevel_ops operations();

}  // namespace tidelane::throttle
