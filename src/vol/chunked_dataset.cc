#include "vol/chunked_dataset.h"

#include <algorithm>
#include <utility>

#include "vol/transfer_told.h"

namespace tidelane::vol {

namespace {

constexpr size_t kMostFilterValues = 32;

// What a chunk that was never stored reads as; empty where HDF5 leaves the program's memory as it is.
std::vector<std::byte> FillOf(h5::Library& hdf5, hid_t dcpl, hid_t type, size_t element) {
  H5D_fill_time_t time = H5D_FILL_TIME_ERROR;
  H5D_fill_value_t defined = H5D_FILL_VALUE_ERROR;
  if (hdf5.Pget_fill_time(dcpl, &time) < 0 || time == H5D_FILL_TIME_NEVER ||
      hdf5.Pfill_value_defined(dcpl, &defined) < 0 ||
      (defined != H5D_FILL_VALUE_DEFAULT && defined != H5D_FILL_VALUE_USER_DEFINED)) {
    return {};
  }
  std::vector<std::byte> value(element);
  if (hdf5.Pget_fill_value(dcpl, type, value.data()) < 0) value.clear();
  return value;
}

}  // namespace

bool IsPlainType(h5::Library& hdf5, hid_t type) {
  switch (hdf5.Tget_class(type)) {
    case H5T_INTEGER:
    case H5T_FLOAT:
    case H5T_BITFIELD:
    case H5T_OPAQUE:
    case H5T_ENUM: return true;
    case H5T_STRING: return hdf5.Tis_variable_str(type) == 0;
    case H5T_ARRAY: {
      const h5::OwnedId base(hdf5, hdf5.Tget_super(type));
      return base.valid() && IsPlainType(hdf5, base.get());
    }
    case H5T_COMPOUND: {
      const int members = hdf5.Tget_nmembers(type);
      for (int i = 0; i < members; ++i) {
        const h5::OwnedId member(hdf5, hdf5.Tget_member_type(type, static_cast<unsigned>(i)));
        if (!member.valid() || !IsPlainType(hdf5, member.get())) return false;
      }
      return members > 0;
    }
    default: return false;
  }
}

h5::OwnedId AskDataset(Instance& instance, void* dataset, H5VL_dataset_get_t what, hid_t dxpl) {
  H5VL_dataset_get_args_t get{};
  get.op_type = what;
  if (instance.hdf5().native().dataset_cls.get(dataset, &get, dxpl, nullptr) < 0) return {};
  switch (what) {
    case H5VL_DATASET_GET_DAPL: return {instance.hdf5(), get.args.get_dapl.dapl_id};
    case H5VL_DATASET_GET_DCPL: return {instance.hdf5(), get.args.get_dcpl.dcpl_id};
    case H5VL_DATASET_GET_SPACE: return {instance.hdf5(), get.args.get_space.space_id};
    case H5VL_DATASET_GET_TYPE: return {instance.hdf5(), get.args.get_type.type_id};
    case H5VL_DATASET_GET_SPACE_STATUS:
    case H5VL_DATASET_GET_STORAGE_SIZE: break;
  }
  return {};
}

h5::OwnedId CreationListOf(Instance& instance, void* dataset, hid_t type, hid_t dxpl) {
  if (type < 0 || !IsPlainType(instance.hdf5(), type)) return {};
  return AskDataset(instance, dataset, H5VL_DATASET_GET_DCPL, dxpl);
}

std::shared_ptr<const Pipeline> PipelineOf(h5::Library& hdf5, hid_t dcpl, DeflateWith deflate,
                                           Pipeline::Use use) {
  std::vector<FilterSpec> filters(static_cast<size_t>(std::max(hdf5.Pget_nfilters(dcpl), 0)));
  if (filters.empty()) return nullptr;
  for (unsigned i = 0; i < filters.size(); ++i) {
    unsigned flags = 0;
    unsigned values[kMostFilterValues];
    size_t count = kMostFilterValues;
    const H5Z_filter_t id = hdf5.Pget_filter2(dcpl, i, &flags, &count, values, 0, nullptr, nullptr);
    if (id < 0 || count > kMostFilterValues) return nullptr;
    filters[i].id = id;
    filters[i].optional = (flags & H5Z_FLAG_OPTIONAL) != 0;
    filters[i].values.assign(values, values + count);
    if (id >= H5Z_FILTER_RESERVED) {
      filters[i].code = reinterpret_cast<const void*>(hdf5.FilterCode(id));
    }
  }
  std::optional<Pipeline> pipeline = Pipeline::Make(filters, deflate, use);
  if (!pipeline.has_value()) return nullptr;
  return std::make_shared<const Pipeline>(*std::move(pipeline));
}

bool FindChunks(h5::Library& hdf5, hid_t type, hid_t dcpl, ChunkedDataset& found) {
  unsigned options = 0;
  if (!IsPlainType(hdf5, type) || hdf5.Pget_chunk_opts(dcpl, &options) < 0 || options != 0) {
    return false;
  }
  ChunkGrid& grid = found.grid;
  grid.element = hdf5.Tget_size(type);
  grid.rank = hdf5.Pget_chunk(dcpl, kMaxRank, grid.chunk.data());
  if (grid.rank <= 0 || grid.element == 0) return false;
  found.fill =
      std::make_shared<const std::vector<std::byte>>(FillOf(hdf5, dcpl, type, grid.element));
  return true;
}

bool IsStoredInOnePiece(Instance& instance, void* dataset, hid_t dxpl) {
  haddr_t address = HADDR_UNDEF;
  H5VL_native_dataset_optional_args_t ask{};
  ask.get_offset.offset = &address;
  H5VL_optional_args_t args{H5VL_NATIVE_DATASET_GET_OFFSET, &ask};
  return instance.hdf5().native().dataset_cls.optional(dataset, &args, dxpl, nullptr) >= 0 &&
         address != HADDR_UNDEF;
}

bool FindExtent(Instance& instance, void* dataset, hid_t dxpl, ChunkGrid& grid) {
  const h5::OwnedId space = AskDataset(instance, dataset, H5VL_DATASET_GET_SPACE, dxpl);
  if (!space.valid() || instance.hdf5().Sget_simple_extent_dims(space.get(), grid.extent.data(),
                                                                nullptr) != grid.rank) {
    return false;
  }
  const auto end = grid.extent.begin() + grid.rank;
  return std::find(grid.extent.begin(), end, 0u) == end;
}

std::optional<SelectedBox> BoxOf(h5::Library& hdf5, const ChunkGrid& grid, hid_t file_space) {
  if (file_space == h5::kDefault) {
    return SelectedBox{.rank = grid.rank, .extent = grid.extent, .box = {{}, grid.extent}};
  }
  std::optional<SelectedBox> wanted = BoxIn(hdf5, file_space);
  if (!wanted.has_value() || wanted->rank != grid.rank) return std::nullopt;
  const auto end = grid.extent.begin() + grid.rank;
  const bool same = std::equal(grid.extent.begin(), end, wanted->extent.begin());
  return same ? wanted : std::nullopt;
}

bool ChunkAddressesAreTheFiles(h5::Library& hdf5, uint64_t user_block) {
  unsigned major = 0, minor = 0, release = 0;
  if (user_block == 0) return true;
  if (hdf5.get_libversion(&major, &minor, &release) < 0) return false;
  return major > 1 || minor > 14 || release >= 4;
}

std::optional<uint64_t> ChunkCacheOf(Instance& instance, void* dataset, hid_t dxpl) {
  const h5::OwnedId dapl = AskDataset(instance, dataset, H5VL_DATASET_GET_DAPL, dxpl);
  size_t slots = 0, bytes = 0;
  double preempt = 0;
  if (!dapl.valid() || instance.hdf5().Pget_chunk_cache(dapl.get(), &slots, &bytes, &preempt) < 0) {
    return std::nullopt;
  }
  return bytes;
}

bool IsUnconverted(Instance& instance, void* dataset, hid_t memory_type, hid_t dxpl) {
  h5::Library& hdf5 = instance.hdf5();
  if (hdf5.Iget_type(memory_type) != H5I_DATATYPE) return false;
  const h5::OwnedId type = AskDataset(instance, dataset, H5VL_DATASET_GET_TYPE, dxpl);
  return type.valid() && hdf5.Tequal(type.get(), memory_type) > 0;
}

bool IsPlainTransfer(Instance& instance, hid_t dxpl) {
  return dxpl == instance.default_dxpl || AsksForDefaults(instance, dxpl);
}

}  // namespace tidelane::vol
