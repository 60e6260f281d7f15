// Operations on datasets as objects: create, delete, recreate, rename, copy, resize, inspect.
#include <algorithm>

#include "stress/lists/lists.h"
#include "stress/op.h"
#include "stress/side.h"

namespace tidelane::stress {
namespace {

void draw_shape(Rng& rng, Dataset& d) {
  const auto dice = rng.below(100);
  d.rank = dice < 55 ? 1 : dice < 85 ? 2 : 3;
  static constexpr hsize_t most[] = {3000, 56, 14};
  for (int i = 0; i < d.rank; ++i) d.dims[i] = rng.between(1, most[d.rank - 1]);
  if (d.rank == 1 && rng.chance(8)) d.dims[0] = rng.between(50000, 300000);
  if (d.rank == 2 && rng.chance(5)) d.dims = {rng.between(100, 500), rng.between(100, 300), 1};
}

void draw_layout(Rng& rng, Dataset& d) {
  const auto dice = rng.below(100);
  d.layout = dice < 40 ? Layout::Contiguous : dice < 50 ? Layout::Compact : Layout::Chunked;
  if (d.layout == Layout::Compact && d.elements() > 3000) d.layout = Layout::Contiguous;
  if (d.layout == Layout::Chunked) {
    for (int i = 0; i < d.rank; ++i) {
      d.chunk[i] = std::max<hsize_t>(1, d.dims[i] / rng.between(1, d.rank == 1 ? 12 : 4));
    }
    d.extendable = rng.chance(60);
    d.deflate = rng.chance(35);
    d.shuffle = d.deflate && rng.chance(50);
    d.fletcher = rng.chance(20);
  }
  d.alloc_time = rng.chance(30) ? static_cast<int>(rng.between(1, 3)) : 0;
}

// So many bytes in so many filtered chunks that lanes help to read them.
void enlarge(Rng& rng, Dataset& d) {
  d.kind = rng.chance(50) ? Kind::I32LE : Kind::F64LE;
  d.rank = static_cast<int>(rng.between(1, 2));
  d.dims = d.rank == 1 ? Dims{rng.between(80000, 220000), 1, 1}
                       : Dims{rng.between(250, 450), rng.between(250, 450), 1};
  d.chunk = {1, 1, 1};
  for (int i = 0; i < d.rank; ++i) d.chunk[i] = d.dims[i] / rng.between(2, d.rank == 1 ? 20 : 6);
}

// Chunks that are worth a lane's while, through any filters in any order.
void draw_filtered(Rng& rng, Dataset& d) {
  static constexpr Kind kinds[] = {Kind::I32LE, Kind::F64LE, Kind::I16LE};
  d.kind = kinds[rng.below(3)];
  d.layout = Layout::Chunked;
  d.rank = static_cast<int>(rng.between(1, 3));
  static constexpr hsize_t side[] = {8192, 92, 21};  // at least 16 KiB of two bytes each
  for (int i = 0; i < d.rank; ++i) {
    d.chunk[i] = side[d.rank - 1] + rng.below(side[d.rank - 1] / 8 + 1);
    const hsize_t chunks = rng.between(1, d.rank == 1 ? 6 : d.rank == 2 ? 3 : 2);
    d.dims[i] = chunks * d.chunk[i] - (rng.chance(50) ? 0 : rng.below(d.chunk[i]));
  }
  const auto filters = rng.between(1, 7);
  d.deflate = (filters & 1) != 0;
  d.shuffle = (filters & 2) != 0;
  d.fletcher = (filters & 4) != 0;
  d.filter_order = static_cast<int>(rng.below(6));
  d.extendable = rng.chance(60);
  d.alloc_time = rng.chance(30) ? static_cast<int>(rng.between(1, 3)) : 0;
}

// HDF5 fills storage for certain only with a fill value of the user's. Without one, parts never
// written hold what the file held there before, which depends on where things lie: such datasets
// are written whole at once, and never grow.
void draw_fill(Rng& rng, Dataset& d) {
  const bool number = d.kind != Kind::VlString && d.kind != Kind::Compound;
  d.fill = rng.chance(20) ? 2 : 1;
  if (!number) d.fill = 0;
  if (d.extendable || d.layout == Layout::Compact || d.filtered()) d.fill = number ? 1 : 0;
  // HDF5 1.14 loses the address of an only chunk that its cache did not take (H5D__chunk_write gives H5D__single_idx_insert no
  // dataset to mark): after a close of the dataset what was written is gone, and the next write allocates storage again, which
  // without a fill value holds what lay there before: of filtered chunks, for instance, whose bytes are their compressor's.
  if (d.fill == 2 && d.layout == Layout::Chunked && d.only_chunk()) d.fill = 1;
  if (!number) d.alloc_time = 0;
  if (d.layout == Layout::Chunked && d.alloc_time == 0 && rng.chance(50)) d.fill = 0;
  d.written_whole = d.fill == 2 || (d.fill == 0 && d.layout == Layout::Contiguous);
  // Storage that is allocated late is not filled at all when the write that allocates it covers the dataset (H5D__write:
  // full_overwrite), so of unfiltered chunks at the edge the part that a later growth brings to light holds what the file
  // held there before.
  const bool late = d.alloc_time == H5D_ALLOC_TIME_LATE;
  if (d.layout == Layout::Chunked && !d.filtered() && late) d.extendable = false;
}

Dataset draw_dataset(Rng& rng) {
  Dataset d;
  if (rng.chance(12)) {
    draw_filtered(rng, d);
    draw_fill(rng, d);
    return d;
  }
  d.kind = static_cast<Kind>(rng.below(kKinds));
  draw_shape(rng, d);
  draw_layout(rng, d);
  if (d.filtered() && rng.chance(30)) enlarge(rng, d);
  if (d.kind == Kind::VlString) {
    for (auto& n : d.dims) n = std::min<hsize_t>(n, 40);
    for (int i = 0; i < 3; ++i) d.chunk[i] = std::min(d.chunk[i], d.dims[i]);
    if (d.rank == 3) d.dims = {4, 4, 4}, d.chunk = {2, 2, 2};
    // What is stored are addresses, which compress to one size here and another there.
    d.deflate = d.shuffle = d.fletcher = false;
  }
  draw_fill(rng, d);
  return d;
}

// In a dataset's pipeline, by its filter_order.
constexpr const char* kFilterOrders[] = {"sdf", "sfd", "dsf", "dfs", "fsd", "fds"};

// Of those filters that the dataset has.
char last_filter(const Dataset& d) {
  char last = '\0';
  for (const char* filter = kFilterOrders[d.filter_order]; *filter != '\0'; ++filter) {
    const bool has = *filter == 's' ? d.shuffle : *filter == 'd' ? d.deflate : d.fletcher;
    if (has) last = *filter;
  }
  return last;
}

Hid creation_list(const Dataset& d, const std::string& source_disk, uint64_t seed) {
  Hid dcpl(H5Pcreate(H5P_DATASET_CREATE));
  switch (d.layout) {
    case Layout::Contiguous: H5Pset_layout(dcpl, H5D_CONTIGUOUS); break;
    case Layout::Compact: H5Pset_layout(dcpl, H5D_COMPACT); break;
    case Layout::Chunked: H5Pset_chunk(dcpl, d.rank, d.chunk.data()); break;
    case Layout::Virtual: {
      const Hid space(H5Screate_simple(d.rank, d.dims.data(), nullptr));
      H5Pset_virtual(dcpl, space, source_disk.c_str(), d.source_path.c_str(), space);
      break;
    }
  }
  lists::filters_before(dcpl, d, seed);
  for (const char* filter = kFilterOrders[d.filter_order]; *filter != '\0'; ++filter) {
    if (*filter == 's' && d.shuffle) H5Pset_shuffle(dcpl);
    if (*filter == 'd' && d.deflate) H5Pset_deflate(dcpl, lists::deflate_level(seed));
    if (*filter == 'f' && d.fletcher) H5Pset_fletcher32(dcpl);
  }
  lists::filters_after(dcpl, d, seed);
  if (d.fill == 1) {
    const int value = 42;
    H5Pset_fill_value(dcpl, H5T_NATIVE_INT, &value);
  } else if (d.fill == 2) {
    H5Pset_fill_time(dcpl, H5D_FILL_TIME_NEVER);
  }
  if (d.alloc_time > 0 && d.layout != Layout::Compact) {
    H5Pset_alloc_time(dcpl, static_cast<H5D_alloc_time_t>(d.alloc_time));
  }
  lists::more_dataset_creation(dcpl, d, seed);
  return dcpl;
}

void run_create(Side& side, const Op& op, Outcome& out) {
  const Dataset& d = op.dataset;
  const Hid dcpl = creation_list(d, op.path2, op.data_seed);
  const Hid dapl = lists::dataset_access(d.path, op.index);
  const Dims unlimited{H5S_UNLIMITED, H5S_UNLIMITED, H5S_UNLIMITED};
  const Hid space(
      H5Screate_simple(d.rank, d.dims.data(), d.extendable ? unlimited.data() : nullptr));
  const Hid type = file_type(d.kind);
  const hid_t file = side.file(op.file);
  Hid dset(op.async ? H5Dcreate_async(file, d.path.c_str(), type, space, H5P_DEFAULT, dcpl, dapl,
                                      side.event_set())
                    : H5Dcreate2(file, d.path.c_str(), type, space, H5P_DEFAULT, dcpl, dapl));
  if (!out.call("H5Dcreate", dset) || !d.written_whole) return;
  Buffer buffer(op.mem, d.elements());
  buffer.fill(op.data_seed);
  out.call("H5Dwrite of storage that is not filled",
           H5Dwrite(dset, memory_type(op.mem), H5S_ALL, H5S_ALL, H5P_DEFAULT, buffer.data()));
}

bool plan_create(Rng& rng, const Catalog& catalog, Op& op) {
  if (!pick_open_file(rng, catalog, op, true)) return false;
  const FileState& file = catalog.files[op.file];
  if (file.datasets.size() >= 20) return false;
  op.dataset = draw_dataset(rng);
  op.dataset.path = op.path = fresh_path(rng, file, "d");
  op.mem = memory_for(op.dataset.kind, rng.next());
  op.async = rng.chance(25);
  op.note = std::string(name(op.dataset.kind)) + " rank " + std::to_string(op.dataset.rank) +
            " elements " + std::to_string(op.dataset.elements()) + " layout " +
            std::to_string(static_cast<int>(op.dataset.layout)) +
            (op.dataset.filtered() ? " filtered" : "") + " fill " + std::to_string(op.dataset.fill);
  return true;
}

void commit_create(Catalog& catalog, const Op& op) {
  catalog.files[op.file].datasets.push_back(op.dataset);
}

// A virtual dataset and its source, which has a name of its own for ever: HDF5 1.14 itself overruns
// buffers when a source of another shape appears under the name (H5Dvirtual.c), so only deleting
// and renaming may happen to it.
bool plan_virtual(Rng& rng, const Catalog& catalog, Op& op) {
  if (!pick_open_file(rng, catalog, op, true)) return false;
  op.other = static_cast<int>(rng.below(2));
  const FileState& source = catalog.files[op.other];
  if (!source.open || !source.writable || source.datasets.size() >= 20) return false;
  Dataset& from = op.dataset2;
  from = draw_dataset(rng);
  from.kind = rng.chance(50) ? Kind::I32LE : Kind::F64LE;
  if (from.layout == Layout::Compact || from.elements() < 8) from.layout = Layout::Contiguous;
  from.extendable = false;
  draw_fill(rng, from);
  from.path = "/s" + std::to_string(op.index);
  op.dataset = Dataset{};
  op.dataset.kind = from.kind;
  op.dataset.layout = Layout::Virtual;
  op.dataset.rank = from.rank;
  op.dataset.dims = from.dims;
  op.dataset.source_path = from.path;
  op.dataset.path = op.path = fresh_path(rng, catalog.files[op.file], "v");
  op.path2 = op.other == op.file ? "." : source.disk;
  return true;
}

void run_virtual(Side& side, const Op& op, Outcome& out) {
  Op source = op;
  source.file = op.other;
  source.dataset = op.dataset2;
  run_create(side, source, out);
  if (out.ok) run_create(side, op, out);
}

void commit_virtual(Catalog& catalog, const Op& op) {
  catalog.files[op.other].datasets.push_back(op.dataset2);
  commit_create(catalog, op);
}

bool plan_recreate(Rng& rng, const Catalog& catalog, Op& op) {
  if (!pick_dataset(rng, catalog, op, true)) return false;
  if (op.path.compare(0, 2, "/s") == 0) return false;  // a source of a virtual dataset
  op.dataset = draw_dataset(rng);
  op.dataset.path = op.path;
  op.mem = memory_for(op.dataset.kind, rng.next());
  return true;
}

void run_recreate(Side& side, const Op& op, Outcome& out) {
  side.forget_path(op.file, op.path);
  if (!out.call("H5Ldelete", H5Ldelete(side.file(op.file), op.path.c_str(), H5P_DEFAULT))) return;
  run_create(side, op, out);
}

void commit_recreate(Catalog& catalog, const Op& op) {
  catalog.files[op.file].remove(op.path);
  commit_create(catalog, op);
}

bool plan_copy(Rng& rng, const Catalog& catalog, Op& op) {
  if (!pick_dataset(rng, catalog, op, false)) return false;
  op.other = static_cast<int>(rng.below(2));
  const FileState& target = catalog.files[op.other];
  if (!target.open || !target.writable || target.datasets.size() >= 20) return false;
  op.path2 = fresh_path(rng, target, "c");
  // HDF5 1.14's H5Ocopy overruns its buffer when chunks are still in the cache and their pipeline ends in less room than a
  // chunk has: it copies all of a chunk to where the last one's filtered bytes were (H5D__chunk_copy_cb). Deflate leaves
  // enough; another filter behind it, only for what deflate made. Who writes the bytes has nothing to do with it.
  const bool room = !op.dataset.deflate || last_filter(op.dataset) == 'd';
  return op.dataset.layout != Layout::Virtual && room;
}

void run_copy(Side& side, const Op& op, Outcome& out) {
  // Native H5Ocopy misses what lies dirty in the sieve buffer unless the buffer covers all of the
  // data (H5D__contig_copy); without a sieve the copy is right. Flushed, both are; but a flush passes over a dataset that
  // only a virtual dataset has open, over the other file, where a link may lead, and over what is open through another
  // handle of the file (after such a copy native has even forgotten those bytes).
  const hid_t source = side.dataset(op.file, op.path);
  out.call("H5Dopen before the copy", source);
  // Of a longer pipeline nobody knows how much room it leaves: see plan_copy.
  if (source >= 0 && lists::has_more_filters(source, op.dataset)) side.close_everything_but_files();
  for (int i = 0; i < 2; ++i) {
    if (side.file(i) >= 0)
      out.call("H5Fflush before the copy", H5Fflush(side.file(i), H5F_SCOPE_GLOBAL));
  }
  side.flush_datasets();
  out.call("H5Ocopy", H5Ocopy(side.file(op.file), op.path.c_str(), side.file(op.other),
                              op.path2.c_str(), H5P_DEFAULT, H5P_DEFAULT));
}

void commit_copy(Catalog& catalog, const Op& op) {
  Dataset copy = op.dataset;
  copy.path = op.path2;
  auto& target = catalog.files[op.other];
  std::vector<Attribute> copied;
  for (const auto& a : catalog.files[op.file].attributes) {
    if (a.owner == op.path) copied.push_back({op.path2, a.name, a.kind, a.elements});
  }
  target.attributes.insert(target.attributes.end(), copied.begin(), copied.end());
  target.datasets.push_back(std::move(copy));
}

bool plan_extent(Rng& rng, const Catalog& catalog, Op& op) {
  if (!pick_dataset(rng, catalog, op, true) || !op.dataset.extendable) return false;
  op.dims = op.dataset.dims;
  for (int i = 0; i < op.dataset.rank; ++i) {
    const auto dice = rng.below(3);
    if (dice == 0) op.dims[i] = rng.between(1, std::max<hsize_t>(1, op.dims[i]));
    if (dice == 1) op.dims[i] += rng.below(op.dataset.rank == 1 ? 500 : 8);
  }
  if (rng.chance(3)) op.dims[0] = 0;
  op.async = rng.chance(25);
  for (int i = 0; i < op.dataset.rank; ++i) op.note += " " + std::to_string(op.dims[i]);
  return true;
}

void run_extent(Side& side, const Op& op, Outcome& out) {
  const hid_t dset = side.dataset(op.file, op.path);
  if (!out.call("H5Dopen", dset)) return;
  out.call("H5Dset_extent", op.async ? H5Dset_extent_async(dset, op.dims.data(), side.event_set())
                                     : H5Dset_extent(dset, op.dims.data()));
}

void commit_extent(Catalog& catalog, const Op& op) {
  for (Dataset& d : catalog.files[op.file].datasets) {
    if (d.path == op.path) d.dims = op.dims;
  }
}

bool plan_inspect(Rng& rng, const Catalog& catalog, Op& op) {
  return pick_dataset(rng, catalog, op, false);
}

// A dataset that shrinks gets its fill value into chunks that reach over the new edge, and a chunk that was only read, never
// written, is stored from then on if HDF5's cache happens to hold it (H5D__chunk_prune_fill). What lanes read and filter
// does not pass through that cache: which chunks there are may differ, and what they hold does not.
bool keeps_its_chunks(const Dims& max) {
  return std::find(max.begin(), max.end(), H5S_UNLIMITED) == max.end();
}

void run_inspect(Side& side, const Op& op, Outcome& out) {
  const hid_t dset = side.dataset(op.file, op.path);
  if (!out.call("H5Dopen", dset)) return;
  const Hid space(H5Dget_space(dset));
  const Hid type(H5Dget_type(dset));
  Dims dims{}, max{};
  lists::describe_access(dset, out);
  out.number("rank", H5Sget_simple_extent_dims(space, dims.data(), max.data()));
  for (int i = 0; i < 3; ++i) {
    out.number("dimension", static_cast<int64_t>(dims[i]));
    out.number("maximal dimension", static_cast<int64_t>(max[i]));
  }
  out.number("type size", static_cast<int64_t>(H5Tget_size(type)));
  out.number("type class", H5Tget_class(type));
  H5D_space_status_t status{};
  out.call("H5Dget_space_status", H5Dget_space_status(dset, &status));
  if (keeps_its_chunks(max)) out.number("space status", status);
  const int64_t stored = static_cast<int64_t>(H5Dget_storage_size(dset));
  if (keeps_its_chunks(max)) out.number("storage size", stored);
  H5O_info2_t info{};
  out.call("H5Oget_info", H5Oget_info3(dset, &info, H5O_INFO_BASIC | H5O_INFO_NUM_ATTRS));
  out.number("object type", info.type);
  out.number("reference count", info.rc);
  out.number("attributes", static_cast<int64_t>(info.num_attrs));
  if (op.dataset.layout != Layout::Chunked) return;
  hsize_t chunks = 0;
  const Hid all(H5Dget_space(dset));
  if (out.call("H5Dget_num_chunks", H5Dget_num_chunks(dset, all, &chunks))) {
    if (keeps_its_chunks(max)) out.number("chunks", static_cast<int64_t>(chunks));
  }
}

bool plan_flush(Rng& rng, const Catalog& catalog, Op& op) {
  op.variant = static_cast<int>(rng.below(3));
  return pick_dataset(rng, catalog, op, true);
}

void run_flush(Side& side, const Op& op, Outcome& out) {
  const hid_t dset = side.dataset(op.file, op.path);
  if (!out.call("H5Dopen", dset)) return;
  if (op.variant == 0) out.call("H5Dflush", H5Dflush(dset));
  if (op.variant == 1) out.call("H5Oflush", H5Oflush(dset));
  if (op.variant == 2) out.call("H5Drefresh", H5Drefresh(dset));
}

constexpr OpRow kRows[] = {
    {"create", 70, plan_create, run_create, commit_create},
    {"create-virtual", 6, plan_virtual, run_virtual, commit_virtual},
    {"recreate", 15, plan_recreate, run_recreate, commit_recreate},
    {"copy", 15, plan_copy, run_copy, commit_copy},
    {"set-extent", 50, plan_extent, run_extent, commit_extent},
    {"inspect", 40, plan_inspect, run_inspect, nullptr},
    {"flush-dataset", 15, plan_flush, run_flush, nullptr},
};

}  // namespace

std::span<const OpRow> dataset_ops() { return kRows; }

}  // namespace tidelane::stress
