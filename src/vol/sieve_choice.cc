#include "vol/sieve_choice.h"

#include "h5/owned_id.h"

namespace tidelane::vol {

namespace {

// Only contiguous storage has a sieve. Asking costs some microseconds: done last.
bool IsContiguous(Instance& instance, void* dataset, hid_t dxpl) {
  h5::Library& hdf5 = instance.hdf5();
  H5VL_dataset_get_args_t get{};
  get.op_type = H5VL_DATASET_GET_DCPL;
  if (hdf5.native().dataset_cls.get(dataset, &get, dxpl, nullptr) < 0) return false;
  const h5::OwnedId dcpl(hdf5, get.args.get_dcpl.dcpl_id);
  return hdf5.Pget_layout(dcpl.get()) == H5D_CONTIGUOUS;
}

hid_t SieveList(Instance& instance, hid_t dxpl) {
  if (instance.sieve_dxpl >= 0) return instance.sieve_dxpl;
  h5::Library& hdf5 = instance.hdf5();
  h5::OwnedId copy(hdf5, hdf5.Pcopy(dxpl));
  if (!copy.valid() || hdf5.Pset_selection_io(copy.get(), H5D_SELECTION_IO_MODE_OFF) < 0) {
    return dxpl;
  }
  instance.sieve_dxpl = copy.Release();
  return instance.sieve_dxpl;
}

}  // namespace

Runs RunsOfHyperslab(int rank, const hsize_t* extent, const hsize_t* stride, const hsize_t* count,
                     const hsize_t* block) {
  // From the fastest dimension on, a run goes on into the next one as long as the selection covers all of this one.
  uint64_t elements = 1;
  uint64_t runs = 1;
  bool whole = true;
  for (int d = rank - 1; d >= 0; --d) {
    const bool one_piece = count[d] == 1 || stride[d] == block[d];
    if (whole && one_piece) {
      elements *= count[d] * block[d];
    } else if (whole) {
      elements *= block[d];
      runs *= count[d];
    } else {
      runs *= count[d] * block[d];
    }
    whole = whole && one_piece && count[d] * block[d] == extent[d];
  }
  return {runs, elements};
}

Runs RunsOf(h5::Library& hdf5, hid_t file_space) {
  switch (hdf5.Sget_select_type(file_space)) {
    case H5S_SEL_POINTS: {
      const hssize_t points = hdf5.Sget_select_npoints(file_space);
      return points < 0 ? Runs{} : Runs{static_cast<uint64_t>(points), 1};
    }
    case H5S_SEL_HYPERSLABS:
      break;
    default:
      return {};
  }
  hsize_t extent[H5S_MAX_RANK], start[H5S_MAX_RANK], stride[H5S_MAX_RANK], count[H5S_MAX_RANK],
      block[H5S_MAX_RANK];
  // HDF5 recognises a regular selection without walking it, unless it was combined from several.
  if (hdf5.Sis_regular_hyperslab(file_space) <= 0 ||
      hdf5.Sget_regular_hyperslab(file_space, start, stride, count, block) < 0) {
    return {};
  }
  const int rank = hdf5.Sget_simple_extent_dims(file_space, extent, nullptr);
  return rank <= 0 ? Runs{} : RunsOfHyperslab(rank, extent, stride, count, block);
}

hid_t ChooseSieve(Instance& instance, size_t count, void* datasets[], const hid_t memory_types[],
                  const hid_t file_spaces[], hid_t dxpl) {
  if (dxpl != instance.default_dxpl || count != 1 || file_spaces[0] <= h5::kDefault) return dxpl;
  h5::Library& hdf5 = instance.hdf5();
  const Runs runs = RunsOf(hdf5, file_spaces[0]);
  if (runs.count < kSieveFromRuns) return dxpl;
  const size_t element = hdf5.Tget_size(memory_types[0]);
  if (element == 0 || runs.elements_each * element >= kSieveBelowBytes) return dxpl;
  if (!IsContiguous(instance, datasets[0], dxpl)) return dxpl;
  return SieveList(instance, dxpl);
}

}  // namespace tidelane::vol
