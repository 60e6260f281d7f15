/// \file
/// An HDF5 id that is given back when it goes out of scope.
///
/// Invariant: one reference, released once. Releasing is a public HDF5 call, which clears the error
/// stack: after a failed native call make a KeepErrorStack (h5/error.h) that outlives the id.
/// Thread safety: used inside callbacks, under HDF5's lock.
#pragma once

#include <utility>

#include "h5/library.h"

namespace tidelane::h5 {

class OwnedId {
 public:
  OwnedId() = default;
  OwnedId(Library& library, hid_t id) : library_(&library), id_(id) {}
  OwnedId(OwnedId&& other) noexcept : library_(other.library_), id_(other.Release()) {}
  OwnedId& operator=(OwnedId&& other) noexcept {
    if (this != &other) {
      Reset();
      library_ = other.library_;
      id_ = other.Release();
    }
    return *this;
  }
  ~OwnedId() { Reset(); }

  bool valid() const { return id_ >= 0; }
  hid_t get() const { return id_; }
  hid_t Release() { return std::exchange(id_, kNoId); }
  void Reset() {
    if (id_ >= 0) library_->Idec_ref(Release());
  }

 private:
  Library* library_ = nullptr;
  hid_t id_ = kNoId;
};

}  // namespace tidelane::h5
