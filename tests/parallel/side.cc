#include "parallel/side.h"

namespace tidelane::parallel {
namespace {

Hid create_list(const Set& set) {
  Hid dcpl(H5Pcreate(H5P_DATASET_CREATE));
  if (set.chunked) H5Pset_chunk(dcpl, set.rank, set.chunk.data());
  if (set.shuffle) H5Pset_shuffle(dcpl);
  if (set.deflate) H5Pset_deflate(dcpl, 1);
  if (set.fill == 0) H5Pset_fill_time(dcpl, H5D_FILL_TIME_ALLOC);
  if (set.fill == 2) H5Pset_fill_time(dcpl, H5D_FILL_TIME_NEVER);
  const int value = 7;
  if (set.fill == 1) H5Pset_fill_value(dcpl, H5T_NATIVE_INT, &value);
  return dcpl;
}

// Stock HDF5 hangs where reads and collective writes of filtered chunks mix, unless their chunk cache is off.
Hid set_access(const Set& set) {
  Hid dapl(H5Pcreate(H5P_DATASET_ACCESS));
  if (set.filtered()) H5Pset_chunk_cache(dapl, 0, 0, 0);
  return dapl;
}

Hid transfer_list(const Op& op) {
  Hid dxpl(H5Pcreate(H5P_DATASET_XFER));
  H5Pset_dxpl_mpio(dxpl, op.collective ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT);
  if (op.tuning == 1) H5Pset_dxpl_mpio_collective_opt(dxpl, H5FD_MPIO_INDIVIDUAL_IO);
  if (op.tuning == 2) H5Pset_dxpl_mpio_chunk_opt(dxpl, H5FD_MPIO_CHUNK_ONE_IO);
  if (op.tuning == 3) H5Pset_dxpl_mpio_chunk_opt(dxpl, H5FD_MPIO_CHUNK_MULTI_IO);
  return dxpl;
}

// What a program can ask its transfer list afterwards.
void ask(hid_t dxpl, Outcome& out) {
  H5D_mpio_actual_io_mode_t mode{};
  H5D_mpio_actual_chunk_opt_mode_t chunks{};
  uint32_t here = 0, anywhere = 0;
  H5Pget_mpio_actual_io_mode(dxpl, &mode);
  H5Pget_mpio_actual_chunk_opt_mode(dxpl, &chunks);
  H5Pget_mpio_no_collective_cause(dxpl, &here, &anywhere);
  out.number("actual I/O mode", mode);
  out.number("actual chunk mode", chunks);
  out.number("no collective cause here", here);
  out.number("no collective cause anywhere", anywhere);
}

struct Spaces {
  Hid file, memory;
  size_t elements = 0;
};

Spaces spaces(hid_t set, int rank, const Slab& slab) {
  Spaces out;
  out.file = Hid(H5Dget_space(set));
  slab.apply(out.file);
  out.elements = slab.elements(rank);
  const hsize_t n = out.elements == 0 ? 1 : out.elements;
  out.memory = Hid(H5Screate_simple(1, &n, nullptr));
  if (out.elements == 0) H5Sselect_none(out.memory);
  return out;
}

}  // namespace

Manner Manner::draw(uint64_t seed) {
  Rng rng(seed ^ 0x6d616e6e6572ULL);
  Manner manner;
  manner.latest = rng.chance(50);
  manner.together = rng.chance(30);
  manner.align = rng.chance(25);
  manner.hints = rng.chance(50) ? 0 : static_cast<int>(rng.between(1, 2));
  return manner;
}

Side::Side(std::string path, Through through, const Manner& manner)
    : path_(std::move(path)), through_(through), manner_(manner) {
  MPI_Comm_rank(MPI_COMM_WORLD, &me_);
  events_ = Hid(H5EScreate());
  Outcome ignored;
  create_file(ignored);
}

Side::~Side() {
  if (events_.valid()) H5ESclose(events_.release());
}

Hid Side::access_list() const {
  Hid fapl(H5Pcreate(H5P_FILE_ACCESS));
  if (through_ == Through::Native) H5Pset_vol(fapl, H5VL_NATIVE, nullptr);
  MPI_Info info = MPI_INFO_NULL;
  if (manner_.hints != 0) {
    MPI_Info_create(&info);
    MPI_Info_set(info, manner_.hints == 1 ? "romio_cb_write" : "romio_ds_write", "enable");
  }
  H5Pset_fapl_mpio(fapl, MPI_COMM_WORLD, info);
  if (info != MPI_INFO_NULL) MPI_Info_free(&info);
  if (manner_.latest) H5Pset_libver_bounds(fapl, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
  if (manner_.together) H5Pset_coll_metadata_write(fapl, true);
  if (manner_.align) H5Pset_alignment(fapl, 1000, 4096);
  return fapl;
}

void Side::create_file(Outcome& out) {
  const Hid fapl = access_list();
  file_ = Hid(H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, fapl));
  out.call("H5Fcreate", file_.get());
}

void Side::run(const Op& op, Outcome& out) {
  if (op.flush_first) flush(0, out);
  switch (op.what) {
    case Do::Create: return create_set(op, out);
    case Do::Write:
    case Do::Read: return transfer(op, out);
    case Do::Extend: return extend(op, out);
    case Do::Delete: return remove(op, out);
    case Do::Flush: return flush(op.variant, out);
    case Do::Attribute: return attribute(op, out);
    case Do::Reopen: return reopen(op, out);
    case Do::CloseSets: return close_sets(out);
    case Do::Wait: return wait(out);
    case Do::Recreate: finish(out); return create_file(out);
  }
}

void Side::create_set(const Op& op, Outcome& out) {
  const Set& set = op.set;
  Dims most = set.dims;
  if (set.extendable) most.fill(H5S_UNLIMITED);
  const Hid space(H5Screate_simple(set.rank, set.dims.data(), most.data()));
  const Hid type = stress::file_type(set.kind), dcpl = create_list(set), dapl = set_access(set);
  Hid created(H5Dcreate2(file_, set.name.c_str(), type, space, H5P_DEFAULT, dcpl, dapl));
  if (!out.call("H5Dcreate", created.get())) return;
  const hid_t id = sets_.insert_or_assign(set.name, std::move(created)).first->second;
  if (set.written_at_once()) write(op, id, out);
}

hid_t Side::open_set(const Set& set, Outcome& out) {
  auto found = sets_.find(set.name);
  if (found == sets_.end()) {
    const Hid dapl = set_access(set);
    Hid id(H5Dopen2(file_, set.name.c_str(), dapl));
    out.call("H5Dopen", id.get());
    found = sets_.emplace(set.name, std::move(id)).first;
  }
  return found->second;
}

void Side::transfer(const Op& op, Outcome& out) {
  const hid_t set = open_set(op.set, out);  // by all ranks: opening is collective
  if (!op.part_of(me_)) return;
  op.what == Do::Write ? write(op, set, out) : read(op, set, out);
}

void Side::write(const Op& op, hid_t set, Outcome& out) {
  const Spaces s = spaces(set, op.set.rank, op.partition.parts[static_cast<size_t>(me_)]);
  const Hid type = stress::memory_type(op.mem), dxpl = transfer_list(op);
  Buffer buffer(op.mem, s.elements);
  buffer.fill(op.data_seed + static_cast<uint64_t>(me_));
  const bool async = op.async;
  out.call("write", async
                        ? H5Dwrite_async(set, type, s.memory, s.file, dxpl, buffer.data(), events_)
                        : H5Dwrite(set, type, s.memory, s.file, dxpl, buffer.data()));
  if (!async && op.collective) ask(dxpl, out);
  buffer.scribble();  // by default the library has copied what it needs
  if (async) in_use_.push_back(std::move(buffer));
}

void Side::read(const Op& op, hid_t set, Outcome& out) {
  const Spaces s = spaces(set, op.set.rank, op.partition.parts[static_cast<size_t>(me_)]);
  const Hid type = stress::memory_type(op.mem), dxpl = transfer_list(op);
  Buffer buffer(op.mem, s.elements);
  buffer.prepare_for_read();
  out.call("read", H5Dread(set, type, s.memory, s.file, dxpl, buffer.data()));
  if (op.collective) ask(dxpl, out);
  out.bytes("read elements", buffer.take());
}

void Side::extend(const Op& op, Outcome& out) {
  out.call("H5Dset_extent", H5Dset_extent(open_set(op.set, out), op.dims.data()));
}

void Side::remove(const Op& op, Outcome& out) {
  if (const auto open = sets_.find(op.set.name); open != sets_.end()) {
    if (op.keep_open) {
      unlinked_.push_back(std::move(open->second));
    } else {
      out.call("H5Dclose", H5Dclose(open->second.release()));
    }
    sets_.erase(open);
  }
  out.call("H5Ldelete", H5Ldelete(file_, op.set.name.c_str(), H5P_DEFAULT));
}

void Side::attribute(const Op& op, Outcome& out) {
  const hid_t owner = op.set.name.empty() ? file_.get() : open_set(op.set, out);
  const char* name = op.attribute.c_str();
  if (op.variant == 3) return static_cast<void>(out.call("H5Adelete", H5Adelete(owner, name)));
  const hsize_t n = 12;
  const Hid space(H5Screate_simple(1, &n, nullptr));
  const Hid id(op.variant == 0
                   ? H5Acreate2(owner, name, H5T_STD_I32BE, space, H5P_DEFAULT, H5P_DEFAULT)
                   : H5Aopen(owner, name, H5P_DEFAULT));
  if (!out.call(op.variant == 0 ? "H5Acreate" : "H5Aopen", id.get())) return;
  Buffer buffer(Mem::I32, n);
  if (op.variant == 2) {
    buffer.prepare_for_read();
    out.call("read of the attribute", H5Aread(id, H5T_NATIVE_INT, buffer.data()));
    out.bytes("read attribute", buffer.take());
  } else {
    buffer.fill(op.data_seed);  // all ranks must write the same
    out.call("H5Awrite", H5Awrite(id, H5T_NATIVE_INT, buffer.data()));
  }
}

void Side::flush(int scope, Outcome& out) {
  out.call("H5Fflush", H5Fflush(file_, scope == 0 ? H5F_SCOPE_LOCAL : H5F_SCOPE_GLOBAL));
  MPI_Barrier(MPI_COMM_WORLD);  // a rank may return from it before another one has begun it
}

void Side::wait(Outcome& out) {
  size_t in_progress = 0;
  hbool_t failed = false;
  out.call("H5ESwait", H5ESwait(events_, H5ES_WAIT_FOREVER, &in_progress, &failed));
  out.number("in progress", static_cast<int64_t>(in_progress));
  out.number("failed", failed);
  in_use_.clear();
  for (Buffer& buffer : coming_) out.bytes("elements read later", buffer.take());
  coming_.clear();
}

void Side::close_sets(Outcome& out) {
  for (auto& [name, set] : sets_) out.call("H5Dclose", H5Dclose(set.release()));
  for (Hid& set : unlinked_) out.call("last H5Dclose", H5Dclose(set.release()));
  sets_.clear();
  unlinked_.clear();
}

void Side::read_later(const Op& op, hid_t set, Outcome& out) {
  const Spaces s = spaces(set, op.set.rank, op.partition.parts[static_cast<size_t>(me_)]);
  const Hid type = stress::memory_type(op.mem), dxpl = transfer_list(op);
  coming_.emplace_back(op.mem, s.elements);
  coming_.back().prepare_for_read();
  out.call("read later",
           H5Dread_async(set, type, s.memory, s.file, dxpl, coming_.back().data(), events_));
  if (op.collective) ask(dxpl, out);
}

// Also through a second opening, which each rank has for itself.
void Side::read_only(const Op& op, Outcome& out) {
  const Hid together = access_list(), alone(H5Pcopy(together));
  H5Pset_fapl_mpio(alone, MPI_COMM_SELF, MPI_INFO_NULL);
  file_ = Hid(H5Fopen(path_.c_str(), H5F_ACC_RDONLY, together));
  out.call("H5Fopen to read", file_.get());
  Hid second(H5Fopen(path_.c_str(), H5F_ACC_RDONLY, alone));
  out.call("second H5Fopen to read", second.get());
  for (const Op& one : op.reads) {
    if (one.variant == 0) {
      const Hid dapl = set_access(one.set);
      const Hid set(H5Dopen2(second, one.set.name.c_str(), dapl));
      out.call("second H5Dopen", set.get());
      if (one.part_of(me_)) read(one, set, out);
      continue;
    }
    const hid_t set = open_set(one.set, out);
    if (!one.part_of(me_)) continue;
    one.async ? read_later(one, set, out) : read(one, set, out);
  }
  out.call("second H5Fclose", H5Fclose(second.release()));
  finish(out);
}

void Side::reopen(const Op& op, Outcome& out) {
  finish(out);
  if (!op.reads.empty()) read_only(op, out);
  const Hid fapl = access_list();
  file_ = Hid(H5Fopen(path_.c_str(), H5F_ACC_RDWR, fapl));
  out.call("H5Fopen", file_.get());
}

void Side::finish(Outcome& out) {
  wait(out);
  close_sets(out);
  out.call("H5Fclose", H5Fclose(file_.release()));
}

}  // namespace tidelane::parallel
