/// \file
/// Bits do what a vector of bools does, at random sizes, places and densities.
#include "predicate/bits.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace tidelane::predicate {
namespace {

using Bools = std::vector<bool>;

Bits Of(const Bools& bools) {
  Bits bits(bools.size());
  for (size_t i = 0; i < bools.size(); ++i) {
    if (bools[i]) bits.words()[i / 64] |= uint64_t{1} << i % 64;
  }
  return bits;
}

Bools BoolsOf(const Bits& bits) {
  Bools bools;
  for (size_t i = 0; i < bits.size(); ++i) bools.push_back(bits.At(i));
  return bools;
}

/// Also that nothing is set beyond the last.
void ExpectEqual(const Bits& bits, const Bools& bools) {
  ASSERT_EQ(BoolsOf(bits), bools);
  ASSERT_EQ(bits.Count(), static_cast<uint64_t>(std::count(bools.begin(), bools.end(), true)));
  ASSERT_EQ(bits.word_count(), (bools.size() + 63) / 64);
  if (bits.size() % 64 != 0) {
    ASSERT_EQ(bits.words()[bits.word_count() - 1] >> bits.size() % 64, 0U);
  }
}

/// None, few, half, most, all, or long runs.
Bools Random(size_t size, std::mt19937& random) {
  Bools bools(size);
  const unsigned density = random() % 6;
  bool run = false;
  for (size_t i = 0; i < size; ++i) {
    if (density == 5) {
      run = random() % 90 == 0 ? !run : run;
      bools[i] = run;
    } else {
      constexpr unsigned kOf100[] = {0, 3, 50, 97, 100};
      bools[i] = random() % 100 < kOf100[density];
    }
  }
  return bools;
}

template <class Body>
void AtRandom(Body body) {
  std::mt19937 random(4);
  for (size_t size = 0; size < 200; ++size) {
    for (int round = 0; round < 6; ++round) body(Random(size, random), random);
  }
  for (int round = 0; round < 40; ++round) body(Random(1000 + random() % 1000, random), random);
}

TEST(BitsTest, CountsAndWholeChanges) {
  AtRandom([](const Bools& bools, std::mt19937& random) {
    Bits bits = Of(bools);
    ExpectEqual(bits, bools);
    EXPECT_EQ(bits.None(), std::find(bools.begin(), bools.end(), true) == bools.end());
    Bools other = Random(bools.size(), random);
    Bools both = bools;
    Bools either = bools;
    Bools flipped = bools;
    for (size_t i = 0; i < bools.size(); ++i) {
      both[i] = bools[i] && other[i];
      either[i] = bools[i] || other[i];
      flipped[i] = !bools[i];
    }
    Bits changed = bits;
    changed.And(Of(other));
    ExpectEqual(changed, both);
    changed = bits;
    changed.Or(Of(other));
    ExpectEqual(changed, either);
    changed = bits;
    changed.Flip();
    ExpectEqual(changed, flipped);
    changed.SetAll();
    ExpectEqual(changed, Bools(bools.size(), true));
    changed.Reset(bools.size() / 2);
    ExpectEqual(changed, Bools(bools.size() / 2));
  });
}

TEST(BitsTest, Ranges) {
  AtRandom([](const Bools& bools, std::mt19937& random) {
    const Bools other = Random(random() % 300, random);
    for (int round = 0; round < 4; ++round) {
      const size_t count = random() % (std::min(bools.size(), other.size()) + 1);
      const size_t to = random() % (bools.size() - count + 1);
      const size_t from = random() % (other.size() - count + 1);
      Bools expected = bools;
      std::copy_n(other.begin() + static_cast<ptrdiff_t>(from), count,
                  expected.begin() + static_cast<ptrdiff_t>(to));
      Bits bits = Of(bools);
      bits.CopyRange(to, Of(other), from, count);
      ExpectEqual(bits, expected);

      expected = bools;
      std::fill_n(expected.begin() + static_cast<ptrdiff_t>(to), count, true);
      bits = Of(bools);
      bits.SetRange(to, count);
      ExpectEqual(bits, expected);
    }
  });
}

TEST(BitsTest, Runs) {
  AtRandom([](const Bools& bools, std::mt19937&) {
    const Bits bits = Of(bools);
    const auto next = [&](size_t from, bool wanted) {
      return static_cast<size_t>(
          std::find(bools.begin() + static_cast<ptrdiff_t>(from), bools.end(), wanted) -
          bools.begin());
    };
    for (size_t begin = 0; begin < bools.size(); ++begin) {
      const size_t first = next(begin, true);
      ASSERT_EQ(bits.NextRun(begin), std::make_pair(first, next(first, false)));
    }
    for (size_t beyond : {bools.size(), bools.size() + 100}) {
      ASSERT_EQ(bits.NextRun(beyond), std::make_pair(bools.size(), bools.size()));
    }
  });
}

TEST(BitsTest, PositionsAndBytes) {
  AtRandom([](const Bools& bools, std::mt19937& random) {
    const uint64_t base = random() % 2 == 0 ? random() : uint64_t{1} << 40;
    std::vector<uint64_t> positions;
    std::vector<uint8_t> bytes;
    for (size_t i = 0; i < bools.size(); ++i) {
      if (bools[i]) positions.push_back(base + i);
      bytes.push_back(bools[i] ? 1 : 0);
    }
    const Bits bits = Of(bools);
    std::vector<uint64_t> written(positions.size());
    bits.Positions(base, written.data());
    ASSERT_EQ(written, positions);
    std::vector<uint8_t> ones(bools.size(), 7);
    bits.Bytes(ones.data());
    ASSERT_EQ(ones, bytes);
  });
}

TEST(BitsTest, Gather) {
  AtRandom([](const Bools& bools, std::mt19937& random) {
    for (size_t size : {1, 2, 3, 4, 8, 16, 20}) {
      const size_t apart = random() % 4;  // elements need not be aligned
      std::vector<uint8_t> elements(apart + bools.size() * size);
      for (uint8_t& byte : elements) byte = static_cast<uint8_t>(random());
      std::vector<uint8_t> expected;
      for (size_t i = 0; i < bools.size(); ++i) {
        const auto element = elements.begin() + static_cast<ptrdiff_t>(apart + i * size);
        if (bools[i])
          expected.insert(expected.end(), element, element + static_cast<ptrdiff_t>(size));
      }
      std::vector<uint8_t> gathered(expected.size());
      Of(bools).Gather(elements.data() + apart, size, gathered.data());
      ASSERT_EQ(gathered, expected) << size;
    }
  });
}

}  // namespace
}  // namespace tidelane::predicate
