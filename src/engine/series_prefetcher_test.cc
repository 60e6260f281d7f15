// Names that make up a series.
#include "engine/series_prefetcher.h"

#include <gtest/gtest.h>

namespace tidelane {
namespace {

std::string Next(const std::string& path, uint64_t step = 1) {
  const auto name = NumberedName::Of(path);
  return name.has_value() ? name->With(name->number + step) : "";
}

TEST(NumberedName, TheLastNumberOfTheNameCounts) {
  EXPECT_EQ(Next("run3/time_0001.h5"), "run3/time_0002.h5");
  EXPECT_EQ(Next("time_0999.h5"), "time_1000.h5");
  EXPECT_EQ(Next("time_9.h5"), "time_10.h5");
  EXPECT_EQ(Next("plt00010/data.h5"), "");
  EXPECT_EQ(Next("output.h5"), "");
  EXPECT_EQ(Next("output"), "");
  EXPECT_EQ(Next("out7"), "out8");
  EXPECT_EQ(Next("a.b/out_12_fields.hdf5", 4), "a.b/out_16_fields.hdf5");
  EXPECT_EQ(Next("x0100.h5", static_cast<uint64_t>(-1)), "x0099.h5");
  EXPECT_EQ(Next("0123456789012345678901234.h5"), "");
}

TEST(NumberedName, SeriesAreAlikeButForTheNumber) {
  const auto of = [](const char* path) { return *NumberedName::Of(path); };
  EXPECT_TRUE(of("a/t1.h5").Alike(of("a/t22.h5")));
  EXPECT_FALSE(of("a/t1.h5").Alike(of("b/t2.h5")));
  EXPECT_FALSE(of("a/t1_x.h5").Alike(of("a/t2_y.h5")));
}

}  // namespace
}  // namespace tidelane
