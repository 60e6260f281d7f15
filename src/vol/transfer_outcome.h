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

#include "vol/library_state.h"

namespace tidelane::vol {

// HDF5's names for these differ in age.
inline constexpr uint32_t kNoCallback = 0x8;  ///< H5D_SEL_IO_NO_VECTOR_OR_SELECTION_IO_CB
inline constexpr uint32_t kFiltered = 0x20;   ///< H5D_SEL_IO_DATASET_FILTER
inline constexpr uint32_t kCached = 0x40;     ///< H5D_SEL_IO_CHUNK_CACHE
inline constexpr uint32_t kSmallBuffers =
    0x180;  ///< H5D_SEL_IO_TCONV_BUF_TOO_SMALL, …_BKG_BUF_TOO_SMALL
inline constexpr uint32_t kUnknown = 1u << 31;  ///< this libhdf5 does not say; none of its names
inline constexpr uint32_t kDefaultOff = 0x200;  ///< H5D_SEL_IO_DEFAULT_OFF
inline constexpr uint32_t kScalar = 0x1;        ///< H5D_SCALAR_IO
inline constexpr uint32_t kVector = 0x2;        ///< H5D_VECTOR_IO

struct TransferOutcome {
  uint32_t cause = 0;  ///< H5Pget_no_selection_io_cause
  uint32_t mode = 0;   ///< H5Pget_actual_selection_io_mode
  bool operator==(const TransferOutcome&) const = default;
};

/// A transfer that HDF5 did not make came to this.
void SetTransferOutcome(LibraryState& library, hid_t dxpl, const TransferOutcome& told);
/// One did that transferred nothing, of which HDF5 says no more than that.
void SetNoTransfer(LibraryState& library, hid_t dxpl);

namespace internal {
uint32_t SetOutcomeAsWithSec2(LibraryState& library, void* dataset);
}

/// After a native transfer of a dataset, within the call that made it. Our driver takes many pieces in one call, which HDF5 notes;
/// sec2 does not, and the program is to find what it would find with sec2. Not what follows from the
/// sieve buffer that such a dataset might have had.
/// Returns the causes that HDF5 noted, with our driver, for making it piece by piece; 0 also for the default list, of which it notes none.
inline uint32_t SetOutcomeAsWithSec2(LibraryState& library, void* dataset, hid_t dxpl) {
  return dxpl != library.default_dxpl ? internal::SetOutcomeAsWithSec2(library, dataset) : 0;
}

/// Whether a contiguous dataset may have a sieve buffer since a transfer that was made for `causes`.
inline bool MayHaveSieved(uint32_t causes, size_t datasets) {
  return causes != 0 && (datasets > 1 || (causes & (kFiltered | kCached)) == 0);
}

/// Whether `dxpl`, not the default list, asks for the same as that one.
bool AsksForDefaults(LibraryState& library, hid_t dxpl);

}  // namespace tidelane::vol
