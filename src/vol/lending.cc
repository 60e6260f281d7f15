#include "vol/lending.h"

#include "h5/owned_id.h"
#include "vol/find_file.h"

namespace tidelane::vol {

namespace {

h5::OwnedId SpaceOf(Instance& instance, void* dataset) {
  H5VL_dataset_get_args_t get{};
  get.op_type = H5VL_DATASET_GET_SPACE;
  const auto native = instance.hdf5().native().dataset_cls.get;
  if (native(dataset, &get, instance.default_dxpl, nullptr) < 0) return {};
  return {instance.hdf5(), get.args.get_space.space_id};
}

// The whole extent of the memory space, selected or not: the buffer is at least so long.
uint64_t BufferBytes(Instance& instance, const Writing& writing) {
  h5::Library& hdf5 = instance.hdf5();
  hid_t space = writing.memory_space == h5::kDefault ? writing.file_space : writing.memory_space;
  h5::OwnedId own;
  if (space == h5::kDefault) {
    own = SpaceOf(instance, writing.dataset);
    space = own.get();
  }
  // H5S_BLOCK and H5S_PLIST are small numbers, too: no extent says how long such a buffer is.
  constexpr hid_t kSpecialIds = 2;
  if (space <= kSpecialIds) return 0;
  const hssize_t elements = hdf5.Sget_simple_extent_npoints(space);
  return elements <= 0 ? 0 : static_cast<uint64_t>(elements) * hdf5.Tget_size(writing.memory_type);
}

uint64_t CopyLimit(Instance& instance, const Writing& writing, const Transfer& transfer) {
  if (transfer.copy_limit.has_value()) return *transfer.copy_limit;
  if (!instance.limits_copies) return UINT64_MAX;
  const std::shared_ptr<File> file = FileOf(instance, writing.dataset, H5I_DATASET);
  return file == nullptr ? UINT64_MAX : file->settings().copy_limit;
}

}  // namespace

uint64_t BytesToLend(Instance& instance, const Writing& writing, const Transfer& transfer) {
  if (instance.requests.any_failed()) return 0;
  const uint64_t limit = CopyLimit(instance, writing, transfer);
  if (limit == UINT64_MAX) return 0;
  const uint64_t bytes = BufferBytes(instance, writing);
  return bytes > limit ? bytes : 0;
}

}  // namespace tidelane::vol
