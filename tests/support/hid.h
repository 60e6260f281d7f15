// Owned HDF5 identifiers for test programs.
//
// Invariant: a Hid holds at most one reference to its identifier and gives it back exactly once.
// Thread safety: none of its own; HDF5 decides which identifiers may be shared between threads.
#pragma once

#include <utility>

#include <hdf5.h>

namespace tidelane::testing {

class Hid {
 public:
  Hid() = default;
  explicit Hid(hid_t id) : id_(id) {}
  Hid(const Hid&) = delete;
  Hid& operator=(const Hid&) = delete;
  Hid(Hid&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)) {}
  Hid& operator=(Hid&& other) noexcept {
    if (this != &other) {
      reset();
      id_ = std::exchange(other.id_, H5I_INVALID_HID);
    }
    return *this;
  }
  ~Hid() { reset(); }

  hid_t get() const { return id_; }
  bool valid() const { return id_ >= 0; }
  operator hid_t() const { return id_; }  // so that calls read as they do in C
  hid_t release() { return std::exchange(id_, H5I_INVALID_HID); }

  // H5Idec_ref closes every kind of identifier; files closed through it follow their close degree.
  herr_t reset() {
    const hid_t id = release();
    return id > 0 && H5Iis_valid(id) > 0 ? (H5Idec_ref(id) < 0 ? -1 : 0) : 0;
  }

 private:
  hid_t id_ = H5I_INVALID_HID;
};

}  // namespace tidelane::testing
