#include "apps/patterns.h"

#include <algorithm>
#include <stdexcept>

namespace tidelane::apps {

namespace {

constexpr uint64_t kTileRows = 64;
constexpr uint64_t kShortRun = 16;
constexpr uint64_t kDatasets = 8;
constexpr uint64_t kGrowChunk = 64 << 10;

// Splits a power of two into `parts` powers of two, the last the largest.
Shape split(uint64_t product, int parts) {
  Shape out{1, 1, 1};
  for (int left = parts; left > 0; --left) {
    uint64_t side = 1;
    uint64_t power = 1;  // side^left
    while (power < product) {
      side *= 2;
      power = 1;
      for (int k = 0; k < left; ++k) power *= side;
    }
    if (power > product && left > 1) side /= 2;
    if (left == 1) side = product;
    out[static_cast<size_t>(parts - left)] = side;
    product /= side;
  }
  return out;
}

// Whole rows of a matrix, or planes of a cube: each write is one run in the file.
Pattern whole(const Shape& block, int rank, uint64_t writes) {
  Pattern p{.rank = rank};
  p.block = block;
  p.grid = {writes, 1, 1};
  return p;
}

Pattern tiles(uint64_t bytes, uint64_t writes, bool chunked) {
  Pattern p{.rank = 2, .chunked = chunked};
  p.block = {kTileRows, bytes / kTileRows, 1};
  p.grid = split(writes, 2);
  p.chunk = p.block;
  return p;
}

Pattern blocks(const Shape& block, uint64_t writes) {
  Pattern p{.rank = 3};
  p.block = block;
  p.grid = split(writes, 3);
  return p;
}

bool power_of_two(uint64_t n) { return n != 0 && (n & (n - 1)) == 0; }

}  // namespace

uint64_t Pattern::blocks() const {
  return static_cast<uint64_t>(datasets) * grid[0] * grid[1] * grid[2];
}

uint64_t Pattern::block_bytes() const { return block[0] * block[1] * block[2]; }

Shape Pattern::dims() const {
  Shape out;
  for (size_t d = 0; d < kMaxRank; ++d) out[d] = block[d] * grid[d];
  return out;
}

Position Pattern::position(uint64_t number) const {
  Position out{.dataset = static_cast<int>(number % static_cast<uint64_t>(datasets)), .offset = {}};
  uint64_t rest = number / static_cast<uint64_t>(datasets);
  for (size_t d = static_cast<size_t>(rank); d-- > 0;) {
    out.offset[d] = rest % grid[d] * block[d];
    rest /= grid[d];
  }
  return out;
}

const std::vector<std::string>& pattern_names() {
  static const auto* const kNames = new std::vector<std::string>{
      "contiguous",        "rows",        "planes", "append", "tiles", "blocks",
      "blocks-short-runs", "interleaved", "chunked"};
  return *kNames;
}

Pattern make_pattern(const std::string& name, uint64_t bytes, uint64_t writes) {
  if (!power_of_two(bytes) || !power_of_two(writes) || bytes < 1024 || writes < 64) {
    throw std::invalid_argument("bytes (>= 1024) and writes (>= 64) must be powers of two");
  }
  if (name == "contiguous") return {.block = {bytes, 1, 1}, .grid = {writes, 1, 1}};
  if (name == "rows") return whole({2, bytes / 2, 1}, 2, writes);
  if (name == "planes") return whole(split(bytes, 3), 3, writes);
  if (name == "append") {
    return {.chunked = true,
            .grows = true,
            .block = {bytes, 1, 1},
            .grid = {writes, 1, 1},
            .chunk = {std::max(bytes, kGrowChunk), 1, 1}};
  }
  if (name == "tiles") return tiles(bytes, writes, false);
  if (name == "chunked") return tiles(bytes, writes, true);
  if (name == "blocks") return blocks(split(bytes, 3), writes);
  if (name == "blocks-short-runs") {
    const Shape face = split(bytes / kShortRun, 2);
    return blocks({face[0], face[1], kShortRun}, writes);
  }
  if (name == "interleaved") {
    return {.datasets = kDatasets, .block = {bytes, 1, 1}, .grid = {writes / kDatasets, 1, 1}};
  }
  throw std::invalid_argument("no pattern is called " + name);
}

}  // namespace tidelane::apps
