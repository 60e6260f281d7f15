// The stand-in's memory: device memory that the processor cannot touch, managed memory, pinned host memory.
//
// Device memory is one file in memory mapped twice: without permissions at the address that the program knows, and readable at
// an alias that only copies use. A freed range stays mapped without permissions and is never given again, so that an address
// that somebody kept is unknown and faults.
//
// Invariant: ranges do not overlap; a range is found by any address inside it.
//
// Thread safety: any thread; a lock of its own, under which only the world's is taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "gpu/standin_cuda.h"

namespace tidelane::standin {

enum class Kind { kDevice, kPooled, kManaged, kHostAllocated, kHostRegistered };

struct Range {
  Kind kind = Kind::kDevice;
  uintptr_t start = 0;
  size_t size = 0;
  CUcontext context = nullptr;  // in which it was made
  int device = 0;
  unsigned flags = 0;
  uint64_t id = 0;
  char* alias = nullptr;

  bool on_device() const {
    return kind == Kind::kDevice || kind == Kind::kPooled || kind == Kind::kManaged;
  }
  bool pinned() const { return !on_device(); }
};

std::optional<Range> find_range(uintptr_t address);

// A new range of device, managed or allocated host memory; 0 if there is none.
uintptr_t allocate(Kind kind, size_t size, CUcontext context, int device, unsigned flags);
CUresult pin(void* pointer, size_t size, CUcontext context, unsigned flags);
// Ends the range that begins there, if it is of one of these kinds.
bool end_range(uintptr_t start, Kind kind, std::optional<Kind> or_kind = std::nullopt);
void end_ranges_of(CUcontext context);

// A box of bytes in memory: rows at distances of a pitch, slices at distances of `pitch` x `rows`.
struct Side {
  uintptr_t first = 0;
  size_t pitch = 0;
  size_t rows = 0;
  bool device = false;

  uintptr_t row(size_t y, size_t z) const { return first + (z * rows + y) * pitch; }
};
struct Copy {
  Side from;
  Side to;
  size_t width = 0;
  size_t height = 1;
  size_t depth = 1;

  uintptr_t end_of(const Side& side) const { return side.row(height - 1, depth - 1) + width; }
  bool empty() const { return width == 0 || height == 0 || depth == 0; }
};

// Whether memory is as the copy needs it for a context of this device; `pageable` if host memory is not pinned.
CUresult check(const Copy& copy, CUcontext context, int device, bool* pageable);
CUresult check_device(uintptr_t address, size_t size, int device);
// Copies now, between whatever the addresses are; what is unknown by now is an illegal address.
CUresult run(const Copy& copy, bool host_was_pinned);
CUresult fill(uintptr_t address, const std::function<void(char*)>& write, size_t size);

}  // namespace tidelane::standin
