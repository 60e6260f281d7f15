/// \file
/// Files that MPI's driver has open and that are not published yet (h5/parallel_publication.h): what storage refused of them is
/// noted, and their close ends in the publication.
///
/// Thread safety: under HDF5's lock.
#pragma once

#include <memory>
#include <string>

#include "h5/parallel_publication.h"

namespace tidelane::vfd {

/// See h5::ParallelDriverTable::publish.
bool PublishMpio(hid_t driver, void* vfd_handle, std::unique_ptr<h5::ParallelOpening>& opening);
/// See h5::ParallelDriverTable::name_of.
const std::string* PublishedNameOf(int slot, unsigned long serial);

/// What the program calls the file, if it is one of them; else `path`.
const char* ShownName(int slot, const H5FD_t* pub, const char* path);
/// [address, address + size) was taken from the program by others than the driver, or refused.
void NoteWritten(int slot, const H5FD_t* pub, haddr_t address, size_t size, bool stored);
/// Something of it is lost.
void NoteLost(int slot, const H5FD_t* pub);

}  // namespace tidelane::vfd
