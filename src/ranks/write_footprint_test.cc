#include "ranks/write_footprint.h"

#include <gtest/gtest.h>

namespace tidelane {
namespace {

// Rows [begin, end) of a dataset with ten columns.
Place Rows(uint64_t begin, uint64_t end, uint64_t dataset = 1) {
  Place place;
  place.dataset = dataset;
  place.extent = {100, 10};
  place.range = {begin * 10, end * 10};
  place.box.end.fill(1);
  place.box.begin[0] = begin, place.box.end[0] = end;
  place.box.end[1] = 10;
  return place;
}

std::vector<uint64_t> Together(std::initializer_list<std::vector<uint64_t>> ranks) {
  std::vector<uint64_t> all;
  for (const auto& rank : ranks) all.insert(all.end(), rank.begin(), rank.end());
  return all;
}

TEST(WriteFootprint, NothingIsHeldAtFirst) {
  const WriteFootprint places;
  EXPECT_FALSE(places.RangeOf(Rows(0, 100)).Overlaps({0, 1000}));
}

TEST(WriteFootprint, RangeCoversAllThatWasAdded) {
  WriteFootprint places;
  places.Add(Rows(10, 20));
  places.Add(Rows(40, 50));
  EXPECT_TRUE(places.RangeOf(Rows(0, 1)).Overlaps({100, 101}));
  EXPECT_TRUE(places.RangeOf(Rows(0, 1)).Overlaps({300, 301}));  // between: on the safe side
  EXPECT_FALSE(places.RangeOf(Rows(0, 1)).Overlaps({500, 1000}));
  EXPECT_FALSE(places.RangeOf(Rows(0, 1, 2)).Overlaps({0, 1000}));  // another dataset
}

TEST(WriteFootprint, AfterTheExtentHasChangedRangesCoverEverything) {
  WriteFootprint places;
  places.Add(Rows(10, 20));
  Place wider = Rows(50, 60);
  wider.extent = {100, 11};
  EXPECT_TRUE(places.RangeOf(wider).Overlaps({900, 901}));
}

TEST(WriteFootprint, BoxesThatFollowOneAnotherAreOne) {
  WriteFootprint places;
  for (uint64_t row = 0; row < 50; ++row) places.Add(Rows(row, row + 1));
  EXPECT_EQ(places.BoxesOf(Rows(0, 1))[0], Rows(0, 50).box);
  EXPECT_TRUE(places.BoxesOf(Rows(0, 1))[1].empty());
}

TEST(WriteFootprint, ManyBoxesStillCoverAll) {
  WriteFootprint places;
  for (uint64_t row = 0; row < 100; row += 10) places.Add(Rows(row, row + 1));
  for (uint64_t row = 0; row < 100; row += 10) {
    bool covered = false;
    for (const WrittenBox& box : places.BoxesOf(Rows(0, 1)))
      covered = covered || box.Overlaps(Rows(row, row + 1).box);
    EXPECT_TRUE(covered) << row;
  }
}

TEST(WriteFootprint, RanksInPartsOfTheirOwnDoNotOverwrite) {
  WriteFootprint first, second;
  first.Add(Rows(0, 5));
  second.Add(Rows(50, 55));
  const auto low = EncodeBoxes(Rows(5, 10).box, first.BoxesOf(Rows(5, 10)));
  const auto high = EncodeBoxes(Rows(55, 60).box, second.BoxesOf(Rows(55, 60)));
  EXPECT_FALSE(AnyOverwrites(Together({low, high})));
  // Though their ranges meet those of all others.
  EXPECT_TRUE((ElementRange{0, 550}).Overlaps({50, 600}));
}

TEST(WriteFootprint, ARankThatWritesWhereAnotherOneHoldsBytesIsFound) {
  WriteFootprint first, second;
  first.Add(Rows(0, 5));
  second.Add(Rows(50, 55));
  const auto nothing = EncodeBoxes({}, first.BoxesOf(Rows(0, 1)));  // holds, and writes nothing now
  const auto there = EncodeBoxes(Rows(4, 6).box, second.BoxesOf(Rows(0, 1)));
  EXPECT_TRUE(AnyOverwrites(Together({nothing, there})));
  EXPECT_TRUE(AnyOverwrites(Together({there, nothing})));
  const auto own = EncodeBoxes(Rows(0, 5).box, first.BoxesOf(Rows(0, 1)));  // its own is in order
  const auto idle = EncodeBoxes({}, {});
  EXPECT_FALSE(AnyOverwrites(Together({own, idle})));
}

}  // namespace
}  // namespace tidelane
