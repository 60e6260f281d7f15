#include "vol/sieve_store.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "h5/error.h"
#include "h5/owned_id.h"
#include "vol/call_inside.h"
#include "vol/dataset_facts.h"
#include "vol/element_storage.h"
#include "vol/selection_io_choice.h"

namespace tidelane::vol {

namespace {

// In memory a reference that is no mere address holds its file open, and HDF5 would make an id for that where there is none.
bool MayBeRead(h5::Library& hdf5, hid_t type) {
  if (hdf5.Tdetect_class(type, H5T_REFERENCE) == 0) return true;
  return hdf5.Tget_class(type) == H5T_REFERENCE && hdf5.Tget_size(type) == sizeof(hobj_ref_t);
}

bool ReadElement(LibraryState& library, void* dataset, hid_t type, hid_t space, const hsize_t* at,
                 int rank) {
  h5::Library& hdf5 = library.hdf5();
  hsize_t ones[H5S_MAX_RANK];
  std::fill_n(ones, rank, 1);
  const h5::OwnedId memory(hdf5, hdf5.Screate_simple(1, ones, nullptr));
  const std::unique_ptr<std::byte[]> element(new (std::nothrow) std::byte[hdf5.Tget_size(type)]);
  if (element == nullptr || !memory.valid() ||
      hdf5.Sselect_hyperslab(space, H5S_SELECT_SET, at, nullptr, ones, nullptr) < 0) {
    return false;
  }
  hid_t memory_id = memory.get();
  void* to = element.get();
  if (hdf5.native().dataset_cls.read(1, &dataset, &type, &memory_id, &space, library.default_dxpl,
                                     &to, nullptr) < 0) {
    return false;
  }
  if (!IsPlainType(hdf5, type)) hdf5.Treclaim(type, memory_id, library.default_dxpl, to);
  return true;
}

// False: it may still hold something.
bool StoreSieve(LibraryState& library, void* dataset) {
  h5::Library& hdf5 = library.hdf5();
  if (AddressOf(library, dataset) == HADDR_UNDEF) return true;  // no others have such a buffer
  const hid_t dxpl = library.default_dxpl;
  const h5::OwnedId type = AskDataset(library, dataset, H5VL_DATASET_GET_TYPE, dxpl);
  const h5::OwnedId space = AskDataset(library, dataset, H5VL_DATASET_GET_SPACE, dxpl);
  hsize_t at[H5S_MAX_RANK];
  const int rank = space.valid() ? hdf5.Sget_simple_extent_dims(space.get(), at, nullptr) : -1;
  // A single element, or none, lies in a sieve whole.
  if (rank == 0 || std::count(at, at + std::max(rank, 0), 0) != 0) return true;
  if (rank < 0 || !type.valid() || !MayBeRead(hdf5, type.get())) return false;
  std::for_each(at, at + rank, [](hsize_t& size) { --size; });
  // The last one first: to read the first, HDF5 reads a whole window where it has to move it.
  const bool last = ReadElement(library, dataset, type.get(), space.get(), at, rank);
  std::fill_n(at, rank, 0);
  return ReadElement(library, dataset, type.get(), space.get(), at, rank) && last;
}

struct OpenDatasets {
  h5::Library& hdf5;
  std::vector<void*> found;

  herr_t See(hid_t id) {
    // Whatever connectors are above: HDF5 gives what is below all of them.
    hbool_t native = false;
    if (hdf5.VLobject_is_native(id, &native) < 0 || !native) return 0;
    if (void* const dataset = hdf5.VLobject(id); dataset != nullptr) found.push_back(dataset);
    return 0;
  }
};

std::vector<void*> AllOpen(LibraryState& library) {
  OpenDatasets all{library.hdf5(), {}};
  const auto see = [](hid_t id, void* context) -> herr_t {
    try {  // HDF5's frames between here and there are C's
      return static_cast<OpenDatasets*>(context)->See(id);
    } catch (const std::bad_alloc&) {
      return -1;
    }
  };
  static_cast<void>(library.hdf5().Iiterate(H5I_DATASET, see, &all));
  return std::move(all.found);
}

}  // namespace

void internal::StoreSieves(LibraryState& library, hid_t dxpl) {
  const h5::KeepErrorStack keep(library.hdf5());
  const auto store = [&] {
    // Of those that others have opened nobody says when they are closed: nothing is noted of them.
    if (library.sieve_buffers.unknown) {
      for (void* const dataset : AllOpen(library)) {
        if (MayHaveBuffer(library, dataset)) static_cast<void>(StoreSieve(library, dataset));
      }
    }
    std::vector<void*> left;
    for (void* const dataset : BufferedDatasets(library)) {
      if (!StoreSieve(library, dataset)) left.push_back(dataset);
    }
    NoteHandedOver(library, left);
  };
  static_cast<void>(Aside(library, dxpl, store));
}

}  // namespace tidelane::vol
