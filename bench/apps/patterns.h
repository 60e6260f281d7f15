// The shapes in which programs make many small writes.
//
// A pattern is a dataset cut into equal blocks, one write each; some have several datasets, some
// are chunked, one grows. Elements are bytes, so that a block's last extent is the length of its
// runs.
//
// Invariant: the blocks of a pattern cover its datasets exactly once.
// Thread safety: immutable after construction.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace tidelane::apps {

inline constexpr int kMaxRank = 3;
using Shape = std::array<uint64_t, kMaxRank>;

struct Position {
  int dataset;
  Shape offset;
};

struct Pattern {
  int rank = 1;
  int datasets = 1;
  bool chunked = false;
  bool grows = false;  // one block at a time along the first dimension
  Shape block{1, 1, 1};
  Shape grid{1, 1, 1};  // blocks along each dimension, per dataset
  Shape chunk{1, 1, 1};

  uint64_t blocks() const;
  uint64_t block_bytes() const;
  Shape dims() const;
  Position position(uint64_t number) const;
};

const std::vector<std::string>& pattern_names();

// Throws std::invalid_argument where bytes or writes do not suit the pattern.
Pattern make_pattern(const std::string& name, uint64_t bytes, uint64_t writes);

}  // namespace tidelane::apps
