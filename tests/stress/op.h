// One operation of the stress test and the table it comes from.
//
// Protocol, for operation i of a run with seed s:
//   1. plan(rng(s, i), catalog, op): every random choice is made here, and written into the Op.
//   2. run(side, op, outcome): once for the plugin's side, once for native; a pure function of the
//      side and the Op.
//   3. The outcomes are compared. When they are equal: commit(catalog, op), or abandon() if it failed.
// Each operation has its own generator, so leaving operations out (--drop) changes the others little
// and a failing sequence can be made shorter mechanically.
//
// Thread safety: an Op belongs to one thread; the tables are constant.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "stress/catalog.h"
#include "stress/outcome.h"
#include "stress/rng.h"
#include "stress/selection.h"

namespace tidelane::stress {

class Side;
struct Op;

struct OpRow {
  const char* name;
  unsigned weight;
  bool (*plan)(Rng&, const Catalog&, Op&);  // false: nothing to do it to, draw another
  void (*run)(Side&, const Op&, Outcome&);
  void (*commit)(Catalog&, const Op&);             // it succeeded; may be null
  void (*abandon)(Catalog&, const Op&) = nullptr;  // it failed, on both sides alike; may be null
};

struct AccessProfile {
  int degree = 0;       // 0 default, 1 weak, 2 strong
  int libver = 0;       // 0 default, 1 latest, 2 v18..latest
  int sieve = -1;       // bytes, -1: default
  int page_buffer = 0;  // bytes
  bool small_chunk_cache = false;
  bool evict_on_close = false;
  bool external_cache = false;
  int alignment = 0;
  uint64_t lists = 0;  // which lists/lists.h draws from; 0: nothing
};

struct CreateProfile {
  int userblock = 0;
  int strategy = -1;  // H5F_fspace_strategy_t, -1: default
  int page_size = 0;
  uint64_t lists = 0;
};

struct Op {
  const OpRow* row = nullptr;
  uint64_t index = 0;
  uint64_t data_seed = 0;
  int file = 0;
  int other = 0;            // second file (copy, external link, VDS source)
  std::string path, path2;  // objects, or names on disk for file operations
  std::string attribute;
  Dataset dataset;  // the dataset as believed, or the one to create
  Dataset dataset2;
  Selection selection, selection2;
  Mem mem = Mem::I32;
  Mem mem2 = Mem::I32;
  Dims dims{};         // new extent
  int variant = 0;     // row-specific, see its plan()
  bool async = false;  // through an event set
  bool keep_handles = false;
  AccessProfile access;
  CreateProfile create;
  Printf printf;
  std::string note;  // added to the description by plan()

  std::string text() const;
};

std::span<const OpRow> dataset_ops();
std::span<const OpRow> data_ops();
std::span<const OpRow> attribute_ops();
std::span<const OpRow> link_ops();
std::span<const OpRow> file_ops();
// Of a file, also by rows that end with it. Whatever fails before, or in it, the next open replaces the identifier.
void run_close(Side& side, const Op& op, Outcome& out);
void commit_close(Catalog& catalog, const Op& op);
bool creates(const Op& op);  // whether an "open" or "reopen" makes the file anew

// Draws one operation from all tables by weight.
Op draw_op(uint64_t seed, uint64_t index, const Catalog& catalog);

// Choices that several tables share; false when there is no candidate.
bool pick_open_file(Rng& rng, const Catalog& catalog, Op& op, bool for_writing);
bool pick_dataset(Rng& rng, const Catalog& catalog, Op& op, bool for_writing);
std::string fresh_path(Rng& rng, const FileState& file, const char* stem);

}  // namespace tidelane::stress
