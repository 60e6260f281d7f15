/// \file
/// Numbers as people read them.
#include "base/words.h"

#include <gtest/gtest.h>

namespace tidelane {
namespace {

TEST(WordsTest, BytesTakeTheLargestUnitThatFits) {
  EXPECT_EQ(BytesInWords(0), "0 B");
  EXPECT_EQ(BytesInWords(1023), "1023 B");
  EXPECT_EQ(BytesInWords(1536), "1.5 KiB");
  EXPECT_EQ(BytesInWords(uint64_t{3} << 40), "3.0 TiB");
  EXPECT_EQ(BytesInWords(uint64_t{5000} << 40), "5000.0 TiB");
}

TEST(WordsTest, OneIsNotPlural) {
  EXPECT_EQ(CountInWords(0, "file"), "0 files");
  EXPECT_EQ(CountInWords(1, "file"), "1 file");
  EXPECT_EQ(CountInWords(2, "file"), "2 files");
}

TEST(WordsTest, PrintAppends) {
  std::string text = "a";
  Print(text, "%d%s", 1, std::string(5000, 'x').c_str());
  EXPECT_EQ(text.size(), 1u + 1023u) << "cut off, not overrun";
  EXPECT_TRUE(text.starts_with("a1xx"));
}

}  // namespace
}  // namespace tidelane
