/// \file
/// What a call writes, in memory of ours instead of the program's: extents may lie there, and nothing is copied once more. Elements
/// may still be on their way from a GPU when the call begins; what lanes have filtered is there (file/prepared_bytes.h).
///
/// The VOL face says it around a call (HoldsBytes); the driver, called from inside it on the same thread, passes it down with the
/// call's context.
///
/// Thread safety: used by the thread that made the call.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace tidelane {

struct Slab;

class HeldBytes {
 public:
  virtual ~HeldBytes() = default;
  /// Bytes in all.
  virtual uint64_t size() const = 0;
  /// How many of `size` bytes at `bytes` come together; all of them where they are not ours.
  virtual uint64_t PieceAt(const void* bytes, uint64_t size) const = 0;
  /// Waits until `size` bytes at `bytes` are there: whoever looks at them calls this first. At once where they are not ours.
  virtual Status Await(const void* bytes, uint64_t size) = 0;
  /// Waits until all of them are there; false: they will not be.
  virtual bool AwaitAll() = 0;
  /// How long the call has waited while they were copied, since this was asked last.
  virtual uint64_t TakeCopyNs() = 0;
  /// The slab that they lie in, with a reference for an extent; nullptr: they are too few to keep it for, or not ours.
  virtual Slab* SlabOf(const void* bytes, uint64_t size) const = 0;
};

/// While one lives, what this thread writes may lie in `held`, which outlives it; nullptr: they do not. The innermost counts.
class [[nodiscard]] HoldsBytes {
 public:
  explicit HoldsBytes(HeldBytes* held);
  ~HoldsBytes();
  HoldsBytes(const HoldsBytes&) = delete;
  HoldsBytes& operator=(const HoldsBytes&) = delete;

  static HeldBytes* current();

 private:
  HeldBytes* const before_;
};

}  // namespace tidelane
