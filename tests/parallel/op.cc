#include "parallel/op.h"

#include <algorithm>
#include <utility>

namespace tidelane::parallel {
namespace {

constexpr size_t kMostSets = 6;

struct Weight {
  Do what;
  unsigned weight;
  const char* name;
};
constexpr Weight kWeights[] = {{Do::Create, 10, "create"},
                               {Do::Write, 44, "write"},
                               {Do::Read, 24, "read"},
                               {Do::Extend, 6, "set extent"},
                               {Do::Delete, 5, "delete"},
                               {Do::Flush, 4, "flush"},
                               {Do::Attribute, 7, "attribute"},
                               {Do::Reopen, 2, "reopen"},
                               {Do::CloseSets, 4, "close datasets"},
                               {Do::Wait, 4, "wait"},
                               {Do::Recreate, 1, "create the file again"}};

Do draw_kind(Rng& rng) {
  unsigned sum = 0;
  for (const Weight& w : kWeights) sum += w.weight;
  uint64_t at = rng.below(sum);
  for (const Weight& w : kWeights) {
    if (at < w.weight) return w.what;
    at -= w.weight;
  }
  return Do::Flush;
}

const char* name_of(Do what) {
  for (const Weight& w : kWeights) {
    if (w.what == what) return w.name;
  }
  return "";
}

// Kinds that are in the file as they are in memory: HDF5 transfers others one by one, each rank alone, which it refuses where
// there are filters.
constexpr std::pair<Kind, Mem> kPlain[] = {
    {Kind::I32LE, Mem::I32}, {Kind::I16LE, Mem::I16}, {Kind::F64LE, Mem::F64}};

Mem draw_memory(Rng& rng, const Set& set) {
  for (const auto& [kind, mem] : kPlain) {
    if (kind == set.kind && (set.filtered() || rng.chance(70))) return mem;
  }
  return stress::memory_for(set.kind, rng.next());
}

}  // namespace

std::string Op::text() const {
  std::string out = name_of(what);
  if (flush_first) out = "flush, " + out;
  if (!set.name.empty()) {
    out += " " + set.name + " " + stress::name(set.kind) + " (";
    for (int i = 0; i < set.rank; ++i) out += (i == 0 ? "" : "x") + std::to_string(set.dims[i]);
    out += set.chunked ? ", chunks " : ", contiguous";
    for (int i = 0; i < set.rank && set.chunked; ++i)
      out += (i == 0 ? "" : "x") + std::to_string(set.chunk[i]);
    out += std::string(set.deflate ? ", deflate" : "") + (set.shuffle ? ", shuffle" : "") +
           ", fill " + std::to_string(set.fill) + ")";
  }
  if (what == Do::Write || what == Do::Read) {
    out += collective ? " together" : " alone " + std::to_string(takes_part);
    if (async) out += " async";
    if (tuning != 0) out += " tuning " + std::to_string(tuning);
    out += " " + partition.text(set.rank);
    if (mem == Mem::FieldA || mem == Mem::FieldB) out += mem == Mem::FieldA ? " a" : " b";
  }
  if (what == Do::Extend) {
    out += " to ";
    for (int i = 0; i < set.rank; ++i) out += (i == 0 ? "" : "x") + std::to_string(dims[i]);
  }
  for (const Op& read : reads) out += "\n    " + read.text();
  if (what == Do::Attribute) out += " " + attribute + " " + std::to_string(variant);
  return out;
}

Set Model::draw_set(Rng& rng) const {
  Set set;
  set.name = "s" + std::to_string(named_);
  set.kind = rng.chance(50) ? kPlain[rng.below(3)].first
                            : static_cast<Kind>(rng.below(static_cast<uint64_t>(Kind::VlString)));
  set.rank = static_cast<int>(rng.between(1, 3));
  static constexpr hsize_t kMost[3][4] = {{1, 100, 6000, 60000}, {1, 12, 80, 260}, {1, 5, 20, 40}};
  const size_t size = rng.between(1, 3);
  for (int i = 0; i < set.rank; ++i) {
    const hsize_t most = kMost[set.rank - 1][size];
    set.dims[i] = rng.between(most / 2, most);
  }
  set.chunked = rng.chance(options_.compressed ? 90 : 55);
  if (set.chunked) {
    for (int i = 0; i < set.rank; ++i) {
      set.chunk[i] = rng.between(set.dims[i] / 6 + 1, set.dims[i] / 2 + 1);
    }
    set.extendable = rng.chance(50);
    set.deflate = options_.filters && rng.chance(options_.compressed ? 80 : 30);
    set.shuffle = options_.filters && rng.chance(15);
    if (set.filtered()) set.kind = kPlain[rng.below(3)].first;
  }
  set.fill = static_cast<int>(rng.below(4));
  // Stock HDF5 hangs in a collective read of filtered chunks that do not exist yet where a rank selects nothing.
  if (set.filtered()) set.fill = static_cast<int>(rng.between(2, 3));
  // Without a fill value of the program's, what nobody wrote may hold anything.
  if (set.kind == Kind::Compound && set.fill == 1) set.fill = 0;
  if (set.written_at_once()) set.extendable = false;
  return set;
}

Op Model::draw(uint64_t seed, uint64_t index) const {
  Rng rng(seed * 0x9e3779b97f4a7c15ULL + index);
  Op op;
  op.index = index;
  op.data_seed = rng.next();
  do {
    op.what = sets_.empty() ? Do::Create : draw_kind(rng);
  } while (!plan(rng, op));
  op.flush_first = !options_.strict && needs_flush(op);
  op.barrier_first = op.what == Do::Write && !op.collective && op.set.read_alone;
  return op;
}

bool Model::plan(Rng& rng, Op& op) const {
  if (op.what == Do::Create) {
    op.set = draw_set(rng);
    op.mem = draw_memory(rng, op.set);
    op.partition = Partition::slices(op.set.rank, op.set.dims, options_.ranks);
    return sets_.size() < kMostSets;
  }
  op.variant = static_cast<int>(rng.below(2));
  if (op.what == Do::Reopen && options_.read_only) plan_reads(rng, op);
  if (op.what == Do::Flush || op.what == Do::Reopen || op.what == Do::CloseSets ||
      op.what == Do::Wait || op.what == Do::Recreate) {
    return true;
  }
  op.set = rng.pick(sets_);
  op.keep_open = rng.chance(30);
  if (op.what == Do::Attribute) return plan_attribute(rng, op);
  if (op.what == Do::Delete) return sets_.size() > 2;
  if (op.what != Do::Extend) return plan_transfer(rng, op);
  for (int i = 0; i < op.set.rank; ++i) {
    op.dims[i] = rng.between(op.set.dims[i] / 2 + 1, op.set.dims[i] + op.set.dims[i] / 3 + 1);
  }
  return op.set.extendable && elements_of(op.set.rank, op.dims) < 120000;
}

bool Model::plan_transfer(Rng& rng, Op& op) const {
  const bool writes = op.what == Do::Write;
  const Set& set = op.set;
  op.partition =
      writes ? Partition::draw(rng, set.rank, set.dims, set.chunk, options_.ranks)
             : Partition::draw_for_reading(rng, set.rank, set.dims, set.chunk, options_.ranks);
  if (writes && set.filtered() && options_.compressed && rng.chance(75))
    op.partition = Partition::chunks(rng, set.rank, set.dims, set.chunk, options_.ranks);
  op.collective = (writes && set.filtered()) || rng.chance(60);
  if (!op.collective) op.takes_part = static_cast<uint32_t>(rng.next());
  op.async = rng.chance(20);
  if (op.collective && !set.filtered() && rng.chance(25))
    op.tuning = static_cast<int>(rng.between(1, 3));
  op.mem = draw_memory(rng, set);
  if (set.kind == Kind::Compound && rng.chance(50))
    op.mem = rng.chance(50) ? Mem::FieldA : Mem::FieldB;
  return true;
}

// Some datasets are read again and again, so that there is something to foresee.
void Model::plan_reads(Rng& rng, Op& op) const {
  const uint64_t count = rng.between(4, 24);
  for (uint64_t i = 0; i < count; ++i) {
    Op read;
    read.what = Do::Read;
    read.index = op.index;
    read.data_seed = rng.next();
    read.set = !op.reads.empty() && rng.chance(50) ? op.reads.back().set : rng.pick(sets_);
    static_cast<void>(plan_transfer(rng, read));
    // How many ranks read a chunk, which decides what HDF5 says of one I/O for each, no rank knows by itself.
    if (read.tuning == 3) read.tuning = 0;
    read.variant = static_cast<int>(rng.below(4));
    op.reads.push_back(std::move(read));
  }
}

bool Model::plan_attribute(Rng& rng, Op& op) const {
  op.variant = static_cast<int>(rng.below(4));
  op.mem = Mem::I32;
  if (op.variant == 0) {
    if (rng.chance(30)) op.set = Set();
    op.attribute = "a" + std::to_string(named_);
    return true;
  }
  if (attributes_.empty()) return false;
  const Attribute& attribute = rng.pick(attributes_);
  op.attribute = attribute.name;
  op.set = Set();
  op.set.name = attribute.owner;
  return true;
}

// Whether a rank that acts alone meets what another one may still hold.
bool Model::needs_flush(const Op& op) const {
  if (op.collective || (op.what != Do::Write && op.what != Do::Read)) return false;
  bool foreign = false;
  for (size_t r = 0; r < op.partition.parts.size(); ++r) {
    if (!op.part_of(static_cast<int>(r))) continue;
    op.partition.parts[r].each(op.set.rank, op.set.dims, [&](size_t i) {
      foreign |= op.set.holder[i] >= 0 && op.set.holder[i] != static_cast<int8_t>(r);
    });
  }
  return foreign;
}

void Model::hold(const Op& op) {
  Set* set = find(op.set.name);
  for (size_t r = 0; r < op.partition.parts.size(); ++r) {
    if (!op.part_of(static_cast<int>(r))) continue;
    op.partition.parts[r].each(set->rank, set->dims,
                               [&](size_t i) { set->holder[i] = static_cast<int8_t>(r); });
  }
}

void Model::resize(Set& set, const Dims& dims) {
  std::vector<int8_t> moved(elements_of(set.rank, dims), -1);
  for (size_t i = 0; i < set.holder.size(); ++i) {
    size_t rest = i, to = 0, scale = 1;
    bool inside = true;
    for (int d = set.rank - 1; d >= 0; --d) {
      const size_t at = rest % set.dims[d];
      rest /= set.dims[d];
      inside = inside && at < dims[d];
      to += at * scale;
      scale *= dims[d];
    }
    if (inside) moved[to] = set.holder[i];
  }
  set.holder = std::move(moved);
  set.dims = dims;
}

void Model::make_visible() {
  for (Set& set : sets_) {
    std::fill(set.holder.begin(), set.holder.end(), int8_t{-1});
    set.read_alone = false;
  }
}

Set* Model::find(const std::string& name) {
  const auto it = std::find_if(sets_.begin(), sets_.end(), [&](auto& s) { return s.name == name; });
  return it == sets_.end() ? nullptr : &*it;
}

void Model::commit(const Op& op) {
  if (op.flush_first) make_visible();
  if (op.barrier_first) find(op.set.name)->read_alone = false;
  switch (op.what) {
    case Do::Create:
      sets_.push_back(op.set);
      sets_.back().holder.assign(op.set.elements(), -1);
      if (op.set.written_at_once()) hold(op);
      ++named_;
      break;
    case Do::Write: hold(op); break;
    case Do::Extend: resize(*find(op.set.name), op.dims); break;
    case Do::Delete:
      std::erase_if(sets_, [&](auto& s) { return s.name == op.set.name; });
      std::erase_if(attributes_, [&](auto& a) { return a.owner == op.set.name; });
      break;
    case Do::Attribute:
      if (op.variant == 0) attributes_.push_back({op.set.name, op.attribute});
      if (op.variant == 0) ++named_;
      if (op.variant == 3)
        std::erase_if(attributes_, [&](auto& a) { return a.name == op.attribute; });
      break;
    case Do::Recreate:
      sets_.clear();
      attributes_.clear();
      break;
    case Do::Flush:
    case Do::Reopen: make_visible(); break;
    case Do::Read: find(op.set.name)->read_alone |= !op.collective; break;
    case Do::CloseSets:
    case Do::Wait: break;
  }
}

}  // namespace tidelane::parallel
