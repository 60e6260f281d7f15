// One operation of all ranks, and the model that operations are drawn from.
//
// Every rank holds the same model and draws the same operations from the same seed: that is what makes them collective. The
// model knows of each element whose bytes it holds that were not made visible to others since: what MPI-IO promises (and so
// the plugin) ends there, and the program flushes first, as a correct program must. With `strict` a barrier is enough.
//
// Invariant: the model changes only by operations that succeeded natively, which they do on all ranks or on none.
// Thread safety: belongs to one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "parallel/partition.h"
#include "stress/types.h"

namespace tidelane::parallel {

using stress::Kind;
using stress::Mem;

struct Set {
  std::string name;
  Kind kind = Kind::I32LE;
  int rank = 1;
  Dims dims{1, 1, 1}, chunk{1, 1, 1};
  bool chunked = false, extendable = false, deflate = false, shuffle = false;
  int fill = 0;  // 0: at allocation, 1: a value of the program's, 2: never, 3: HDF5's default
  bool read_alone = false;  // by a rank that may be reading still
  std::vector<int8_t>
      holder;  // by element: the rank that wrote it last since it was made visible; -1: nobody

  size_t elements() const { return elements_of(rank, dims); }
  bool filtered() const { return deflate || shuffle; }
  // What was never written is nobody's promise: such a dataset is written whole as soon as it is created.
  bool written_at_once() const { return fill >= 2; }
};

enum class Do : uint8_t {
  Create,
  Write,
  Read,
  Extend,
  Delete,
  Flush,
  Attribute,
  Reopen,
  CloseSets,
  Wait,
  Recreate
};

struct Op {
  Do what = Do::Flush;
  uint64_t index = 0, data_seed = 0;
  Set set;              // as believed, or the one to create
  Partition partition;  // Write, Read, and Create of what is written at once
  bool collective = true;
  bool async = false;  // through an event set
  bool keep_open = false;
  int tuning =
      0;  // of collective transfers: 1 individual I/O, 2 one I/O for all chunks, 3 one for each
  uint32_t takes_part = ~0u;  // which ranks make an independent call
  Mem mem = Mem::I32;
  Dims dims{};      // Extend
  int variant = 0;  // Attribute: create, write, read, delete; Flush: scope
  std::string attribute;
  bool flush_first = false;
  bool barrier_first = false;  // a rank must not overwrite what another one is reading
  std::vector<Op> reads;       // Reopen: first for reading only, with these

  bool part_of(int me) const { return collective || (takes_part >> me & 1) != 0; }
  std::string text() const;
};

struct Attribute {
  std::string owner;  // empty: the root group
  std::string name;
};

struct ModelOptions {
  int ranks = 2;
  bool strict = false;
  bool filters = true;
  bool read_only =
      false;  // files are opened again for reading only, before they are opened for more
  bool compressed = false;  // most datasets are, and most writes of those are of whole chunks
};

class Model {
 public:
  explicit Model(const ModelOptions& options) : options_(options) {}

  Op draw(uint64_t seed, uint64_t index) const;
  void commit(const Op& op);
  const std::vector<Set>& sets() const { return sets_; }

 private:
  Set draw_set(Rng& rng) const;
  bool plan(Rng& rng, Op& op) const;
  bool plan_transfer(Rng& rng, Op& op) const;
  bool plan_attribute(Rng& rng, Op& op) const;
  void plan_reads(Rng& rng, Op& op) const;
  bool needs_flush(const Op& op) const;
  void hold(const Op& op);
  void resize(Set& set, const Dims& dims);
  void make_visible();
  Set* find(const std::string& name);

  ModelOptions options_;
  std::vector<Set> sets_;
  std::vector<Attribute> attributes_;
  uint64_t named_ = 0;
};

}  // namespace tidelane::parallel
