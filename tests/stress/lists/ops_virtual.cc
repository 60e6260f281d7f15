// Virtual datasets whose sources are found by number (%b): how many blocks there are seen to be is a matter of the access list
// (H5Pset_virtual_view, H5Pset_virtual_printf_gap). Blocks come and go, and never change their shape: see plan_virtual.
#include "stress/lists/lists.h"
#include "stress/side.h"

namespace tidelane::stress::lists {
namespace {

constexpr uint64_t kBlocks = 7;

bool pick_source(Rng& rng, const Catalog& catalog, Op& op) {
  op.other = static_cast<int>(rng.below(2));
  return catalog.files[op.other].open && catalog.files[op.other].writable;
}

bool plan_create(Rng& rng, const Catalog& catalog, Op& op) {
  if (!pick_open_file(rng, catalog, op, true) || !pick_source(rng, catalog, op)) return false;
  if (catalog.files[op.file].printfs.size() >= 3) return false;
  op.path = "/pv" + std::to_string(op.index);
  op.printf = {op.path, op.other, "/ps" + std::to_string(op.index) + "_",
               rng.chance(50) ? Kind::I32LE : Kind::F64LE, rng.between(5, 300)};
  op.variant = static_cast<int>(rng.below(1 << kBlocks));  // which blocks there are at first
  op.path2 = op.other == op.file ? "." : catalog.files[op.other].disk;
  return true;
}

void create_block(Side& side, const Op& op, uint64_t number, Outcome& out) {
  const Printf& from = op.printf;
  const Hid space(H5Screate_simple(1, &from.elements, nullptr));
  const Hid dcpl(H5Pcreate(H5P_DATASET_CREATE));
  const hsize_t chunk = from.elements / 2 + 1;
  if (number % 2 == 1) {
    H5Pset_chunk(dcpl, 1, &chunk);
    H5Pset_shuffle(dcpl);
  }
  const std::string name = from.blocks + std::to_string(number);
  const Hid dset(H5Dcreate2(side.file(from.source_file), name.c_str(), file_type(from.kind), space,
                            H5P_DEFAULT, dcpl, H5P_DEFAULT));
  if (!out.call("H5Dcreate of a block", dset)) return;
  Buffer buffer(Mem::I32, from.elements);
  buffer.fill(op.data_seed + number);
  out.call("H5Dwrite of a block",
           H5Dwrite(dset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, buffer.data()));
}

void run_create(Side& side, const Op& op, Outcome& out) {
  const Printf& from = op.printf;
  for (uint64_t b = 0; b < kBlocks; ++b) {
    if ((op.variant >> b & 1) != 0) create_block(side, op, b, out);
  }
  const hsize_t one = 1, zero = 0, many = H5S_UNLIMITED;
  const Hid block(H5Screate_simple(1, &from.elements, nullptr));
  const Hid space(H5Screate_simple(1, &from.elements, &many));
  const Hid blocks(H5Screate_simple(1, &from.elements, &many));
  H5Sselect_hyperslab(blocks, H5S_SELECT_SET, &zero, &from.elements, &many, &from.elements);
  const Hid dcpl(H5Pcreate(H5P_DATASET_CREATE));
  const int fill = static_cast<int>(one) * 7;
  H5Pset_fill_value(dcpl, H5T_NATIVE_INT, &fill);
  out.call("H5Pset_virtual",
           H5Pset_virtual(dcpl, blocks, op.path2.c_str(), (from.blocks + "%b").c_str(), block));
  const Hid dset(H5Dcreate2(side.file(op.file), op.path.c_str(), file_type(from.kind), space,
                            H5P_DEFAULT, dcpl, H5P_DEFAULT));
  out.call("H5Dcreate", dset);
}

void commit_create(Catalog& catalog, const Op& op) {
  catalog.files[op.file].printfs.push_back(op.printf);
}

bool plan_look(Rng& rng, const Catalog& catalog, Op& op) {
  if (!pick_open_file(rng, catalog, op, false)) return false;
  if (catalog.files[op.file].printfs.empty()) return false;
  op.printf = rng.pick(catalog.files[op.file].printfs);
  op.path = op.printf.path;
  const FileState& source = catalog.files[op.printf.source_file];
  const bool writable = source.open && source.writable;
  op.variant = writable ? static_cast<int>(rng.below(4)) : 0;  // 1: a new block, 2: one goes
  op.dims[0] = rng.below(kBlocks);
  return true;
}

void change_blocks(Side& side, const Op& op, Outcome& out) {
  if (op.variant == 1) create_block(side, op, op.dims[0], out);
  if (op.variant != 2) return;
  const std::string name = op.printf.blocks + std::to_string(op.dims[0]);
  out.call("H5Ldelete of a block",
           H5Ldelete(side.file(op.printf.source_file), name.c_str(), H5P_DEFAULT));
}

void run_look(Side& side, const Op& op, Outcome& out) {
  change_blocks(side, op, out);
  Rng rng = stream(op.data_seed, 11);
  const Hid dapl(H5Pcreate(H5P_DATASET_ACCESS));
  if (rng.chance(50)) H5Pset_virtual_view(dapl, H5D_VDS_FIRST_MISSING);
  if (rng.chance(70)) H5Pset_virtual_printf_gap(dapl, rng.below(5));
  const Hid dset(H5Dopen2(side.file(op.file), op.path.c_str(), dapl));
  if (!out.call("H5Dopen of numbered blocks", dset)) return;
  describe_access(dset, out);
  const std::optional<size_t> elements = elements_of(dset, out);
  if (!elements.has_value()) return;
  Buffer buffer(Mem::F64, *elements);
  buffer.prepare_for_read();
  if (out.call("H5Dread of numbered blocks",
               H5Dread(dset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, buffer.data()))) {
    out.bytes("read by H5Dread", buffer.take());
  }
}

constexpr OpRow kRows[] = {
    {"printf", 6, plan_create, run_create, commit_create},
    {"printf-look", 25, plan_look, run_look, nullptr},
};

}  // namespace

std::span<const OpRow> virtual_ops() {
  return asked_for('a') ? std::span<const OpRow>(kRows) : std::span<const OpRow>();
}

}  // namespace tidelane::stress::lists
