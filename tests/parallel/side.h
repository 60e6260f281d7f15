// One side of the comparison: the same file in a directory of its own, through whatever the environment configures (the
// plugin) or through native HDF5 set explicitly, by all ranks of the program together.
//
// Invariant: both sides see the same calls in the same order; only the connector differs.
// Thread safety: belongs to one thread.
#pragma once

#include <mpi.h>

#include <list>
#include <map>
#include <string>
#include <vector>

#include "parallel/op.h"
#include "stress/outcome.h"

namespace tidelane::parallel {

using stress::Buffer;
using stress::Outcome;

// How the file is used, for a whole run.
struct Manner {
  bool latest = false;    // newest formats: other chunk indexes
  bool together = false;  // metadata is written collectively
  bool align = false;
  int hints =
      0;  // 0 none, 1 two-phase writes forced, 2 data sieving writes forced (both are ROMIO's)

  static Manner draw(uint64_t seed);
};

class Side {
 public:
  enum class Through { Environment, Native };

  Side(std::string path, Through through, const Manner& manner);
  ~Side();
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  void run(const Op& op, Outcome& out);
  void finish(Outcome& out);

 private:
  void create_file(Outcome& out);
  void create_set(const Op& op, Outcome& out);
  void transfer(const Op& op, Outcome& out);
  void write(const Op& op, hid_t set, Outcome& out);
  void read(const Op& op, hid_t set, Outcome& out);
  void extend(const Op& op, Outcome& out);
  void remove(const Op& op, Outcome& out);
  void attribute(const Op& op, Outcome& out);
  void reopen(const Op& op, Outcome& out);
  void read_only(const Op& op, Outcome& out);
  void read_later(const Op& op, hid_t set, Outcome& out);
  void flush(int scope, Outcome& out);
  void wait(Outcome& out);
  void close_sets(Outcome& out);
  hid_t open_set(const Set& set, Outcome& out);

  Hid access_list() const;

  const std::string path_;
  const Through through_;
  const Manner manner_;
  int me_ = 0;
  Hid file_;
  std::map<std::string, Hid> sets_;
  std::vector<Hid> unlinked_;  // open although their names are gone
  Hid events_;
  std::list<Buffer> in_use_;  // by operations of the event set
  std::list<Buffer> coming_;  // elements that it reads
};

}  // namespace tidelane::parallel
