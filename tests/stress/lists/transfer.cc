// Transfer lists: memory for conversion, callbacks, ways of going through a selection.
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

#include "stress/lists/lists.h"

namespace tidelane::stress::lists {
namespace {

void* allocate(size_t size, void* calls) {
  ++static_cast<Calls*>(calls)->allocations;
  return std::malloc(size);  // H5free_memory is free()
}
void release(void* memory, void*) { std::free(memory); }

H5T_conv_ret_t leave(H5T_conv_except_t, hid_t, hid_t, void*, void*, void* calls) {
  ++static_cast<Calls*>(calls)->conversions;
  return H5T_CONV_UNHANDLED;
}

H5T_conv_ret_t replace(H5T_conv_except_t what, hid_t, hid_t to, void*, void* element, void* calls) {
  ++static_cast<Calls*>(calls)->conversions;
  std::memset(element, 1 + what, H5Tget_size(to));
  return H5T_CONV_HANDLED;
}

H5T_conv_ret_t give_up(H5T_conv_except_t, hid_t, hid_t, void*, void*, void* calls) {
  return ++static_cast<Calls*>(calls)->conversions < 3 ? H5T_CONV_UNHANDLED : H5T_CONV_ABORT;
}

H5Z_cb_return_t filter_failed(H5Z_filter_t, void*, size_t, void*) { return H5Z_CB_FAIL; }

// HDF5 refuses a transform of what is no number only when it has converted the elements, and forgets the strings that it made
// for a read (H5D__scatgath_read).
bool may_transform(const Op& op) { return op.mem != Mem::VlString; }

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

// Only reads are given up: how many elements a write has written by then depends on the way that HDF5 goes (chunk by chunk, or
// all converted at once where the driver can take selections).
void draw_callbacks(hid_t dxpl, const Op& op, Rng& rng, Calls& calls) {
  static constexpr H5T_conv_except_func_t answers[] = {leave, replace, give_up};
  const bool reads = op.row->name == std::string("read");
  if (rng.chance(30)) H5Pset_vlen_mem_manager(dxpl, allocate, &calls, release, &calls);
  if (rng.chance(40)) H5Pset_type_conv_cb(dxpl, answers[rng.below(reads ? 3 : 2)], &calls);
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
  draw_callbacks(dxpl, op, rng, calls);
  return dxpl;
}

bool extremes(const Op& op) { return asked_for('x') && stream(op.data_seed, 6).chance(25); }

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
