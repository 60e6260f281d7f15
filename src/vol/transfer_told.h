/// \file
/// What HDF5 leaves on a program's transfer list after a transfer, for the program to ask: which kind
/// of I/O it was, and why no other.
///
/// While a list is the one of a native call, HDF5 writes to it when the call in progress ends: who tells
/// something asks its own questions with the default one.
///
/// A list that differs from the default one in nothing else is as good as that one.
///
/// Thread safety: used inside callbacks, under HDF5's lock.
#pragma once

#include <cstdint>

#include "vol/instance.h"

namespace tidelane::vol {

// HDF5's names for these differ in age.
inline constexpr uint32_t kFiltered = 0x20;     ///< H5D_SEL_IO_DATASET_FILTER
inline constexpr uint32_t kCached = 0x40;       ///< H5D_SEL_IO_CHUNK_CACHE
inline constexpr uint32_t kDefaultOff = 0x200;  ///< H5D_SEL_IO_DEFAULT_OFF
inline constexpr uint32_t kScalar = 0x1;        ///< H5D_SCALAR_IO

struct Told {
  uint32_t cause = 0;  ///< H5Pget_no_selection_io_cause
  uint32_t mode = 0;   ///< H5Pget_actual_selection_io_mode
  bool operator==(const Told&) const = default;
};

/// A transfer that HDF5 did not make came to this.
void TellTransfer(Instance& instance, hid_t dxpl, const Told& told);

/// Whether `dxpl`, not the default list, asks for the same as that one.
bool AsksForDefaults(Instance& instance, hid_t dxpl);

}  // namespace tidelane::vol
