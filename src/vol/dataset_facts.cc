#include "vol/dataset_facts.h"

#include <algorithm>
#include <utility>

#include "h5/driver.h"
#include "h5/error.h"
#include "h5/parallel_driver.h"
#include "h5/parallel_reading.h"
#include "vol/call_inside.h"

namespace tidelane::vol {

namespace {

constexpr size_t kMostFilterValues = 32;

bool Fills(h5::Library& hdf5, hid_t dcpl) {
  H5D_fill_time_t time = H5D_FILL_TIME_ERROR;
  H5D_fill_value_t defined = H5D_FILL_VALUE_ERROR;
  return hdf5.Pget_fill_time(dcpl, &time) >= 0 && time != H5D_FILL_TIME_NEVER &&
         hdf5.Pfill_value_defined(dcpl, &defined) >= 0 &&
         (defined == H5D_FILL_VALUE_DEFAULT || defined == H5D_FILL_VALUE_USER_DEFINED);
}

// What a chunk that was never stored reads as; empty where HDF5 leaves the program's memory as it is.
std::vector<std::byte> FillOf(h5::Library& hdf5, hid_t dcpl, hid_t type, size_t element) {
  std::vector<std::byte> value(element);
  if (hdf5.Pget_fill_value(dcpl, type, value.data()) < 0) value.clear();
  return value;
}

std::optional<std::vector<FilterSpec>> FiltersOf(h5::Library& hdf5, hid_t dcpl) {
  const int count = hdf5.Pget_nfilters(dcpl);
  if (count < 0) return std::nullopt;
  std::vector<FilterSpec> filters(static_cast<size_t>(count));
  for (unsigned i = 0; i < filters.size(); ++i) {
    unsigned flags = 0;
    unsigned values[kMostFilterValues];
    size_t values_count = kMostFilterValues;
    const H5Z_filter_t id =
        hdf5.Pget_filter2(dcpl, i, &flags, &values_count, values, 0, nullptr, nullptr);
    if (id < 0 || values_count > kMostFilterValues) return std::nullopt;
    filters[i].id = id;
    filters[i].optional = (flags & H5Z_FLAG_OPTIONAL) != 0;
    filters[i].values.assign(values, values + values_count);
    if (id >= H5Z_FILTER_RESERVED) {
      filters[i].code = reinterpret_cast<const void*>(hdf5.FilterCode(id));
    }
  }
  return filters;
}

std::optional<uint64_t> ChunkCacheOf(LibraryState& library, void* dataset) {
  const h5::OwnedId dapl =
      AskDataset(library, dataset, H5VL_DATASET_GET_DAPL, library.default_dxpl);
  size_t slots = 0, bytes = 0;
  double preempt = 0;
  if (!dapl.valid() || library.hdf5().Pget_chunk_cache(dapl.get(), &slots, &bytes, &preempt) < 0) {
    return std::nullopt;
  }
  return bytes;
}

void AskChunks(LibraryState& library, void* dataset, hid_t type, hid_t dcpl, DatasetFacts& facts) {
  h5::Library& hdf5 = library.hdf5();
  facts.filters = FiltersOf(hdf5, dcpl);
  facts.cache_bytes = ChunkCacheOf(library, dataset);
  unsigned options = 0;
  facts.whole_edges = hdf5.Pget_chunk_opts(dcpl, &options) >= 0 && options == 0;
  facts.grid.element = hdf5.Tget_size(type);
  facts.grid.rank = std::max(hdf5.Pget_chunk(dcpl, kMaxRank, facts.grid.chunk.data()), 0);
  if (facts.grid.rank == 0 || facts.grid.element == 0) return;
  facts.fill = std::make_shared<const std::vector<std::byte>>(
      facts.fills ? FillOf(hdf5, dcpl, type, facts.grid.element) : std::vector<std::byte>());
}

// HDF5 makes the list of a dataset anew for each question and converts the fill value for it: in a variable-length type, through
// a pointer to the file that dangles once another opening of the file has been closed. It uses what the call in progress knows
// of its transfer list: this is asked aside.
void AskHowItWasMade(LibraryState& library, void* dataset, hid_t type, DatasetFacts& facts) {
  h5::Library& hdf5 = library.hdf5();
  const h5::OwnedId dcpl =
      AskDataset(library, dataset, H5VL_DATASET_GET_DCPL, library.default_dxpl);
  if (!dcpl.valid()) return;
  facts.external = hdf5.Pget_external_count(dcpl.get()) != 0;
  facts.fills = Fills(hdf5, dcpl.get());
  if (hdf5.Pget_alloc_time(dcpl.get(), &facts.alloc_time) < 0)
    facts.alloc_time = H5D_ALLOC_TIME_ERROR;
  const H5D_layout_t layout = hdf5.Pget_layout(dcpl.get());
  if (layout == H5D_CHUNKED) AskChunks(library, dataset, type, dcpl.get(), facts);
  facts.layout = layout;
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

h5::OwnedId AskDataset(LibraryState& library, void* dataset, H5VL_dataset_get_t what, hid_t dxpl) {
  H5VL_dataset_get_args_t get{};
  get.op_type = what;
  if (library.hdf5().native().dataset_cls.get(dataset, &get, dxpl, nullptr) < 0) return {};
  switch (what) {
    case H5VL_DATASET_GET_DAPL: return {library.hdf5(), get.args.get_dapl.dapl_id};
    case H5VL_DATASET_GET_DCPL: return {library.hdf5(), get.args.get_dcpl.dcpl_id};
    case H5VL_DATASET_GET_SPACE: return {library.hdf5(), get.args.get_space.space_id};
    case H5VL_DATASET_GET_TYPE: return {library.hdf5(), get.args.get_type.type_id};
    case H5VL_DATASET_GET_SPACE_STATUS:
    case H5VL_DATASET_GET_STORAGE_SIZE: break;
  }
  return {};
}

bool IsStoredInOnePiece(LibraryState& library, void* dataset, hid_t dxpl) {
  haddr_t address = HADDR_UNDEF;
  H5VL_native_dataset_optional_args_t ask{};
  ask.get_offset.offset = &address;
  H5VL_optional_args_t args{H5VL_NATIVE_DATASET_GET_OFFSET, &ask};
  return library.hdf5().native().dataset_cls.optional(dataset, &args, dxpl, nullptr) >= 0 &&
         address != HADDR_UNDEF;
}

DatasetFacts AskFacts(LibraryState& library, void* dataset, unsigned long serial, hid_t dxpl,
                      Ask when) {
  DatasetFacts facts;
  h5::Library& hdf5 = library.hdf5();
  const h5::KeepErrorStack keep(hdf5);
  const auto reading = library.parallel_files
                           ? h5::ParallelDriver().reading_with_serial(library.slot, serial)
                           : nullptr;
  if (when == Ask::kLater && library.parallel_files &&
      (reading != nullptr ||
       h5::ParallelDriver().file_with_serial(library.slot, serial) != nullptr)) {
    return facts;
  }
  if (reading != nullptr) {
    facts.of_ranks = true;
    facts.file = reading->file();
    facts.user_block = reading->base_address();
    facts.metadata_together = reading->metadata_together();
  }
  facts.open = h5::Driver().open_with_serial(library.slot, serial);
  if (facts.open != nullptr) {
    const std::shared_ptr<File> file = h5::Driver().file_with_serial(library.slot, serial);
    const h5::AboveDriver above = h5::Driver().above(library.slot, *file);
    facts.file = file;
    facts.user_block = above.base_address;
    facts.page_buffer = above.page_buffer;
  }
  // The id of a committed type HDF5 can only make in the call itself.
  const h5::OwnedId type = AskDataset(library, dataset, H5VL_DATASET_GET_TYPE, dxpl);
  if (!type.valid()) return facts;
  facts.elements = IsPlainType(hdf5, type.get()) ? DatasetFacts::Elements::kPlain
                                                 : DatasetFacts::Elements::kOther;
  facts.committed_type = hdf5.Tcommitted(type.get()) != 0;
  if (facts.elements == DatasetFacts::Elements::kOther) return facts;
  DatasetFacts all = facts;
  const auto ask = [&] { AskHowItWasMade(library, dataset, type.get(), all); };
  return Aside(library, dxpl, ask) ? all : facts;
}

}  // namespace tidelane::vol
