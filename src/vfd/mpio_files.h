/// \file
/// Files of MPI's driver of which some callbacks are ours: HDF5's class pointer leads to our copy of the driver's class, and so to all that we
/// know of the file.
///
/// Invariant: a file is in the list from when its class pointer is replaced until it is put back.
/// Thread safety: under HDF5's lock.
#pragma once

#include <memory>
#include <utility>

#include "h5/hdf5.h"
#include "h5/library.h"

namespace tidelane::vfd {

/// Lives as long as its file is open.
template <typename File>
struct MpioFile {
  H5FD_class_t driver;  // first
  const H5FD_class_t* native;
  h5::Library* library;
  H5FD_t* pub;
  std::shared_ptr<File> file;
  MpioFile* next = nullptr;

  MpioFile(H5FD_t* opened, h5::Library& with, std::shared_ptr<File> known)
      : driver(*opened->cls),
        native(opened->cls),
        library(&with),
        pub(opened),
        file(std::move(known)) {}

  static MpioFile& Of(H5FD_t* pub) {
    return *reinterpret_cast<MpioFile*>(const_cast<H5FD_class_t*>(pub->cls));
  }
};

/// Those of each copy of HDF5 in the process.
template <typename File>
struct MpioFiles {
  MpioFile<File>* first[h5::kSlots] = {};

  /// From now on the file's callbacks are those of `file->driver`.
  void Put(std::unique_ptr<MpioFile<File>> file) {
    MpioFile<File>*& slot = first[file->library->slot()];
    file->next = std::exchange(slot, file.get());
    H5FD_t* const pub = file->pub;
    pub->cls = &file.release()->driver;
  }
  /// The file is closed; its class pointer is the caller's to put back.
  std::unique_ptr<MpioFile<File>> Take(H5FD_t* pub) {
    std::unique_ptr<MpioFile<File>> file(&MpioFile<File>::Of(pub));
    MpioFile<File>** at = &first[file->library->slot()];
    while (*at != file.get()) at = &(*at)->next;
    *at = file->next;
    return file;
  }
  bool Any(int slot) const { return first[slot] != nullptr; }
  /// By HDF5's serial number of the file; nullptr: it is none of these.
  std::shared_ptr<File> WithSerial(int slot, unsigned long serial) const {
    for (const MpioFile<File>* at = first[slot]; at != nullptr; at = at->next) {
      if (at->pub->fileno == serial) return at->file;
    }
    return nullptr;
  }
};

}  // namespace tidelane::vfd
