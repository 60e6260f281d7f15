#include "stress/lists.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <functional>

namespace tidelane::stress::lists {
namespace {

// Of which kinds: transfer lists x, access lists of datasets a and files f, creation lists of files c and datasets d.
bool asked_for(char kind) {
  static const char* const kinds = std::getenv("STRESS_LISTS");
  return kinds != nullptr && std::strchr(kinds, kind) != nullptr;
}

// Another stream than the operation's own choices are drawn from.
Rng stream(uint64_t seed, uint64_t which) {
  return Rng(seed * 0x2545f4914f6cdd1dULL + which * 0x9e3779b97f4a7c15ULL);
}

void* allocate(size_t size, void* calls) {
  ++static_cast<Calls*>(calls)->allocations;
  return std::malloc(size);  // H5free_memory is free()
}
void release(void* memory, void*) { std::free(memory); }

H5T_conv_ret_t converted(H5T_conv_except_t, hid_t, hid_t, void*, void*, void* calls) {
  ++static_cast<Calls*>(calls)->conversions;
  return H5T_CONV_UNHANDLED;
}

H5Z_cb_return_t filter_failed(H5Z_filter_t, void*, size_t, void*) { return H5Z_CB_FAIL; }

// HDF5 refuses a transform of what is no number only when it has converted the elements, and then forgets the strings that it
// made for a read (H5D__scatgath_read), and the chunk that its cache did not take (H5D__chunk_read, H5D__chunk_write).
bool may_transform(const Op& op) {
  const bool number = op.mem <= Mem::F64;
  return number || (op.mem == Mem::Compound && op.dataset.layout != Layout::Chunked);
}

void draw_conversion(hid_t dxpl, const Op& op, Rng& rng) {
  static constexpr size_t buffers[] = {1024, 4096, 65536, 1 << 20, 8 << 20};
  if (rng.chance(25)) H5Pset_buffer(dxpl, buffers[rng.below(5)], nullptr, nullptr);
  if (rng.chance(20)) H5Pset_preserve(dxpl, rng.chance(50));
  if (rng.chance(8) && may_transform(op))
    H5Pset_data_transform(dxpl, rng.chance(50) ? "x+1" : "x*2");
  if (rng.chance(20)) H5Pset_modify_write_buf(dxpl, rng.chance(50));
}

void draw_ways(hid_t dxpl, Rng& rng) {
  static constexpr size_t vectors[] = {1, 7, 64, 1024, 8192};
  if (rng.chance(25)) H5Pset_hyper_vector_size(dxpl, vectors[rng.below(5)]);
  if (rng.chance(20)) H5Pset_btree_ratios(dxpl, 0.2, 0.5, 0.8);
  if (rng.chance(25)) H5Pset_edc_check(dxpl, rng.chance(50) ? H5Z_DISABLE_EDC : H5Z_ENABLE_EDC);
  if (rng.chance(30)) {
    static constexpr H5D_selection_io_mode_t modes[] = {
        H5D_SELECTION_IO_MODE_DEFAULT, H5D_SELECTION_IO_MODE_OFF, H5D_SELECTION_IO_MODE_ON};
    H5Pset_selection_io(dxpl, modes[rng.below(3)]);
  }
  if (rng.chance(20)) H5Pset_filter_callback(dxpl, filter_failed, nullptr);
}

}  // namespace

Hid transfer(const Op& op, Calls& calls) {
  if (!asked_for('x')) return Hid(H5P_DEFAULT);
  Rng rng = stream(op.data_seed, 1);
  if (rng.chance(15)) return Hid(H5P_DEFAULT);
  Hid dxpl(
      H5Pcreate(H5P_DATASET_XFER));  // 1 in 10: with nothing in it, and yet not the default one
  if (rng.chance(10)) return dxpl;
  draw_conversion(dxpl, op, rng);
  draw_ways(dxpl, rng);
  // When callbacks of an asynchronous call run, and how long what they are given lives, is not ours to compare.
  if (op.async || op.row->name == std::string("multi")) return dxpl;
  if (rng.chance(30)) H5Pset_vlen_mem_manager(dxpl, allocate, &calls, release, &calls);
  if (rng.chance(30)) H5Pset_type_conv_cb(dxpl, converted, &calls);
  return dxpl;
}

Hid dataset_access(const std::string& path) {
  if (!asked_for('a')) return Hid(H5P_DEFAULT);
  Rng rng = stream(std::hash<std::string>{}(path), 2);
  Hid dapl(H5Pcreate(H5P_DATASET_ACCESS));
  static constexpr size_t caches[] = {0, 4096, 65536, 1 << 20, 16 << 20};
  static constexpr double preemptions[] = {0.0, 0.5, 1.0};
  if (rng.chance(50)) {
    H5Pset_chunk_cache(dapl, rng.chance(50) ? 1 : 521, caches[rng.below(5)],
                       preemptions[rng.below(3)]);
  }
  H5Pset_efile_prefix(dapl, "${ORIGIN}");
  if (rng.chance(20)) H5Pset_virtual_prefix(dapl, "${ORIGIN}");
  if (rng.chance(20)) H5Pset_virtual_view(dapl, H5D_VDS_FIRST_MISSING);
  return dapl;
}

void more_access(hid_t fapl, uint64_t seed) {
  if (!asked_for('f') || seed == 0) return;
  Rng rng = stream(seed, 3);
  if (rng.chance(25)) H5Pset_meta_block_size(fapl, static_cast<hsize_t>(512) << rng.below(8));
  if (rng.chance(25)) H5Pset_small_data_block_size(fapl, static_cast<hsize_t>(512) << rng.below(8));
  if (rng.chance(25)) H5Pset_cache(fapl, 0, 101, rng.chance(50) ? 0 : 65536, 1.0);
  if (rng.chance(20)) H5Pset_gc_references(fapl, 1);
  if (rng.chance(25)) {
    H5AC_cache_config_t config{};
    config.version = H5AC__CURR_CACHE_CONFIG_VERSION;
    H5Pget_mdc_config(fapl, &config);
    config.set_initial_size = true;
    config.initial_size = config.min_size = 16384;
    config.max_size = 65536;
    H5Pset_mdc_config(fapl, &config);
  }
}

void more_creation(hid_t fcpl, uint64_t seed) {
  if (!asked_for('c') || seed == 0) return;
  Rng rng = stream(seed, 4);
  // Never other sizes of addresses and lengths: native HDF5 1.14 soon writes beyond its buffers.
  if (rng.chance(25))
    H5Pset_sym_k(fcpl, 2 + static_cast<unsigned>(rng.below(30)),
                 2 + static_cast<unsigned>(rng.below(8)));
  if (rng.chance(25)) H5Pset_istore_k(fcpl, 1 + static_cast<unsigned>(rng.below(64)));
  // Never shared messages: native HDF5 1.14 soon follows stale pointers (H5SM_delete). Nor yet external
  // files below: h5diff failed on natively made ones here, and why is not known.
  if (rng.chance(20))
    H5Pset_link_creation_order(fcpl, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
}

void more_dataset_creation(hid_t dcpl, const Dataset& dataset, uint64_t seed) {
  if (!asked_for('d')) return;
  Rng rng = stream(seed, 5);
  const bool numbers = dataset.kind != Kind::VlString && dataset.kind != Kind::Compound;
  if (dataset.layout == Layout::Chunked && rng.chance(25)) {
    H5Pset_chunk_opts(dcpl, H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS);
  }
  if (dataset.filtered() && numbers && rng.chance(10)) H5Pset_nbit(dcpl);
  if (rng.chance(30)) H5Pset_attr_phase_change(dcpl, static_cast<unsigned>(rng.below(3)), 0);
  if (rng.chance(30)) H5Pset_attr_creation_order(dcpl, H5P_CRT_ORDER_TRACKED);
  if (rng.chance(30)) H5Pset_obj_track_times(dcpl, rng.chance(50));
  if (dataset.fill != 2 && rng.chance(20)) H5Pset_fill_time(dcpl, H5D_FILL_TIME_ALLOC);
}

herr_t read_chunk(hid_t dset, hid_t dxpl, const hsize_t* offset, uint32_t* mask, void* buffer) {
  using ReadChunk = herr_t (*)(hid_t, hid_t, const hsize_t*, uint32_t*, void*);
  static const auto function = [] {
    void* const first = dlsym(RTLD_DEFAULT, "H5Dread_chunk");
    return reinterpret_cast<ReadChunk>(first != nullptr ? first
                                                        : dlsym(RTLD_DEFAULT, "H5Dread_chunk1"));
  }();
  return function == nullptr ? -1 : function(dset, dxpl, offset, mask, buffer);
}

}  // namespace tidelane::stress::lists
