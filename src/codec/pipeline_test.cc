/// \file
/// Every pipeline of the three filters gives back what went in, whichever library deflates, and
/// refuses what was damaged without writing a byte too far.
#include "codec/pipeline.h"

#include <zlib.h>

#include <algorithm>
#include <random>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace tidelane {
namespace {

using Bytes = std::vector<std::byte>;

// ISA-L where it is installed.
std::vector<DeflateWith> All() {
  std::vector<DeflateWith> all{DeflateWith::kLibdeflate, DeflateWith::kZlib};
  if (std::string why; PrepareDeflate(DeflateWith::kIsal, why)) all.push_back(DeflateWith::kIsal);
  return all;
}
constexpr size_t kSizes[] = {0, 1, 2, 3, 5, 8, 63, 64, 1000, 4097, 65536, 100003};

FilterSpec Deflate(unsigned level) { return {1, true, {level}}; }
FilterSpec Shuffling(unsigned element) { return {2, true, {element}}; }
FilterSpec Fletcher() { return {3, false, {}}; }

// Numbers that vary slowly: what shuffle and deflate are used for.
Bytes Smooth(size_t n) {
  Bytes bytes(n);
  for (size_t i = 0; i < n; ++i) {
    const uint32_t number = static_cast<uint32_t>(i / 4 * 37 + i / 1000 * 11);
    bytes[i] = static_cast<std::byte>(number >> (i % 4 * 8));
  }
  return bytes;
}

Bytes Noise(size_t n) {
  std::mt19937 random(static_cast<unsigned>(n) + 1);
  Bytes bytes(n);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

Pipeline MakeOf(const std::vector<FilterSpec>& filters, DeflateWith with) {
  std::optional<Pipeline> pipeline = Pipeline::Make(filters, with);
  EXPECT_TRUE(pipeline.has_value());
  return *pipeline;
}

Bytes Encoded(const Pipeline& pipeline, const Bytes& chunk) {
  RawBytes out(7);  // replaced
  uint32_t mask = 99;
  const Status status = pipeline.Encode(chunk, out, mask);
  EXPECT_TRUE(status.ok()) << status.Message();
  EXPECT_EQ(mask, 0u);
  EXPECT_LE(out.size(), pipeline.Bound(chunk.size()));
  return {out.begin(), out.end()};
}

// Into a buffer that ends where the chunk does: the address sanitizer sees a byte too far.
Status DecodeInto(const Pipeline& pipeline, const Bytes& stored, uint32_t mask, Bytes& chunk) {
  chunk.shrink_to_fit();
  return pipeline.Decode(stored, mask, chunk);
}

void CheckRoundTrip(const std::vector<FilterSpec>& filters, DeflateWith with) {
  const Pipeline pipeline = MakeOf(filters, with);
  for (size_t n : kSizes) {
    for (const Bytes& chunk : {Smooth(n), Noise(n)}) {
      const Bytes stored = Encoded(pipeline, chunk);
      Bytes back(n, std::byte{1});
      const Status status = DecodeInto(pipeline, stored, 0, back);
      ASSERT_TRUE(status.ok()) << status.Message() << " " << n;
      ASSERT_EQ(back, chunk) << n;
    }
  }
}

TEST(PipelineTest, EverySelectionAndOrderRoundTrips) {
  for (DeflateWith with : All()) {
    std::vector<FilterSpec> filters{Deflate(4), Shuffling(4), Fletcher()};
    std::ranges::sort(filters, {}, &FilterSpec::id);
    do {
      for (size_t n = 0; n <= filters.size(); ++n) {
        CheckRoundTrip({filters.begin(), filters.begin() + static_cast<ptrdiff_t>(n)}, with);
      }
    } while (std::ranges::next_permutation(filters, {}, &FilterSpec::id).found);
  }
}

TEST(PipelineTest, EveryLevelRoundTrips) {
  for (DeflateWith with : All()) {
    for (unsigned level = 0; level <= 9; ++level) {
      CheckRoundTrip({Shuffling(8), Deflate(level)}, with);
    }
  }
}

TEST(PipelineTest, AFilterTwiceRoundTrips) {
  CheckRoundTrip({Deflate(1), Deflate(6), Fletcher(), Deflate(9)}, DeflateWith::kLibdeflate);
  CheckRoundTrip({Shuffling(4), Shuffling(2), Fletcher(), Fletcher()}, DeflateWith::kLibdeflate);
}

TEST(PipelineTest, EveryLibraryReadsTheOthers) {
  const Bytes chunk = Smooth(100000);
  for (DeflateWith writer : All()) {
    const Bytes stored = Encoded(MakeOf({Shuffling(4), Deflate(6), Fletcher()}, writer), chunk);
    for (DeflateWith reader : All()) {
      Bytes back(chunk.size());
      ASSERT_TRUE(
          DecodeInto(MakeOf({Shuffling(4), Deflate(6), Fletcher()}, reader), stored, 0, back).ok());
      ASSERT_EQ(back, chunk);
    }
  }
}

// What HDF5's filter does: compress2, and nothing around it.
TEST(PipelineTest, ZlibIsZlibByteByByte) {
  for (unsigned level : {0, 1, 4, 6, 9}) {
    const Bytes chunk = Smooth(70001);
    Bytes expected(compressBound(chunk.size()));
    uLongf size = expected.size();
    ASSERT_EQ(compress2(reinterpret_cast<Bytef*>(expected.data()), &size,
                        reinterpret_cast<const Bytef*>(chunk.data()), chunk.size(),
                        static_cast<int>(level)),
              Z_OK);
    expected.resize(size);
    EXPECT_EQ(Encoded(MakeOf({Deflate(level)}, DeflateWith::kZlib), chunk), expected) << level;
  }
}

TEST(PipelineTest, LibdeflateIsAboutAsSmallAsZlib) {
  const Bytes chunk = Smooth(1 << 20);
  for (unsigned level = 1; level <= 9; ++level) {
    const std::vector<FilterSpec> filters{Shuffling(4), Deflate(level)};
    const size_t ours = Encoded(MakeOf(filters, DeflateWith::kLibdeflate), chunk).size();
    const size_t native = Encoded(MakeOf(filters, DeflateWith::kZlib), chunk).size();
    EXPECT_LE(static_cast<double>(ours), 1.05 * static_cast<double>(native)) << level;
  }
}

TEST(PipelineTest, IsalCompresses) {
  if (All().back() != DeflateWith::kIsal) GTEST_SKIP() << "ISA-L (libisal2) is not installed";
  const Bytes chunk = Smooth(1 << 20);
  for (const unsigned level : {1, 6, 9}) {
    const std::vector<FilterSpec> filters{Shuffling(4), Deflate(level)};
    const Bytes ours = Encoded(MakeOf(filters, DeflateWith::kIsal), chunk);
    EXPECT_NE(ours, Encoded(MakeOf(filters, DeflateWith::kLibdeflate), chunk));
    EXPECT_LE(ours.size(), chunk.size() / 20) << level;  // libdeflate: a 50th
  }
}

TEST(PipelineTest, AMaskLeavesFiltersOut) {
  const Bytes chunk = Smooth(10001);
  const Bytes shuffled = Encoded(MakeOf({Shuffling(4)}, DeflateWith::kLibdeflate), chunk);
  const Pipeline all = MakeOf({Deflate(6), Shuffling(4), Fletcher()}, DeflateWith::kLibdeflate);
  Bytes back(chunk.size());
  ASSERT_TRUE(DecodeInto(all, shuffled, 0b101, back).ok());
  EXPECT_EQ(back, chunk);
  ASSERT_TRUE(DecodeInto(all, chunk, 0b111, back).ok());
  EXPECT_EQ(back, chunk);
}

TEST(PipelineTest, WhatItCannotRunIsRefused) {
  const auto make = [](std::vector<FilterSpec> filters) {
    return Pipeline::Make(filters, DeflateWith::kLibdeflate).has_value();
  };
  EXPECT_TRUE(make({}));
  EXPECT_FALSE(make({{4, true, {}}}));  // szip
  EXPECT_FALSE(make({{32015, true, {3}}}));
  EXPECT_FALSE(make({{0, true, {}}}));
  EXPECT_FALSE(make({{1, true, {10}}}));
  EXPECT_FALSE(make({{1, true, {}}}));
  EXPECT_FALSE(make({{2, true, {}}}));
  EXPECT_FALSE(make({{2, true, {0}}}));
  EXPECT_FALSE(make(std::vector<FilterSpec>(33, Fletcher())));
  EXPECT_FALSE(Pipeline::Make(std::vector{Deflate(6)}, DeflateWith::kNative).has_value());
  EXPECT_TRUE(Pipeline::Make(std::vector{Fletcher()}, DeflateWith::kNative).has_value());
}

TEST(PipelineTest, AWrongLengthFails) {
  const std::vector<FilterSpec> pipelines[] = {
      {Deflate(6)}, {Shuffling(4)}, {Fletcher()}, {Shuffling(4), Deflate(6), Fletcher()}, {}};
  for (const std::vector<FilterSpec>& filters : pipelines) {
    const Pipeline pipeline = MakeOf(filters, DeflateWith::kLibdeflate);
    const Bytes stored = Encoded(pipeline, Smooth(1000));
    for (size_t n : {0, 1, 999, 1001, 5000}) {
      Bytes back(n);
      EXPECT_FALSE(DecodeInto(pipeline, stored, 0, back).ok()) << n;
    }
  }
}

TEST(PipelineTest, ATruncatedChunkFails) {
  for (const std::vector<FilterSpec>& filters :
       {std::vector<FilterSpec>{Deflate(6)}, std::vector<FilterSpec>{Shuffling(4), Fletcher()}}) {
    const Pipeline pipeline = MakeOf(filters, DeflateWith::kLibdeflate);
    const Bytes chunk = Smooth(3000);
    const Bytes stored = Encoded(pipeline, chunk);
    for (size_t n = 0; n < stored.size(); ++n) {
      Bytes back(chunk.size());
      const Bytes part(stored.begin(), stored.begin() + static_cast<ptrdiff_t>(n));
      ASSERT_FALSE(DecodeInto(pipeline, part, 0, back).ok()) << n;
    }
  }
}

// Damage that a checksum covers is found; without one, decoding ends all the same.
TEST(PipelineTest, DamageNeverOverruns) {
  std::mt19937 random(7);
  const Bytes chunk = Smooth(20000);
  const Pipeline checked = MakeOf({Shuffling(4), Deflate(6)}, DeflateWith::kLibdeflate);
  const Pipeline nested = MakeOf({Deflate(1), Fletcher(), Deflate(6)}, DeflateWith::kLibdeflate);
  for (const Pipeline* pipeline : {&checked, &nested}) {
    const Bytes stored = Encoded(*pipeline, chunk);
    for (int round = 0; round < 3000; ++round) {
      Bytes damaged = stored;
      for (unsigned n = 1 + random() % 4; n-- > 0;) {
        damaged[random() % damaged.size()] = static_cast<std::byte>(random());
      }
      Bytes back(chunk.size());
      if (DecodeInto(*pipeline, damaged, 0, back).ok()) {
        ASSERT_EQ(back, chunk);  // adler32
      }
    }
  }
}

TEST(PipelineTest, NoiseIsNoChunk) {
  const Pipeline pipeline = MakeOf({Shuffling(4), Deflate(6), Fletcher()}, DeflateWith::kZlib);
  for (size_t n = 0; n < 500; ++n) {
    Bytes back(4096);
    EXPECT_FALSE(DecodeInto(pipeline, Noise(n), 0, back).ok()) << n;
    EXPECT_FALSE(DecodeInto(pipeline, Noise(n), 0b100, back).ok()) << n;
  }
}

TEST(PipelineTest, ManyThreadsAtOnce) {
  const Pipeline pipeline =
      MakeOf({Shuffling(4), Deflate(3), Fletcher()}, DeflateWith::kLibdeflate);
  const Bytes chunk = Smooth(30000);
  const Bytes expected = Encoded(pipeline, chunk);
  std::vector<std::thread> threads;
  for (int t = 0; t < 24; ++t) {  // more than the pool keeps
    threads.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        EXPECT_EQ(Encoded(pipeline, chunk), expected);
        Bytes back(chunk.size());
        EXPECT_TRUE(pipeline.Decode(expected, 0, back).ok());
        EXPECT_EQ(back, chunk);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace tidelane
