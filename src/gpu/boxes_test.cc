#include "gpu/boxes.h"

#include <random>

#include <gtest/gtest.h>

namespace tidelane::gpu {
namespace {

using Runs = std::vector<std::pair<uint64_t, uint64_t>>;  // where, how long

std::vector<PlacedBox> BoxesOf(const Runs& runs) {
  Boxes boxes;
  for (const auto& [at, size] : runs) boxes.Add(at, size);
  return boxes.Finish();
}

// Byte for byte, in the order in which they are copied.
std::vector<uint64_t> BytesOf(const Runs& runs) {
  std::vector<uint64_t> bytes;
  for (const auto& [at, size] : runs) {
    for (uint64_t i = 0; i < size; ++i) bytes.push_back(at + i);
  }
  return bytes;
}
std::vector<uint64_t> BytesOf(const std::vector<PlacedBox>& boxes) {
  std::vector<uint64_t> bytes;
  for (const auto& [at, box] : boxes) {
    for (uint64_t plane = 0; plane < box.depth; ++plane) {
      for (uint64_t row = 0; row < box.height; ++row) {
        for (uint64_t i = 0; i < box.width; ++i)
          bytes.push_back(at + (plane * box.slice + row) * box.pitch + i);
      }
    }
  }
  return bytes;
}

// Rows of `width` elements out of an array of planes of rows.
Runs BoxOf(uint64_t depth, uint64_t height, uint64_t width, uint64_t rows, uint64_t row) {
  Runs runs;
  for (uint64_t z = 0; z < depth; ++z) {
    for (uint64_t y = 0; y < height; ++y) runs.push_back({(z * rows + y) * row + 5, width});
  }
  return runs;
}

TEST(Boxes, RunsThatTouchAreOneLine) {
  const auto boxes = BoxesOf({{8, 4}, {12, 20}, {32, 1}});
  ASSERT_EQ(boxes.size(), 1u);
  EXPECT_EQ(boxes[0].at, 8u);
  EXPECT_TRUE(boxes[0].box.IsLine());
  EXPECT_EQ(boxes[0].box.width, 25u);
}

TEST(Boxes, RowsAtOneDistanceAreAPlane) {
  const Runs runs = BoxOf(1, 100, 16, 100, 64);
  const auto boxes = BoxesOf(runs);
  ASSERT_EQ(boxes.size(), 1u);
  EXPECT_EQ(boxes[0].box.height, 100u);
  EXPECT_EQ(boxes[0].box.pitch, 64u);
  EXPECT_EQ(BytesOf(boxes), BytesOf(runs));
}

TEST(Boxes, PlanesAtOneDistanceAreASolid) {
  const Runs runs = BoxOf(7, 10, 16, 12, 64);
  const auto boxes = BoxesOf(runs);
  ASSERT_EQ(boxes.size(), 1u);
  EXPECT_EQ(boxes[0].box.depth, 7u);
  EXPECT_EQ(boxes[0].box.slice, 12u);
  EXPECT_EQ(BytesOf(boxes), BytesOf(runs));
}

TEST(Boxes, WhatHasNoShapeIsCopiedRunByRun) {
  const Runs runs = {{0, 4}, {100, 8}, {50, 8}, {200, 8}, {209, 8}, {218, 8}, {400, 3}};
  EXPECT_EQ(BytesOf(BoxesOf(runs)), BytesOf(runs));
}

TEST(Boxes, RandomRunsKeepTheirBytesAndTheirOrder) {
  std::mt19937 random(1);
  const auto below = [&](uint64_t end) { return random() % end; };
  size_t boxes_in_all = 0;
  size_t runs_in_all = 0;
  for (int round = 0; round < 2000; ++round) {
    Runs runs;
    uint64_t at = below(10);
    for (uint64_t group = 0; group < 1 + below(4); ++group) {
      const Runs box = BoxOf(1 + below(3), 1 + below(4), 1 + below(6), 4 + below(2), 6 + below(6));
      for (const auto& [begin, size] : box) runs.push_back({at + begin, size});
      if (below(4) == 0) runs.push_back({at + below(50), 1 + below(5)});
      at += below(300);
    }
    const auto boxes = BoxesOf(runs);
    ASSERT_EQ(BytesOf(boxes), BytesOf(runs)) << "round " << round;
    boxes_in_all += boxes.size();
    runs_in_all += runs.size();
  }
  EXPECT_LT(boxes_in_all, runs_in_all / 2);
}

}  // namespace
}  // namespace tidelane::gpu
