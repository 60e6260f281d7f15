// What the predictor tells of patterns that programs have, and how seldom it speaks of those that they have not.
#include "cache/access_predictor.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace tidelane {
namespace {

constexpr uint64_t kMiB = 1u << 20;
constexpr uint64_t kNoEnd = uint64_t{1} << 40;

using Reads = std::vector<ByteRange>;

uint64_t Sum(const Reads& ranges) {
  return std::accumulate(ranges.begin(), ranges.end(), uint64_t{0},
                         [](uint64_t sum, const ByteRange& range) { return sum + range.size(); });
}

// How much of `wanted` lies in `ranges`.
uint64_t Covered(const Reads& ranges, const ByteRange& wanted) {
  uint64_t covered = 0;
  for (const ByteRange& range : ranges) {
    const uint64_t begin = std::max(range.begin, wanted.begin);
    const uint64_t end = std::min(range.end, wanted.end);
    if (begin < end) covered += end - begin;
  }
  return std::min(covered, wanted.size());
}

// A program that reads, and a store that keeps what was predicted last.
class Program {
 public:
  explicit Program(uint64_t eof = kNoEnd, uint64_t most = 1024 * kMiB) : eof_(eof), most_(most) {}

  void Read(uint64_t address, uint64_t size) {
    const ByteRange range{address, address + size};
    const uint64_t hit = Covered(next_, range);
    hit_ += hit;
    missed_ += range.size() - hit;
    for (ByteRange& one : next_) {  // what was read is not wasted
      if (one.begin >= range.begin && one.begin < range.end)
        one.begin = std::min(one.end, range.end);
    }
    const uint64_t left = Sum(next_);
    predictor_.Observe(address, size);
    predictor_.Predict(most_, eof_, next_);
    for (const ByteRange& one : next_) EXPECT_LE(one.end, eof_);
    uint64_t kept = 0;
    for (const ByteRange& one : before_) kept += Covered(next_, one);
    wasted_ += left - std::min(left, kept);
    before_ = next_;
  }
  uint64_t TakeMissed() { return std::exchange(missed_, 0); }
  uint64_t hit() const { return hit_; }
  uint64_t wasted() const { return wasted_; }
  const Reads& next() const { return next_; }
  AccessPredictor predictor_;

 private:
  const uint64_t eof_;
  const uint64_t most_;
  Reads next_;
  Reads before_;
  uint64_t hit_ = 0;
  uint64_t missed_ = 0;
  uint64_t wasted_ = 0;
};

TEST(AccessPredictor, OneReadTellsNothing) {
  Program program;
  program.Read(4096, kMiB);
  EXPECT_TRUE(program.next().empty());
}

TEST(AccessPredictor, ARunGoesOnAsFarAsItHasCome) {
  Program program;
  program.Read(0, kMiB);
  program.Read(kMiB, kMiB);
  EXPECT_EQ(program.next(), (Reads{{2 * kMiB, 4 * kMiB}}));
  program.Read(2 * kMiB, kMiB);
  EXPECT_EQ(program.next(), (Reads{{3 * kMiB, 6 * kMiB}}));
}

TEST(AccessPredictor, NothingLiesBeyondTheEnd) {
  Program program(5 * kMiB / 2);
  program.Read(0, kMiB);
  program.Read(kMiB, kMiB);
  EXPECT_EQ(program.next(), (Reads{{2 * kMiB, 5 * kMiB / 2}}));
}

TEST(AccessPredictor, NoMoreThanIsAllowed) {
  Program program(kNoEnd, kMiB / 2);
  for (uint64_t i = 0; i < 8; ++i) program.Read(i * kMiB, kMiB);
  EXPECT_EQ(program.next(), (Reads{{8 * kMiB, 17 * kMiB / 2}}));
}

// The variables of a time step lie one after another, with some metadata in between; steps too.
TEST(AccessPredictor, TheSecondStepOfASeriesIsToldFromTheFirst) {
  std::mt19937 random(1);
  Program program;
  uint64_t address = 2048;
  for (int step = 0; step < 5; ++step) {
    for (int variable = 0; variable < 8; ++variable) {
      program.Read(address, 4 * kMiB);
      address += 4 * kMiB + random() % 3 * 2048 + 272;
    }
    const uint64_t missed = program.TakeMissed();
    if (step > 0) {
      EXPECT_EQ(missed, 0u) << step;
    }
  }
}

// Three of eight variables, in an order of the program's own.
TEST(AccessPredictor, SomeVariablesOfEachStepAreToldFromTheThirdOn) {
  std::mt19937 random(2);
  Program program;
  uint64_t step_begin = 0;
  for (int step = 0; step < 6; ++step) {
    const uint64_t moved = random() % 2 * 2048;  // metadata grows unevenly
    for (const uint64_t variable : {5u, 1u, 3u})
      program.Read(step_begin + variable * (4 * kMiB + 272), 4 * kMiB);
    step_begin += 8 * 4 * kMiB + 4096 + moved;
    const uint64_t missed = program.TakeMissed();
    if (step > 2) {
      EXPECT_LE(missed, 3 * 4096u) << step;
    }
  }
}

TEST(AccessPredictor, EverySixthSlabIsToldFromTheFourthOn) {
  Program program;
  for (uint64_t i = 0; i < 10; ++i) {
    program.Read(i * 6 * kMiB, kMiB);
    const uint64_t missed = program.TakeMissed();
    if (i > 2) {
      EXPECT_EQ(missed, 0u) << i;
    }
  }
}

TEST(AccessPredictor, BackwardsToo) {
  Program program;
  for (uint64_t i = 10; i-- > 0;) {
    program.Read(i * 3 * kMiB, kMiB);
    const uint64_t missed = program.TakeMissed();
    if (i < 7) {
      EXPECT_EQ(missed, 0u) << i;
    }
  }
}

TEST(AccessPredictor, TheNextEpochBeginsWhereTheLastOnesDid) {
  Program program(64 * kMiB);
  for (int epoch = 0; epoch < 5; ++epoch) {
    for (uint64_t i = 0; i < 64; ++i) program.Read(i * kMiB, kMiB);
    const uint64_t missed = program.TakeMissed();
    if (epoch > 2) {
      EXPECT_EQ(missed, 0u) << epoch;
    } else {
      EXPECT_LE(missed, 2 * kMiB) << epoch;
    }
  }
}

// What was read once is not kept: halos are fetched again.
TEST(AccessPredictor, SlabsWithHalosOverlap) {
  Program program;
  for (uint64_t i = 0; i < 8; ++i) program.Read(i * kMiB, kMiB + 65536);
  EXPECT_LE(program.TakeMissed(), 2 * kMiB + 8 * 65536);
}

TEST(AccessPredictor, WhoReadsAtRandomIsSoonLeftAlone) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937_64 random(seed);
    Program program(1000 * 64 * 1024);
    for (int i = 0; i < 20'000; ++i) program.Read(random() % 1000 * 64 * 1024, 64 * 1024);
    EXPECT_LE(program.wasted(), 20'000u * 64 * 1024 / 100) << seed;
  }
}

// Each sample is two neighbouring reads: a run, as far as can be told.
TEST(AccessPredictor, SamplesOfSeveralReadsToo) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937_64 random(seed);
    Program program(1000 * 128 * 1024);
    for (int i = 0; i < 10'000; ++i) {
      const uint64_t sample = random() % 1000 * 128 * 1024;
      program.Read(sample, 64 * 1024);
      program.Read(sample + 64 * 1024, 64 * 1024);
    }
    EXPECT_LE(program.wasted(), 10'000u * 128 * 1024 / 100) << seed;
  }
}

TEST(AccessPredictor, AfterRandomReadsAPatternIsFoundAgain) {
  std::mt19937_64 random(3);
  Program program(uint64_t{100'000} * 64 * 1024);
  for (int i = 0; i < 5000; ++i) program.Read(random() % 1000 * 64 * 1024, 64 * 1024);
  program.TakeMissed();
  for (uint64_t i = 0; i < 2000; ++i) program.Read(i * 64 * 1024, 64 * 1024);
  EXPECT_LE(program.TakeMissed(), 200u * 64 * 1024);
}

// Whatever is read: what it predicts is bounded by what was read.
TEST(AccessPredictor, NeverFurtherThanThePatternHasHeld) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937_64 random(seed);
    Program program;
    uint64_t address = 0;
    uint64_t read = 0;
    for (int i = 0; i < 2000; ++i) {
      const uint64_t size = (1 + random() % 4) * 32 * 1024;
      if (random() % 5 == 0) address = random() % 8 * 16 * kMiB;
      program.Read(address, size);
      read += size;
      address += random() % 3 == 0 ? size : 2 * size;
      EXPECT_LE(Sum(program.next()), 2 * read);
    }
  }
}

}  // namespace
}  // namespace tidelane
