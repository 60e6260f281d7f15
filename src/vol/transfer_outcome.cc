#include "vol/transfer_outcome.h"

#include "h5/error.h"
#include "h5/owned_id.h"
#include "h5/protocol.h"
#include "vol/find_file.h"

namespace tidelane::vol {

namespace {

constexpr const char* kCause = "no_selection_io_cause";
constexpr const char* kMode = "actual_selection_io_mode";  // since HDF5 1.14.3

bool Has(h5::Library& hdf5, hid_t list, const char* name) {
  size_t size = 0;
  return hdf5.Pexist(list, name) > 0 && hdf5.Pget_size(list, name, &size) >= 0 &&
         size == sizeof(uint32_t);
}

TransferOutcome OutcomeOn(h5::Library& hdf5, hid_t list) {
  TransferOutcome told;
  if (!Has(hdf5, list, kCause) || hdf5.Pget(list, kCause, &told.cause) < 0) told.cause = 0;
  if (!Has(hdf5, list, kMode) || hdf5.Pget(list, kMode, &told.mode) < 0) told.mode = 0;
  return told;
}

// Which stream a GPU's copies come after is nothing that HDF5 is asked for. Not valid: the list says nothing of that.
h5::OwnedId WithoutStream(h5::Library& hdf5, hid_t dxpl) {
  if (hdf5.Pexist(dxpl, TL_PROPERTY_GPU_STREAM) <= 0) return {};
  h5::OwnedId rest(hdf5, hdf5.Pcopy(dxpl));
  if (rest.valid() && hdf5.Premove(rest.get(), TL_PROPERTY_GPU_STREAM) < 0) rest.Reset();
  return rest;
}

void Put(h5::Library& hdf5, hid_t list, const TransferOutcome& told) {
  if (Has(hdf5, list, kCause)) hdf5.Pset(list, kCause, &told.cause);
  if (Has(hdf5, list, kMode)) hdf5.Pset(list, kMode, &told.mode);
}

}  // namespace

void SetTransferOutcome(LibraryState& library, hid_t dxpl, const TransferOutcome& told) {
  if (dxpl == library.default_dxpl) return;
  const h5::KeepErrorStack keep(library.hdf5());
  Put(library.hdf5(), dxpl, told);
  // A question that was asked with the same list has HDF5 write to it when this call ends.
  library.hdf5().SetNoted({.cause = told.cause, .mode = told.mode});
}

void SetNoTransfer(LibraryState& library, hid_t dxpl) {
  if (dxpl == library.default_dxpl) return;
  h5::Library& hdf5 = library.hdf5();
  const h5::KeepErrorStack keep(hdf5);
  const uint32_t none = 0;
  if (Has(hdf5, dxpl, kMode)) hdf5.Pset(dxpl, kMode, &none);
}

uint32_t internal::SetOutcomeAsWithSec2(LibraryState& library, void* dataset) {
  h5::Library::Noted noted;
  if (!library.hdf5().GetNoted(noted)) return kUnknown;
  const h5::Library::Noted with_ours = noted;
  if (noted.mode == 0) return with_ours.cause;  // nothing was transferred
  const bool joined = (noted.mode & kVector) != 0;
  if (joined) noted.mode = (noted.mode & ~kVector) | kScalar;
  // A list that leaves the choice to HDF5 gets selection I/O where the driver is one for it.
  const bool chosen_by_driver = noted.wish == H5D_SELECTION_IO_MODE_DEFAULT &&
                                (noted.cause & ~(kSmallBuffers | kNoCallback)) == 0;
  if (chosen_by_driver) {
    noted.cause = kDefaultOff;
  } else if (joined) {
    noted.cause |= kNoCallback;
  }
  const bool same = noted.cause == with_ours.cause && noted.mode == with_ours.mode;
  if (!same && FileOf(library, dataset, H5I_DATASET) != nullptr) library.hdf5().SetNoted(noted);
  return with_ours.cause;
}

bool AsksForDefaults(LibraryState& library, hid_t dxpl) {
  h5::Library& hdf5 = library.hdf5();
  const h5::KeepErrorStack keep(hdf5);
  if (hdf5.Pequal(dxpl, library.default_dxpl) > 0) return true;
  const h5::OwnedId rest = WithoutStream(hdf5, dxpl);
  if (rest.valid()) {
    dxpl = rest.get();
    if (hdf5.Pequal(dxpl, library.default_dxpl) > 0) return true;
  }
  // What earlier transfers with it left there is nothing that it asks for.
  const TransferOutcome told = OutcomeOn(hdf5, dxpl);
  if (told == TransferOutcome()) return false;
  if (library.told_dxpl < 0) library.told_dxpl = hdf5.Pcopy(library.default_dxpl);
  if (library.told_dxpl < 0) return false;
  if (OutcomeOn(hdf5, library.told_dxpl) != told) Put(hdf5, library.told_dxpl, told);
  return hdf5.Pequal(dxpl, library.told_dxpl) > 0;
}

}  // namespace tidelane::vol
