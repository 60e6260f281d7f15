// Creation lists of datasets: fill values of any type, filters of HDF5 and of the program, what object headers hold.
#include "stress/lists/lists.h"
#include "stress/lists/own_filter.h"

namespace tidelane::stress::lists {
namespace {

bool is_number(const Dataset& d) { return d.kind != Kind::VlString && d.kind != Kind::Compound; }

template <typename T>
void fill_with(hid_t dcpl, hid_t type, T value) {
  H5Pset_fill_value(dcpl, type, &value);
}

// The same value in each type: the catalog knows nothing of it.
void draw_fill_of_number(hid_t dcpl, Rng& rng) {
  switch (rng.below(5)) {
    case 0: fill_with<double>(dcpl, H5T_NATIVE_DOUBLE, 42); break;
    case 1: fill_with<int16_t>(dcpl, H5T_NATIVE_SHORT, 42); break;
    case 2: fill_with<int64_t>(dcpl, H5T_NATIVE_LLONG, 42); break;
    case 3: fill_with<uint8_t>(dcpl, H5T_NATIVE_UCHAR, 42); break;
    default: fill_with<uint32_t>(dcpl, H5T_STD_I32BE, 42U << 24); break;
  }
}

void draw_fill(hid_t dcpl, const Dataset& d, Rng& rng) {
  if (d.fill == 1 && rng.chance(40)) draw_fill_of_number(dcpl, rng);
  if (d.fill == 2 && rng.chance(30)) fill_with<int32_t>(dcpl, H5T_NATIVE_INT, 42);
  // Of chunks that there are not yet native HDF5 1.14 reads one and the same string into all elements: whoever gives them back, as
  // h5diff does, frees it twice.
  if (d.kind == Kind::VlString && d.layout != Layout::Chunked && rng.chance(50)) {
    fill_with<const char*>(dcpl, memory_type(Mem::VlString), "filled");
  }
  if (d.kind == Kind::Compound && rng.chance(50)) {
    Buffer buffer(Mem::Compound, 1);
    buffer.fill(42);
    H5Pset_fill_value(dcpl, memory_type(Mem::Compound), buffer.data());
  }
  if (d.fill != 2 && rng.chance(30)) {
    H5Pset_fill_time(dcpl, rng.chance(50) ? H5D_FILL_TIME_ALLOC : H5D_FILL_TIME_IFSET);
  }
}

void add_own_filter(hid_t dcpl, Rng& rng) {
  static const herr_t registered = H5Zregister(&kOwnFilterClass);
  if (registered < 0) return;
  const bool optional = rng.chance(50);
  const unsigned values[2] = {static_cast<unsigned>(rng.below(2)), optional};
  H5Pset_filter(dcpl, kOwnFilter, optional ? H5Z_FLAG_OPTIONAL : H5Z_FLAG_MANDATORY, 2, values);
}

// HDF5 1.14.6 does not read what its scaleoffset has stored in as many bits as the type has (H5Z__filter_scaleoffset: minbits >=),
// which bytes of nobody's would need, and the largest and the smallest of a short type.
bool can_scale(const Dataset& d) {
  const bool wide = d.kind == Kind::I64BE || d.kind == Kind::F64LE;
  return d.fill == 1 && d.alloc_time != H5D_ALLOC_TIME_LATE && wide;
}

bool more_filters(const Dataset& d) { return asked_for('d') && d.filtered() && is_number(d); }

}  // namespace

unsigned deflate_level(uint64_t seed) {
  if (!asked_for('d')) return 1;
  Rng rng = stream(seed, 7);
  return static_cast<unsigned>(rng.chance(60) ? 1 : rng.below(10));
}

void filters_before(hid_t dcpl, const Dataset& dataset, uint64_t seed) {
  Rng rng = stream(seed, 8);
  if (!more_filters(dataset)) return;
  // First, both: what a filter before them has made longer they cut off (H5Z__filter_nbit returns the size that it was told of the
  // buffer, which deflate tells of what it got; H5Z__filter_scaleoffset takes as many elements as a chunk has).
  if (rng.chance(10)) H5Pset_nbit(dcpl);
  if (rng.chance(15) && can_scale(dataset)) {
    const bool real = dataset.kind == Kind::F64LE;
    H5Pset_scaleoffset(dcpl, real ? H5Z_SO_FLOAT_DSCALE : H5Z_SO_INT, real ? 2 : 0);
  }
  if (rng.chance(10)) add_own_filter(dcpl, rng);
}

void filters_after(hid_t dcpl, const Dataset& dataset, uint64_t seed) {
  Rng rng = stream(seed, 9);
  if (!more_filters(dataset)) return;
  if (rng.chance(8)) add_own_filter(dcpl, rng);
}

void more_dataset_creation(hid_t dcpl, const Dataset& dataset, uint64_t seed) {
  if (!asked_for('d')) return;
  Rng rng = stream(seed, 5);
  if (dataset.layout == Layout::Chunked && rng.chance(25)) {
    H5Pset_chunk_opts(dcpl, H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS);
  }
  if (rng.chance(30)) H5Pset_attr_phase_change(dcpl, static_cast<unsigned>(rng.below(3)), 0);
  if (rng.chance(30)) H5Pset_attr_creation_order(dcpl, H5P_CRT_ORDER_TRACKED);
  if (rng.chance(30)) H5Pset_obj_track_times(dcpl, rng.chance(50));
  draw_fill(dcpl, dataset, rng);
}

bool has_more_filters(hid_t dset, const Dataset& dataset) {
  const Hid dcpl(H5Dget_create_plist(dset));
  return H5Pget_nfilters(dcpl) > dataset.deflate + dataset.shuffle + dataset.fletcher;
}

}  // namespace tidelane::stress::lists
