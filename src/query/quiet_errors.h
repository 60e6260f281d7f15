/// \file
/// Calls of HDF5 that may fail without anybody being told by HDF5: we say it in words of ours.
///
/// Whoever is called from outside makes one for all that it calls.
///
/// Invariant: what the program had on its error stack, and how it prints one, is as it was. Thread safety: under HDF5's lock.
#pragma once

#include <string>

#include "h5/error.h"
#include "h5/library.h"

namespace tidelane::query {

class QuietErrors {
 public:
  explicit QuietErrors(h5::Library& hdf5) : hdf5_(hdf5), keep_(hdf5) {
    hdf5.Eget_auto2(h5::kDefault, &print_, &context_);
    hdf5.Eset_auto2(h5::kDefault, nullptr, nullptr);
  }
  ~QuietErrors() { hdf5_.Eset_auto2(h5::kDefault, print_, context_); }
  QuietErrors(const QuietErrors&) = delete;
  QuietErrors& operator=(const QuietErrors&) = delete;

 private:
  h5::Library& hdf5_;
  const h5::KeepErrorStack keep_;
  H5E_auto2_t print_ = nullptr;
  void* context_ = nullptr;
};

/// What lies at the bottom of the error stack: why the last call failed.
std::string CauseOf(h5::Library& hdf5);

}  // namespace tidelane::query
