// What the log is checked with, against its published values and against itself.
#include "log/crc32c.h"

#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace tidelane {
namespace {

TEST(Crc32cTest, HasThePublishedValues) {
  const std::string digits = "123456789";
  EXPECT_EQ(Crc32c(digits.data(), digits.size()), 0xe3069283u);
  EXPECT_EQ(Crc32c(nullptr, 0), 0u);
  // RFC 3720, B.4.
  std::string bytes(32, '\0');
  EXPECT_EQ(Crc32c(bytes.data(), bytes.size()), 0x8a9136aau);
  bytes.assign(32, '\xff');
  EXPECT_EQ(Crc32c(bytes.data(), bytes.size()), 0x62a8ab43u);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i);
  EXPECT_EQ(Crc32c(bytes.data(), bytes.size()), 0x46dd794eu);
}

TEST(Crc32cTest, IsTheSameByInstructionAndByTableAndInParts) {
  std::mt19937 random(1);
  std::vector<unsigned char> bytes(300);
  for (auto& byte : bytes) byte = static_cast<unsigned char>(random());
  for (size_t begin = 0; begin < 9; ++begin) {
    for (size_t size = 0; size + begin <= bytes.size(); ++size) {
      const unsigned char* const at = bytes.data() + begin;
      const uint32_t whole = internal::Crc32cByTable(at, size, 0);
      ASSERT_EQ(Crc32c(at, size), whole);
      ASSERT_EQ(Crc32c(at + size / 3, size - size / 3, Crc32c(at, size / 3)), whole);
    }
  }
}

// Long ones are taken as several stretches side by side.
TEST(Crc32cTest, IsTheSameForLongBytes) {
  std::mt19937 random(2);
  std::vector<unsigned char> bytes(100'000);
  for (auto& byte : bytes) byte = static_cast<unsigned char>(random());
  for (const size_t size : {12'287, 12'288, 12'289, 24'576, 50'000, 99'990}) {
    for (const size_t begin : {0, 3}) {
      const unsigned char* const at = bytes.data() + begin;
      ASSERT_EQ(Crc32c(at, size, 0x12345678), internal::Crc32cByTable(at, size, 0x12345678));
    }
  }
}

}  // namespace
}  // namespace tidelane
