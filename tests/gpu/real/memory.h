// Memory of every kind that a program may give to HDF5, with bytes around it that nobody may touch.
//
// Invariant: use() comes before all else; get() is then memory of so many bytes.
// Thread safety: none; the thread that made it, with the primary context current.
#pragma once

#include <memory>
#include <string>

#include "gpu/real/driver.h"
#include "gpu/real/owner.h"
#include "gpu/real/values.h"

namespace tidelane::gpu_real {

enum class Kind : int {
  kDevice,
  kMiddle,       // a pointer into an allocation
  kManaged,      // a few MiB at most
  kPooled,       // by cuMemAllocAsync
  kVirtual,      // mapped into reserved addresses
  kTwoMappings,  // of which the memory has a half each
  kImported,     // of another process
  kOtherContext,
  kPinned,  // the host's
};
inline constexpr Kind kKinds[] = {Kind::kDevice,   Kind::kMiddle,       Kind::kManaged,
                                  Kind::kPooled,   Kind::kVirtual,      Kind::kTwoMappings,
                                  Kind::kImported, Kind::kOtherContext, Kind::kPinned};
const char* name_of(Kind kind);

class Memory {
 public:
  // Throws Unavailable where there is no such memory.
  Memory(Kind kind, size_t most);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // Of the `most` bytes, so many from now on.
  void use(size_t bytes);
  void* get() const { return begin_; }
  size_t bytes() const { return bytes_; }
  bool is_on_device() const { return kind_ != Kind::kPinned; }

  void put(const Bytes& bytes);  // also what lies around them
  // Overwrites it, after all that the legacy stream comes after.
  void spoil();
  // Throws where bytes around it have changed.
  Bytes now() const;

 private:
  void allocate_virtual(size_t most, size_t mappings);
  Bytes with_guards() const;

  const Kind kind_;
  size_t size_ = 0;  // of the allocation
  char* start_ = nullptr;
  char* begin_ = nullptr;
  size_t bytes_ = 0;
  size_t before_ = 0;  // guarded bytes
  Context context_ = nullptr;
  std::unique_ptr<Owner> owner_;
  size_t mapping_ = 0;  // bytes of each
};

}  // namespace tidelane::gpu_real
