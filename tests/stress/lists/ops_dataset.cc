// Operations for the sake of dataset lists: growth that is told at a boundary, a filter that a write cannot pass.
#include <algorithm>

#include "stress/lists/lists.h"
#include "stress/lists/own_filter.h"
#include "stress/side.h"

namespace tidelane::stress::lists {
namespace {

herr_t note_append(hid_t, hsize_t*, void* heard) {
  ++static_cast<Heard*>(heard)->appends;
  return 0;
}

bool plan_append(Rng& rng, const Catalog& catalog, Op& op) {
  if (!pick_dataset(rng, catalog, op, true)) return false;
  const Dataset& d = op.dataset;
  if (!d.extendable || d.elements() > 20000 || d.elements() == 0) return false;
  op.variant = static_cast<int>(rng.below(static_cast<uint64_t>(d.rank)));  // along which dimension
  const hsize_t rows = rng.between(1, d.rank == 1 ? 200 : 6);
  op.dims = d.dims;
  op.dims[op.variant] += rows;
  op.selection = Selection{};
  op.selection.shape = Selection::Shape::Hyperslab;
  op.selection.rank = d.rank;
  for (int i = 0; i < d.rank; ++i) op.selection.block[i] = i == op.variant ? rows : d.dims[i];
  op.selection.start[op.variant] = d.dims[op.variant];
  op.selection.stride = op.selection.block;
  op.mem = memory_for(d.kind, rng.next());
  op.note = std::to_string(rows) + " rows";
  return true;
}

void append(const Op& op, hid_t dset, Outcome& out) {
  if (!out.call("H5Dset_extent", H5Dset_extent(dset, op.dims.data()))) return;
  const Hid space(H5Dget_space(dset));
  size_t elements = 0;
  if (!op.selection.apply(space)) {
    out.call("selection fits", -1);
    return;
  }
  const auto selected = static_cast<size_t>(H5Sget_select_npoints(space));
  const Hid memory = op.selection.memory_space(selected, &elements);
  Buffer buffer(op.mem, elements);
  buffer.fill(op.data_seed);
  out.call("H5Dwrite of new rows",
           H5Dwrite(dset, memory_type(op.mem), memory, space, H5P_DEFAULT, buffer.data()));
}

// As H5DOappend of HDF5's high-level library does it: the list that the library keeps says where, and whom to tell.
void run_append(Side& side, const Op& op, Outcome& out) {
  side.close_dataset(op.file, op.path);
  Rng rng = stream(op.data_seed, 10);
  const Hid dapl(H5Pcreate(H5P_DATASET_ACCESS));
  H5Pset_efile_prefix(dapl, "${ORIGIN}");
  Dims boundary{};
  for (int i = 0; i < op.dataset.rank; ++i) boundary[i] = rng.chance(30) ? 0 : rng.between(1, 4);
  if (rng.chance(80)) {
    H5Pset_append_flush(dapl, static_cast<unsigned>(op.dataset.rank), boundary.data(), note_append,
                        &side.heard());
  }
  if (rng.chance(50)) H5Pset_chunk_cache(dapl, 11, rng.below(4) * 8192, 0.5);
  const Hid dset(H5Dopen2(side.file(op.file), op.path.c_str(), dapl));
  if (!out.call("H5Dopen", dset)) return;
  describe_access(dset, out);
  append(op, dset, out);
  if (!out.ok) return;
  const Hid kept(H5Dget_access_plist(dset));
  H5D_append_cb_t tell = nullptr;
  void* data = nullptr;
  H5Pget_append_flush(kept, 3, boundary.data(), &tell, &data);
  const hsize_t each = boundary[op.variant];
  if (tell == nullptr || each == 0 || op.dims[op.variant] % each != 0) return;
  Dims dims = op.dims;
  out.call("callback at the boundary", tell(dset, dims.data(), data));
  out.call("H5Dflush", H5Dflush(dset));
}

void commit_append(Catalog& catalog, const Op& op) {
  for (Dataset& d : catalog.files[op.file].datasets) {
    if (d.path == op.path) d.dims = op.dims;
  }
}

bool plan_refusing(Rng& rng, const Catalog& catalog, Op& op) {
  op.path = "/refused";
  op.dims[0] = rng.between(1, 6);
  return pick_open_file(rng, catalog, op, true);
}

// No chunk stays in the cache, so it is the write that fails, and not whichever call flushes.
void run_refusing(Side& side, const Op& op, Outcome& out) {
  constexpr hsize_t kChunk = 500;
  static const herr_t registered = H5Zregister(&kOwnFilterClass);
  out.call("H5Zregister", registered);
  const hsize_t elements = op.dims[0] * kChunk;
  const Hid dcpl(H5Pcreate(H5P_DATASET_CREATE));
  const unsigned values[2] = {static_cast<unsigned>(op.data_seed >> 8 & 1), 1};
  H5Pset_chunk(dcpl, 1, &kChunk);
  if ((op.data_seed & 4) != 0) H5Pset_deflate(dcpl, 4);
  H5Pset_filter(dcpl, kOwnFilter, H5Z_FLAG_MANDATORY, 2, values);
  if ((op.data_seed & 8) != 0) H5Pset_fletcher32(dcpl);
  const Hid dapl(H5Pcreate(H5P_DATASET_ACCESS));
  H5Pset_chunk_cache(dapl, 1, 0, 0);
  const Hid space(H5Screate_simple(1, &elements, nullptr));
  const hid_t file = side.file(op.file);
  Hid dset(H5Dcreate2(file, op.path.c_str(), H5T_STD_I32LE, space, H5P_DEFAULT, dcpl, dapl));
  if (!out.call("H5Dcreate", dset)) return;
  Buffer buffer(Mem::I32, elements);
  buffer.fill(op.data_seed);
  out.call("H5Dwrite through a filter that refuses",
           H5Dwrite(dset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, buffer.data()));
  buffer.prepare_for_read();
  if (out.call("H5Dread",
               H5Dread(dset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, buffer.data()))) {
    out.bytes("read by H5Dread", buffer.take());
  }
  out.call("H5Dclose", dset.reset());
  out.call("H5Ldelete", H5Ldelete(file, op.path.c_str(), H5P_DEFAULT));
}

constexpr OpRow kRows[] = {
    {"append", 25, plan_append, run_append, commit_append},
    {"refusing", 8, plan_refusing, run_refusing, nullptr},
};

}  // namespace

std::span<const OpRow> dataset_ops() {
  return asked_for('d') && asked_for('a') ? std::span<const OpRow>(kRows)
                                          : std::span<const OpRow>();
}

}  // namespace tidelane::stress::lists
