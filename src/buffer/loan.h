/// \file
/// Bytes outside the arena that extents may lie in: a buffer that the program has lent us, a copy that we took of
/// one, or memory of ours that they were made in.
///
/// A loan is a slab with no arena behind it, so that whoever holds extents need not know where their bytes are. The
/// program keeps a lent buffer as it is until the request of its call has completed; if it is told of a failure before
/// the bytes are stored, they are copied first (KeepCopy), because what has failed may be freed.
///
/// Invariant: a loan goes when its last reference goes; the lent bytes themselves stay the program's.
/// Thread safety: all functions may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/raw_bytes.h"
#include "buffer/arena.h"

namespace tidelane {

/// A loan with one reference; nullptr when there is no memory for its book-keeping.
Slab* Lend();
/// A loan with a copy of `bytes` in memory of its own, and one reference; nullptr when there is no memory.
Slab* KeepCopy(const std::byte* bytes, uint64_t size);
/// Likewise with `size` bytes that nobody has written yet, at `data`.
Slab* Keep(uint64_t size);
/// Likewise with the memory that `bytes` has, which is then the slab's; nullptr: it is still theirs. At most UINT32_MAX of them.
Slab* Adopt(RawBytes& bytes);

inline bool IsLent(const Slab* slab) { return slab->kind == Slab::Kind::kLent; }

}  // namespace tidelane
