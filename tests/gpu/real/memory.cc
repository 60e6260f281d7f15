// Kinds of memory: see memory.h.
#include "gpu/real/memory.h"

#include <algorithm>
#include <cstring>

namespace tidelane::gpu_real {
namespace {

constexpr size_t kAfter = 256;    // guarded bytes behind
constexpr size_t kMiddle = 1000;  // of a pointer into an allocation
constexpr char kGuard = 0x5a;
constexpr unsigned char kSpoilt = 0xee;

}  // namespace

const char* name_of(Kind kind) {
  static constexpr const char* kNames[] = {"device",   "middle",         "managed",
                                           "pooled",   "virtual",        "two mappings",
                                           "imported", "second context", "pinned host"};
  return kNames[static_cast<int>(kind)];
}

Memory::Memory(Kind kind, size_t most) : kind_(kind), size_(most + kMiddle + kAfter) {
  const Functions& f = cuda();
  DevicePointer device = 0;
  void* host = nullptr;
  switch (kind) {
    case Kind::kDevice:
    case Kind::kMiddle: check(f.MemAlloc(&device, size_), "cuMemAlloc"); break;
    case Kind::kManaged:
      need_function(f.MemAllocManaged, "cuMemAllocManaged");
      need(f.MemAllocManaged(&device, size_, 1), "cuMemAllocManaged");
      break;
    case Kind::kPooled:
      need_function(f.MemAllocAsync, "cuMemAllocAsync");
      need(f.MemAllocAsync(&device, size_, nullptr), "cuMemAllocAsync");
      break;
    case Kind::kVirtual: allocate_virtual(size_, 1); return;
    case Kind::kTwoMappings: allocate_virtual(size_, 2); return;
    case Kind::kImported: {
      need_function(f.IpcOpenMemHandle, "cuIpcOpenMemHandle");
      owner_ = std::make_unique<Owner>(size_);
      need(f.IpcOpenMemHandle(&device, owner_->handle(), 1), "cuIpcOpenMemHandle");
      break;
    }
    case Kind::kOtherContext: {
      context_ = other_context();
      const InContext in(context_);
      check(f.MemAlloc(&device, size_), "cuMemAlloc");
      break;
    }
    case Kind::kPinned: check(f.MemHostAlloc(&host, size_, 0), "cuMemHostAlloc"); break;
  }
  start_ = host != nullptr ? static_cast<char*>(host) : pointer(device);
}

void Memory::allocate_virtual(size_t most, size_t mappings) {
  const Functions& f = cuda();
  need_function(f.MemGetAllocationGranularity, "cuMemGetAllocationGranularity");
  need_function(f.MemCreate, "cuMemCreate");
  need_function(f.MemAddressReserve, "cuMemAddressReserve");
  need_function(f.MemMap, "cuMemMap");
  need_function(f.MemSetAccess, "cuMemSetAccess");
  const AllocationProperties properties;
  size_t granule = 0;
  need(f.MemGetAllocationGranularity(&granule, &properties, 0), "cuMemGetAllocationGranularity");
  mapping_ = (most + granule - 1) / granule * granule;
  size_ = mapping_ * mappings;
  DevicePointer reserved = 0;
  need(f.MemAddressReserve(&reserved, size_, 0, 0, 0), "cuMemAddressReserve");
  for (size_t i = 0; i < mappings; ++i) {
    unsigned long long handle = 0;
    need(f.MemCreate(&handle, mapping_, &properties, 0), "cuMemCreate");
    need(f.MemMap(reserved + i * mapping_, mapping_, 0, handle, 0), "cuMemMap");
    if (f.MemRelease != nullptr) check(f.MemRelease(handle), "cuMemRelease");  // mapped it stays
  }
  const AccessDescription access;
  need(f.MemSetAccess(reserved, size_, &access, 1), "cuMemSetAccess");
  start_ = pointer(reserved);
}

Memory::~Memory() {
  const Functions& f = cuda();
  const DevicePointer device = address(start_);
  switch (kind_) {
    case Kind::kPinned: f.MemFreeHost(start_); break;
    case Kind::kPooled: f.MemFreeAsync(device, nullptr); break;
    case Kind::kImported: f.IpcCloseMemHandle(device); break;
    case Kind::kVirtual:
    case Kind::kTwoMappings:
      f.CtxSynchronize();
      for (size_t at = 0; at < size_; at += mapping_) f.MemUnmap(device + at, mapping_);
      f.MemAddressFree(device, size_);
      break;
    default: {
      const InContext in(context_);
      f.MemFree(device);
    }
  }
}

void Memory::use(size_t bytes) {
  bytes_ = bytes;
  switch (kind_) {
    case Kind::kMiddle: before_ = kMiddle; break;
    // Elements of twelve bytes lie across the middle, too.
    case Kind::kTwoMappings: before_ = mapping_ - bytes / 2 / 8 * 8; break;
    default: before_ = 0;
  }
  begin_ = start_ + before_;
  if (before_ > kMiddle) before_ = kAfter;
  if (begin_ + bytes_ + kAfter > start_ + size_) throw std::logic_error("memory is too small");
}

void Memory::put(const Bytes& bytes) {
  if (bytes.size() != bytes_) throw std::logic_error("not as many bytes as are used");
  Bytes all(before_, kGuard);
  all.insert(all.end(), bytes.begin(), bytes.end());
  all.insert(all.end(), kAfter, kGuard);
  if (!is_on_device()) {
    std::memcpy(begin_ - before_, all.data(), all.size());
    return;
  }
  const InContext in(context_);
  check(cuda().MemcpyHtoD(address(begin_ - before_), all.data(), all.size()), "cuMemcpyHtoD");
}

void Memory::spoil() {
  if (!is_on_device()) {
    std::memset(begin_, kSpoilt, bytes_);
    return;
  }
  const InContext in(context_);
  check(cuda().MemsetD8Async(address(begin_), kSpoilt, bytes_, nullptr), "cuMemsetD8Async");
}

Bytes Memory::with_guards() const {
  Bytes all(before_ + bytes_ + kAfter);
  if (!is_on_device()) {
    std::memcpy(all.data(), begin_ - before_, all.size());
    return all;
  }
  const InContext in(context_);
  check(cuda().MemcpyDtoH(all.data(), address(begin_ - before_), all.size()), "cuMemcpyDtoH");
  return all;
}

Bytes Memory::now() const {
  Bytes all = with_guards();
  const auto at = [&](size_t i) { return all.begin() + static_cast<std::ptrdiff_t>(i); };
  const Bytes guard(std::max(before_, kAfter), kGuard);
  if (!std::equal(all.begin(), at(before_), guard.begin()) ||
      !std::equal(at(before_ + bytes_), all.end(), guard.begin())) {
    throw std::runtime_error("bytes before or behind the memory have changed");
  }
  return {at(before_), at(before_ + bytes_)};
}

}  // namespace tidelane::gpu_real
