// Operations that move raw data: selections with conversion, several datasets at once, whole chunks.
#include <algorithm>

#include "stress/lists/lists.h"
#include "stress/op.h"
#include "stress/side.h"

namespace tidelane::stress {
namespace {

// What a transfer needs, made from the dataset's present extent.
struct Transfer {
  Hid file_space;
  Hid memory_space;
  Hid type;
  size_t elements = 0;

  bool prepare(hid_t dset, const Selection& selection, Mem mem) {
    file_space = Hid(H5Dget_space(dset));
    if (!selection.apply(file_space)) return false;
    const auto selected = static_cast<size_t>(H5Sget_select_npoints(file_space));
    memory_space = selection.memory_space(selected, &elements);
    type = memory_type(mem);
    return true;
  }
};

bool plan_transfer(Rng& rng, const Catalog& catalog, Op& op, bool writing) {
  // A read-only file refuses writes on both sides: worth doing, but rarely. (Only for H5Dwrite: other
  // calls dirty HDF5's metadata cache before they notice, and the close then fails natively.)
  if (!pick_dataset(rng, catalog, op, writing && !rng.chance(5))) return false;
  op.selection = Selection::draw(rng, op.dataset);
  op.mem = memory_for(op.dataset.kind, rng.next());
  // What is large is mostly read and written as it is: otherwise HDF5 converts, and lanes cannot help.
  if (op.dataset.elements() > 20000 && rng.chance(70)) {
    if (op.dataset.kind == Kind::I32LE) op.mem = Mem::I32;
    if (op.dataset.kind == Kind::F64LE) op.mem = Mem::F64;
    op.selection.strided_memory = false;
  }
  // HDF5 1.14's write through a virtual dataset reads past the caller's buffer when it must convert.
  if (op.dataset.layout == Layout::Virtual) {
    op.mem = op.dataset.kind == Kind::I32LE ? Mem::I32 : Mem::F64;
  }
  op.async = rng.chance(25);
  op.variant = op.async && rng.chance(50) ? 1 : 0;  // 1: the buffer is reused at once
  op.note = op.selection.text() + " of " + name(op.dataset.kind) + ", memory type " +
            std::to_string(static_cast<int>(op.mem));
  return true;
}

bool plan_write(Rng& rng, const Catalog& c, Op& op) { return plan_transfer(rng, c, op, true); }
bool plan_read(Rng& rng, const Catalog& c, Op& op) { return plan_transfer(rng, c, op, false); }

void run_write(Side& side, const Op& op, Outcome& out) {
  const hid_t dset = side.dataset(op.file, op.path, op.async);
  if (!out.call("H5Dopen", dset)) return;
  Transfer t;
  if (!t.prepare(dset, op.selection, op.mem)) {
    out.call("selection fits", -1);
    return;
  }
  Buffer buffer(op.mem, t.elements);
  buffer.fill(op.data_seed);
  if (lists::extremes(op)) buffer.add_extremes();
  lists::Calls calls;
  const Hid dxpl = lists::transfer(op, calls);
  if (!op.async) {
    out.call("H5Dwrite", H5Dwrite(dset, t.type, t.memory_space, t.file_space, dxpl, buffer.data()));
    out.number("conversions told to the transfer list", calls.conversions);
    return;
  }
  out.call("H5Dwrite_async", H5Dwrite_async(dset, t.type, t.memory_space, t.file_space, dxpl,
                                            buffer.data(), side.event_set()));
  if (op.variant == 1 && !lends_buffers()) {
    buffer.scribble();  // copying is the default, so the caller may do this
  } else {
    side.keep(std::move(buffer), false);
  }
}

void run_read(Side& side, const Op& op, Outcome& out) {
  const hid_t dset = side.dataset(op.file, op.path, op.async);
  if (!out.call("H5Dopen", dset)) return;
  Transfer t;
  if (!t.prepare(dset, op.selection, op.mem)) {
    out.call("selection fits", -1);
    return;
  }
  Buffer buffer(op.mem, t.elements);
  buffer.prepare_for_read();
  lists::Calls calls;
  const Hid dxpl = lists::transfer(op, calls);
  if (op.async) {
    const bool ok =
        out.call("H5Dread_async", H5Dread_async(dset, t.type, t.memory_space, t.file_space, dxpl,
                                                buffer.data(), side.event_set()));
    side.keep(std::move(buffer), ok);
  } else if (out.call("H5Dread",
                      H5Dread(dset, t.type, t.memory_space, t.file_space, dxpl, buffer.data()))) {
    out.bytes("read by H5Dread", buffer.take());
  }
  out.number("memory taken through the transfer list", calls.allocations);
  out.number("conversions told to the transfer list", calls.conversions);
}

// What lanes filter: whole chunks whose elements are in memory as they are in the file.
bool plan_write_chunks(Rng& rng, const Catalog& catalog, Op& op) {
  const auto worthwhile = [](const Dataset& d) {
    const bool plain = d.kind == Kind::I32LE || d.kind == Kind::I16LE || d.kind == Kind::F64LE;
    return plain && d.layout == Layout::Chunked && d.filtered() && d.elements() >= 4096;
  };
  bool found = false;
  for (int draw = 0; draw < 8 && !found; ++draw) {
    found = pick_dataset(rng, catalog, op, true) && worthwhile(op.dataset);
  }
  if (!found) return false;
  const Dataset& d = op.dataset;
  op.mem = d.kind == Kind::I32LE ? Mem::I32 : d.kind == Kind::I16LE ? Mem::I16 : Mem::F64;
  op.selection = Selection::draw_chunks(rng, d);
  op.async = rng.chance(15);
  op.keep_handles = rng.chance(60);
  op.note = op.selection.text() + " of " + name(d.kind) +
            (op.keep_handles ? "" : ", then the dataset is closed");
  return true;
}

void run_write_chunks(Side& side, const Op& op, Outcome& out) {
  run_write(side, op, out);
  if (!op.keep_handles && !op.async) side.close_dataset(op.file, op.path);
}

// A close meets chunks that lanes have just begun.
bool plan_write_close(Rng& rng, const Catalog& catalog, Op& op) {
  if (!plan_write_chunks(rng, catalog, op)) return false;
  op.async = op.keep_handles = false;
  op.note += ", and the file";
  return true;
}

void run_write_close(Side& side, const Op& op, Outcome& out) {
  run_write(side, op, out);
  run_close(side, op, out);
}

bool plan_multi(Rng& rng, const Catalog& catalog, Op& op) {
  if (!plan_transfer(rng, catalog, op, true)) return false;
  const FileState& file = catalog.files[op.file];
  op.dataset2 = rng.pick(file.datasets);
  // Contiguous ones only: HDF5 1.14's H5Dwrite_multi crashes on selections of several chunked ones.
  if (op.dataset2.path == op.path || op.dataset2.kind == Kind::VlString ||
      op.dataset.kind == Kind::VlString || op.dataset.layout != Layout::Contiguous ||
      op.dataset2.layout != Layout::Contiguous) {
    return false;
  }
  op.path2 = op.dataset2.path;
  op.selection2 = Selection::draw(rng, op.dataset2);
  op.mem2 = memory_for(op.dataset2.kind, rng.next());
  op.async = false;
  op.variant = rng.chance(50) ? 1 : 0;  // 1: read
  return true;
}

void run_multi(Side& side, const Op& op, Outcome& out) {
  hid_t dsets[2] = {side.dataset(op.file, op.path), side.dataset(op.file, op.path2)};
  Transfer t[2];
  if (!out.call("H5Dopen", std::min(dsets[0], dsets[1]))) return;
  if (!t[0].prepare(dsets[0], op.selection, op.mem) ||
      !t[1].prepare(dsets[1], op.selection2, op.mem2)) {
    out.call("selection fits", -1);
    return;
  }
  hid_t types[2] = {t[0].type, t[1].type};
  hid_t memory[2] = {t[0].memory_space, t[1].memory_space};
  hid_t spaces[2] = {t[0].file_space, t[1].file_space};
  lists::Calls calls;
  const Hid dxpl = lists::transfer(op, calls);
  Buffer first(op.mem, t[0].elements), second(op.mem2, t[1].elements);
  if (op.variant == 1) {
    first.prepare_for_read();
    second.prepare_for_read();
    void* buffers[2] = {first.data(), second.data()};
    if ((op.data_seed & 2) != 0) {
      const bool ok = out.call(
          "H5Dread_multi_async",
          H5Dread_multi_async(2, dsets, types, memory, spaces, dxpl, buffers, side.event_set()));
      side.keep(std::move(first), ok);
      side.keep(std::move(second), ok);
      return;
    }
    if (out.call("H5Dread_multi", H5Dread_multi(2, dsets, types, memory, spaces, dxpl, buffers))) {
      out.bytes("read by H5Dread_multi, first", first.take());
      out.bytes("read by H5Dread_multi, second", second.take());
    }
    return;
  }
  first.fill(op.data_seed);
  second.fill(op.data_seed + 1);
  const void* buffers[2] = {first.data(), second.data()};
  out.call("H5Dwrite_multi", H5Dwrite_multi(2, dsets, types, memory, spaces, dxpl, buffers));
}

bool plan_chunk(Rng& rng, const Catalog& catalog, Op& op) {
  op.variant = rng.chance(50) ? 1 : 0;  // 1: read
  if (!pick_dataset(rng, catalog, op, op.variant == 0)) return false;
  const Dataset& d = op.dataset;
  if (d.layout != Layout::Chunked || d.kind == Kind::VlString || d.fill == 2 || d.alloc_time > 0 ||
      d.elements() == 0 || (d.filtered() && op.variant == 0)) {
    return false;
  }
  for (int i = 0; i < d.rank; ++i) op.dims[i] = rng.below(d.dims[i]) / d.chunk[i] * d.chunk[i];
  return true;
}

// A name may lead to another dataset than the catalog believes (a link to what was recreated). Of a chunk that is given too
// few bytes the rest is nobody's, and the same bytes are no chunk of a dataset with filters. Nobody's is, too, what lies beyond
// the edge in chunks that are not filtered there, and what nbit (a filter more than believed) leaves of its buffer.
bool chunks_as_believed(hid_t dset, const Dataset& d) {
  const Hid dcpl(H5Dget_create_plist(dset));
  const Hid type(H5Dget_type(dset));
  Dims chunk{1, 1, 1};
  unsigned options = 0;
  H5Pget_chunk_opts(dcpl, &options);
  return options == 0 && H5Pget_layout(dcpl) == H5D_CHUNKED &&
         H5Pget_chunk(dcpl, 3, chunk.data()) == d.rank &&
         std::equal(chunk.begin(), chunk.begin() + d.rank, d.chunk.begin()) &&
         H5Tequal(type, file_type(d.kind)) > 0 &&
         H5Pget_nfilters(dcpl) == d.deflate + d.shuffle + d.fletcher;
}

void run_chunk(Side& side, const Op& op, Outcome& out) {
  const hid_t dset = side.dataset(op.file, op.path);
  if (!out.call("H5Dopen", dset)) return;
  if (!chunks_as_believed(dset, op.dataset)) {
    out.call("chunks as believed", -1);
    return;
  }
  const Hid type(H5Dget_type(dset));
  size_t bytes = H5Tget_size(type);
  for (int i = 0; i < op.dataset.rank; ++i) bytes *= op.dataset.chunk[i];
  if (op.variant == 1) {
    // A single chunk that is still in the cache has no size natively.
    if (op.dataset.filtered()) out.call("H5Dflush", H5Dflush(dset));
    hsize_t stored = 0;
    if (!out.call("H5Dget_chunk_storage_size",
                  H5Dget_chunk_storage_size(dset, op.dims.data(), &stored))) {
      return;
    }
    out.number("stored size of the chunk", static_cast<int64_t>(stored));
    std::string chunk(stored + 1, '\xa5');
    uint32_t mask = 0;
    if (stored > 0 && out.call("H5Dread_chunk", lists::read_chunk(dset, H5P_DEFAULT, op.dims.data(),
                                                                  &mask, chunk.data()))) {
      out.number("filter mask", mask);
      out.bytes("read by H5Dread_chunk", std::move(chunk));
    }
    return;
  }
  // Unfiltered datasets only: a chunk whose stored size does not change keeps its old filter mask
  // (an HDF5 quirk), and native fletcher32 then reads past the end of bytes that are not its own.
  Buffer buffer(Mem::I16, bytes / 2 + 1);
  buffer.fill(op.data_seed);
  out.call("H5Dwrite_chunk",
           H5Dwrite_chunk(dset, H5P_DEFAULT, 0, op.dims.data(), bytes, buffer.data()));
}

bool plan_wait(Rng& rng, const Catalog&, Op& op) {
  op.variant = static_cast<int>(rng.below(4));
  return true;
}

void run_wait(Side& side, const Op& op, Outcome& out) {
  if (op.variant >= 2) {
    side.wait_all(out);
    return;
  }
  // How many are left depends on time; only that the call works may be compared.
  size_t left = 0;
  hbool_t failed = false;
  out.call("H5ESwait", H5ESwait(side.event_set(), op.variant == 0 ? 0 : 200000, &left, &failed));
  out.number("event set failed", failed);
}

constexpr OpRow kRows[] = {
    {"write", 260, plan_write, run_write, nullptr},
    {"read", 200, plan_read, run_read, nullptr},
    {"multi", 15, plan_multi, run_multi, nullptr},
    {"chunk", 25, plan_chunk, run_chunk, nullptr},
    {"write-chunks", 120, plan_write_chunks, run_write_chunks, nullptr},
    {"write-close", 15, plan_write_close, run_write_close, commit_close, commit_close},
    {"wait", 30, plan_wait, run_wait, nullptr},
};

}  // namespace

std::span<const OpRow> data_ops() { return kRows; }

}  // namespace tidelane::stress
