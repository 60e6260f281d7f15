// Ranges of memory, and copies between them: see standin_memory.h.
#include "gpu/standin_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <shared_mutex>

#include "gpu/standin_world.h"

namespace tidelane::standin {
namespace {

constexpr uintptr_t kPage = 4096;
constexpr size_t kLongestPitch = INT32_MAX;

uintptr_t rounded_down(uintptr_t address) { return address & ~(kPage - 1); }
uintptr_t rounded_up(uintptr_t address) { return rounded_down(address + kPage - 1); }

struct Memory {
  std::shared_mutex mutex;  // held shared while bytes are copied, so that no range ends meanwhile
  std::map<uintptr_t, Range> ranges;
  uint64_t ids = 0;
};

Memory& memory() {
  static auto* const instance = new Memory;
  return *instance;
}

const Range* found(uintptr_t address) {
  auto after = memory().ranges.upper_bound(address);
  if (after == memory().ranges.begin()) return nullptr;
  const Range& range = std::prev(after)->second;
  return address - range.start < range.size ? &range : nullptr;
}

// A page without permissions follows every range.
size_t mapped(size_t size) { return rounded_up(size) + kPage; }

bool map_device(Range* range) {
  const int file = memfd_create("standin", MFD_CLOEXEC);
  if (file < 0) return false;
  const size_t bytes = mapped(range->size);
  void* seen = MAP_FAILED;
  void* alias = MAP_FAILED;
  if (ftruncate(file, static_cast<off_t>(bytes)) == 0) {
    seen = mmap(nullptr, bytes, PROT_NONE, MAP_SHARED, file, 0);
    alias = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  close(file);
  if (seen == MAP_FAILED || alias == MAP_FAILED) return false;
  range->start = reinterpret_cast<uintptr_t>(seen);
  range->alias = static_cast<char*>(alias);
  return true;
}

bool map_host(Range* range) {
  const size_t bytes = mapped(range->size);
  void* const seen = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (seen == MAP_FAILED) return false;
  if (mprotect(seen, rounded_up(range->size), PROT_READ | PROT_WRITE) != 0) return false;
  range->start = reinterpret_cast<uintptr_t>(seen);
  range->alias = static_cast<char*>(seen);
  return true;
}

void unmap(const Range& range) {
  if (range.kind == Kind::kHostRegistered) return;
  void* const start = reinterpret_cast<void*>(range.start);
  if (range.alias != start) munmap(range.alias, mapped(range.size));
  mmap(start, mapped(range.size), PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
}

// Where the processor reaches these bytes; memory that the driver does not know is the program's own.
char* reach(uintptr_t address, bool device) {
  const Range* const range = found(address);
  if (range == nullptr) return device ? nullptr : reinterpret_cast<char*>(address);
  return range->alias + (address - range->start);
}

bool pitch_fits(const Copy& copy, const Side& side) {
  if (side.pitch > kLongestPitch) return false;
  return (copy.height <= 1 && copy.depth <= 1) ||
         (side.pitch >= copy.width && (copy.depth <= 1 || side.rows >= copy.height));
}

CUresult check_host(uintptr_t address, uintptr_t end, CUcontext context, bool* pageable) {
  const Range* const first = found(address);
  const Range* const last = found(end - 1);
  *pageable = first == nullptr && last == nullptr;
  if (*pageable) return kCudaSuccess;
  if (first != last) return kCudaInvalidValue;  // parts of it are pinned, or by themselves
  if (first->kind == Kind::kManaged) {
    *pageable = true;
    return kCudaSuccess;
  }
  if (first->on_device()) return kCudaInvalidValue;
  *pageable = first->context != context && (first->flags & kCudaPortable) == 0;
  return kCudaSuccess;
}

CUresult check_range(uintptr_t address, uintptr_t end, int device) {
  const Range* const range = found(address);
  if (range == nullptr || !range->on_device()) return kCudaInvalidValue;
  if (end < address || end - range->start > range->size) return kCudaInvalidValue;
  if (range->kind == Kind::kManaged || range->device == device) return kCudaSuccess;
  return misuse("memory of one device in a copy of another's context", kCudaInvalidValue);
}

}  // namespace

std::optional<Range> find_range(uintptr_t address) {
  const std::shared_lock lock(memory().mutex);
  const Range* const range = found(address);
  return range == nullptr ? std::nullopt : std::optional(*range);
}

uintptr_t allocate(Kind kind, size_t size, CUcontext context, int device, unsigned flags) {
  Range range{kind, 0, size, context, device, flags, 0, nullptr};
  const bool host = kind == Kind::kManaged || kind == Kind::kHostAllocated;
  if (!(host ? map_host(&range) : map_device(&range))) return 0;
  const std::unique_lock lock(memory().mutex);
  range.id = ++memory().ids;
  memory().ranges[range.start] = range;
  return range.start;
}

CUresult pin(void* pointer, size_t size, CUcontext context, unsigned flags) {
  const auto start = reinterpret_cast<uintptr_t>(pointer);
  if (start == 0 || size == 0) return kCudaInvalidValue;
  const std::unique_lock lock(memory().mutex);
  // Whole pages are pinned: a neighbour on the same page is in the way.
  for (const auto& [begin, range] : memory().ranges) {
    if (rounded_down(begin) < rounded_up(start + size) &&
        rounded_down(start) < rounded_up(begin + range.size)) {
      return range.pinned() ? kCudaAlreadyRegistered : kCudaInvalidValue;
    }
  }
  memory().ranges[start] = {
      Kind::kHostRegistered,      start, size, context, 0, flags, ++memory().ids,
      static_cast<char*>(pointer)};
  return kCudaSuccess;
}

bool end_range(uintptr_t start, Kind kind, std::optional<Kind> or_kind) {
  const std::unique_lock lock(memory().mutex);
  const auto at = memory().ranges.find(start);
  if (at == memory().ranges.end()) return false;
  if (at->second.kind != kind && at->second.kind != or_kind) return false;
  unmap(at->second);
  memory().ranges.erase(at);
  return true;
}

void end_ranges_of(CUcontext context) {
  const std::unique_lock lock(memory().mutex);
  std::erase_if(memory().ranges, [&](const auto& entry) {
    if (entry.second.context != context || entry.second.kind == Kind::kPooled) return false;
    unmap(entry.second);
    return true;
  });
}

namespace {

// For who looks for the reason: which side of a copy was refused.
CUresult refused(const Copy& copy, const Side& side, CUresult error) {
  if (std::getenv("STANDIN_TRACE") == nullptr) return error;
  std::fprintf(stderr,
               "stand-in for CUDA: %s side refused: %zu x %zu x %zu at %#zx, pitch %zu, rows %zu\n",
               side.device ? "device" : "host", copy.width, copy.height, copy.depth, side.first,
               side.pitch, side.rows);
  for (const uintptr_t end : {side.first, copy.end_of(side) - 1}) {
    const Range* const range = found(end);
    std::fprintf(stderr, "  %#zx in %#zx + %zu\n", end, range != nullptr ? range->start : 0,
                 range != nullptr ? range->size : 0);
  }
  return error;
}

}  // namespace

CUresult check(const Copy& copy, CUcontext context, int device, bool* pageable) {
  *pageable = false;
  if (copy.empty()) return kCudaSuccess;
  const std::shared_lock lock(memory().mutex);
  for (const Side* side : {&copy.from, &copy.to}) {
    if (!pitch_fits(copy, *side)) return refused(copy, *side, kCudaInvalidValue);
    const uintptr_t end = copy.end_of(*side);
    bool side_pageable = false;
    const CUresult result = side->device ? check_range(side->first, end, device)
                                         : check_host(side->first, end, context, &side_pageable);
    if (result != kCudaSuccess) return refused(copy, *side, result);
    *pageable = *pageable || side_pageable;
  }
  return kCudaSuccess;
}

CUresult check_device(uintptr_t address, size_t size, int device) {
  const std::shared_lock lock(memory().mutex);
  return check_range(address, address + size, device);
}

CUresult run(const Copy& copy, bool host_was_pinned) {
  if (copy.empty()) return kCudaSuccess;
  const std::shared_lock lock(memory().mutex);
  for (const Side* side : {&copy.from, &copy.to}) {
    const bool known = found(side->first) != nullptr;
    if (side->device && !known) {
      return misuse("device memory freed under a copy", kCudaIllegalAddress);
    }
    if (!side->device && host_was_pinned && !known) {
      return misuse("host memory unpinned under a copy", kCudaIllegalAddress);
    }
  }
  for (size_t z = 0; z < copy.depth; ++z) {
    for (size_t y = 0; y < copy.height; ++y) {
      std::memcpy(reach(copy.to.row(y, z), copy.to.device),
                  reach(copy.from.row(y, z), copy.from.device), copy.width);
    }
  }
  return kCudaSuccess;
}

CUresult fill(uintptr_t address, const std::function<void(char*)>& write, size_t size) {
  const std::shared_lock lock(memory().mutex);
  const Range* const range = found(address);
  if (range == nullptr || address + size - range->start > range->size) return kCudaIllegalAddress;
  write(range->alias + (address - range->start));
  return kCudaSuccess;
}

}  // namespace tidelane::standin

namespace standin = tidelane::standin;

extern "C" {

STANDIN_EXPORT int StandInPeek(CUdeviceptr from, void* to, size_t size) {
  return standin::fill(
             from, [&](char* at) { std::memcpy(to, at, size); }, size) == kCudaSuccess
             ? 1
             : 0;
}

STANDIN_EXPORT int StandInPoke(CUdeviceptr to, const void* from, size_t size) {
  return standin::fill(
             to, [&](char* at) { std::memcpy(at, from, size); }, size) == kCudaSuccess
             ? 1
             : 0;
}

STANDIN_EXPORT size_t StandInPinned() {
  const std::shared_lock lock(standin::memory().mutex);
  size_t bytes = 0;
  for (const auto& [start, range] : standin::memory().ranges)
    bytes += range.pinned() ? range.size : 0;
  return bytes;
}

}  // extern "C"
