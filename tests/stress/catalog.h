// What the generator believes to exist in the two files: enough to draw operations that mostly
// succeed. It is a belief, not the oracle: where it is stale (a dataset reached through two links)
// the operation fails on both sides and both failures are compared.
//
// Invariant: changed only by operations that succeeded on both sides, so it depends on the seed alone.
// Thread safety: belongs to one thread.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "stress/types.h"

namespace tidelane::stress {

using Dims = std::array<hsize_t, 3>;

enum class Layout : uint8_t { Contiguous, Compact, Chunked, Virtual };

struct Dataset {
  std::string path;
  Kind kind = Kind::I32LE;
  Layout layout = Layout::Contiguous;
  int rank = 1;
  Dims dims{1, 1, 1};
  Dims chunk{1, 1, 1};
  bool extendable = false;
  bool deflate = false, shuffle = false, fletcher = false;
  int filter_order = 0;        // which of the six orders
  int fill = 0;                // 0 default, 1 user value, 2 undefined
  bool written_whole = false;  // at creation
  int alloc_time = 0;          // index into early, late, incremental (0: HDF5's default)
  int source_file = 0;         // Virtual only
  std::string source_path;     // Virtual only

  size_t elements() const;
  bool only_chunk() const {
    return chunk[0] >= dims[0] && chunk[1] >= dims[1] && chunk[2] >= dims[2];
  }
  bool filtered() const { return deflate || shuffle || fletcher; }
};

struct Attribute {
  std::string owner;
  std::string name;
  Kind kind = Kind::I32LE;
  size_t elements = 1;
};

// Blocks in datasets of their own become one virtual dataset, by the number in their names (lists/ops_virtual.cc).
struct Printf {
  std::string path;
  int source_file = 0;
  std::string blocks;  // their names, without the number
  Kind kind = Kind::I32LE;
  hsize_t elements = 1;  // of a block
};

struct FileState {
  std::string disk;  // its name in the side's directory at this moment
  bool exists = false;
  bool open = false;
  bool writable = false;
  std::vector<Dataset> datasets;
  std::vector<std::string> groups;  // without the root group
  std::vector<std::string> links;   // every other link: soft, external, to anything
  std::vector<Attribute> attributes;
  std::vector<Printf> printfs;

  void clear_contents();
  bool taken(const std::string& path) const;
  // A link was removed or renamed: so is everything under it.
  void remove(const std::string& path);
  void rename(const std::string& from, const std::string& to);
};

struct Catalog {
  std::array<FileState, 2> files;
};

}  // namespace tidelane::stress
