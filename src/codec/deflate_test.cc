/// \file
/// Sizes: what users choose a level for. Whoever turns the plugin on must not find files that are much larger.
#include "codec/deflate.h"

#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "codec/shuffle.h"

namespace tidelane {
namespace {

using Bytes = std::vector<std::byte>;

constexpr size_t kChunk = 64 << 10;

struct Pattern {
  std::string name;
  size_t width;  // of an element
  Bytes bytes;
};

template <typename T>
Pattern Of(const std::string& name, const std::function<double(size_t)>& value) {
  std::vector<T> values(kChunk / sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(value(i));
  const auto bytes = std::as_bytes(std::span(values));
  return {name + " of " + std::to_string(sizeof(T)), sizeof(T), Bytes(bytes.begin(), bytes.end())};
}

template <typename T>
void AddNumbers(std::vector<Pattern>& patterns) {
  std::mt19937 random(1);
  const auto number = [](size_t i) { return static_cast<double>(i); };
  patterns.push_back(Of<T>("ramp", [&](size_t i) { return number(i % 30000); }));
  patterns.push_back(Of<T>("steep ramp", [&](size_t i) { return number(i * 37 % 32000); }));
  for (const unsigned bits : {2U, 8U}) {
    patterns.push_back(Of<T>("noise of " + std::to_string(bits) + " bits",
                             [&](size_t) { return number(random() >> (32 - bits)); }));
  }
  patterns.push_back(
      Of<T>("sparse", [&](size_t) { return random() % 100 == 0 ? number(random() % 1000) : 0; }));
  patterns.push_back(Of<T>("sine", [&](size_t i) { return 1000 * std::sin(number(i) * 0.01); }));
  patterns.push_back(Of<T>("constant", [](size_t) { return 42; }));
  double at = 1000;
  patterns.push_back(Of<T>("walk", [&](size_t) { return at += number(random() % 7) - 3; }));
}

std::vector<Pattern> Patterns() {
  std::vector<Pattern> patterns;
  AddNumbers<int32_t>(patterns);
  AddNumbers<float>(patterns);
  constexpr std::string_view kWords[] = {"the ", "temperature ", "of ", "run ",
                                         "at ",  "step ",        "12"};
  std::mt19937 random(2);
  std::string text;
  while (text.size() < kChunk) text += kWords[random() % std::size(kWords)];
  const auto bytes = std::as_bytes(std::span(text)).first(kChunk);
  patterns.push_back({"text", 1, Bytes(bytes.begin(), bytes.end())});
  const size_t plain = patterns.size();
  for (size_t i = 0; i < plain; ++i) {
    Pattern shuffled = patterns[i];
    if (shuffled.width == 1) continue;
    shuffled.name += ", shuffled";
    Shuffle(patterns[i].bytes, shuffled.width, shuffled.bytes.data());
    patterns.push_back(std::move(shuffled));
  }
  return patterns;
}

size_t SizeOf(DeflateWith with, unsigned level, const Bytes& bytes) {
  Bytes to(DeflateBound(bytes.size()));
  const auto made = DeflateEncode(with, level, bytes, to);
  EXPECT_TRUE(made.has_value());
  if (!made) return 0;
  Bytes back(bytes.size());
  size_t size = 0;
  EXPECT_EQ(DeflateDecode(std::span(to).first(*made), back, size), Inflated::kDone);
  EXPECT_TRUE(back == bytes);
  return *made;
}

TEST(DeflateTest, NoPatternIsMuchLargerThanZlibs) {
  for (const Pattern& pattern : Patterns()) {
    for (unsigned level = 1; level < kDeflateLevels - 1; ++level) {
      const size_t zlib = SizeOf(DeflateWith::kZlib, level, pattern.bytes);
      const size_t ours = SizeOf(DeflateWith::kLibdeflate, level, pattern.bytes);
      const double few = 0.01 * kChunk;  // of what becomes almost nothing, a part says little
      EXPECT_LE(static_cast<double>(ours), std::max(1.05 * zlib, zlib + few))
          << pattern.name << ", level " << level << ": " << ours << " against " << zlib;
    }
  }
}

// Where it takes longest, the smallest files are what was asked for.
TEST(DeflateTest, TheHighestLevelIsZlibs) {
  const Pattern ramp = Of<int32_t>("ramp", [](size_t i) { return static_cast<double>(i); });
  EXPECT_EQ(SizeOf(DeflateWith::kLibdeflate, kDeflateLevels - 1, ramp.bytes),
            SizeOf(DeflateWith::kZlib, kDeflateLevels - 1, ramp.bytes));
}

}  // namespace
}  // namespace tidelane
