// Chunks are read and decoded by the caller and lanes together, whatever state the file is in.
#include "chunk/chunk_read.h"

#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "file/file_fixture.h"

namespace tidelane {
namespace {

constexpr uint64_t kRows = 24;
constexpr uint64_t kColumns = 1000;
constexpr uint64_t kChunkRows = 5;  // the last one reaches beyond the array
constexpr uint64_t kChunkColumns = 300;

// A file with an array of 4-byte elements in shuffled, deflated, checksummed chunks.
class ChunkRead : public ::testing::Test {
 public:
  void Write(unsigned lanes) {
    bench_ = std::make_unique<FileBench>(lanes, 16u << 20);
    bench_->record_ = false;
    bench_->Open();
    std::mt19937 random(3);
    array_.resize(kRows * kColumns);
    for (uint32_t& value : array_) value = random() % 5000;
    const std::vector<FilterSpec> filters = {{2, false, {4}}, {1, false, {1}}, {3, false, {}}};
    pipeline_ =
        std::make_shared<const Pipeline>(*Pipeline::Make(filters, DeflateWith::kLibdeflate));
    map_.assign(grid_.Chunks(), {});
    uint64_t address = 4096;
    for (uint64_t c = 0; c < grid_.Chunks(); ++c) {
      RawBytes stored;
      uint32_t mask = 0;
      const std::vector<uint32_t> chunk = ChunkOf(c);
      ASSERT_TRUE(pipeline_->Encode(std::as_bytes(std::span(chunk)), stored, mask).ok());
      ASSERT_TRUE(bench_->file_->Write(address, stored.size(), stored.data()).ok());
      map_[c] = {address, static_cast<uint32_t>(stored.size()), mask};
      address += stored.size() + 7;
    }
  }

  std::vector<uint32_t> ChunkOf(uint64_t number) const {
    const uint64_t row = number / grid_.Along(1) * kChunkRows;
    const uint64_t column = number % grid_.Along(1) * kChunkColumns;
    std::vector<uint32_t> chunk(kChunkRows * kChunkColumns, 77);
    for (uint64_t r = 0; r < kChunkRows && row + r < kRows; ++r) {
      for (uint64_t c = 0; c < kChunkColumns && column + c < kColumns; ++c) {
        chunk[r * kChunkColumns + c] = array_[(row + r) * kColumns + column + c];
      }
    }
    return chunk;
  }

  Status Read(const Box& box, std::vector<uint32_t>& memory, unsigned helpers,
              std::vector<std::byte> fill = {}) {
    memory.assign(box.size[0] * box.size[1], 0xdeadbeef);
    ChunkReading reading{
        {bench_->file_->SharedReads(), pipeline_, std::make_shared<const ChunkMap>(map_),
         std::make_shared<const std::vector<std::byte>>(std::move(fill)), grid_},
        TouchedChunks(grid_, box, MemoryLayout::Packed(2, box.size, 4)),
        reinterpret_cast<std::byte*>(memory.data())};
    return ReadChunks(std::move(reading), bench_->lanes_, helpers);
  }

  void ExpectArray(const Box& box, const std::vector<uint32_t>& memory) const {
    for (uint64_t r = 0; r < box.size[0]; ++r) {
      for (uint64_t c = 0; c < box.size[1]; ++c) {
        ASSERT_EQ(memory[r * box.size[1] + c],
                  array_[(box.start[0] + r) * kColumns + box.start[1] + c])
            << r << ", " << c;
      }
    }
  }

  const ChunkGrid grid_{
      .rank = 2, .extent = {kRows, kColumns}, .chunk = {kChunkRows, kChunkColumns}, .element = 4};
  const Box whole_{.start = {0, 0}, .size = {kRows, kColumns}};
  std::unique_ptr<FileBench> bench_;
  std::vector<uint32_t> array_;
  ChunkMap map_;
  std::shared_ptr<const Pipeline> pipeline_;
};

TEST_F(ChunkRead, TheCallerAloneReadsEverything) {
  Write(0);
  const uint64_t before = tidelane::Read(Counter::kChunksByCallers);
  std::vector<uint32_t> memory;
  ASSERT_TRUE(Read(whole_, memory, 4).ok());
  ExpectArray(whole_, memory);
  EXPECT_EQ(tidelane::Read(Counter::kChunksByCallers) - before, grid_.Chunks());
  bench_->RunLanes();  // lanes that come too late find nothing
  ExpectArray(whole_, memory);
}

TEST_F(ChunkRead, BytesThatWaitAreSeenWhileLanesStoreThem) {
  Write(3);
  std::mt19937_64 random(11);
  for (int round = 0; round < 300; ++round) {
    Box box;
    for (int d = 0; d < 2; ++d) {
      box.start[d] = random() % grid_.extent[d];
      box.size[d] = 1 + random() % (grid_.extent[d] - box.start[d]);
    }
    std::vector<uint32_t> memory;
    ASSERT_TRUE(Read(box, memory, 3).ok());
    ExpectArray(box, memory);
    // Something new to store: a chunk written again.
    const ChunkLocation& chunk = map_[random() % map_.size()];
    std::vector<std::byte> bytes(chunk.size);
    ASSERT_TRUE(bench_->file_->Read(chunk.address, chunk.size, bytes.data(), true).ok());
    ASSERT_TRUE(bench_->file_->Write(chunk.address, chunk.size, bytes.data()).ok());
  }
  EXPECT_TRUE(bench_->file_->drainer().Drain(Wait::kClose).ok());
}

TEST_F(ChunkRead, MissingChunksHaveTheFillValue) {
  Write(2);
  map_[1] = map_[9] = {};
  const uint32_t value = 0x01020304;
  const auto bytes = std::as_bytes(std::span(&value, 1));
  std::vector<uint32_t> memory;
  ASSERT_TRUE(Read(whole_, memory, 2, {bytes.begin(), bytes.end()}).ok());
  for (uint64_t c = 0; c < kColumns; ++c) {
    EXPECT_EQ(memory[c], c >= 300 && c < 600 ? value : array_[c]);
  }
  EXPECT_EQ(memory[10 * kColumns + 300], value);
  EXPECT_FALSE(Read(whole_, memory, 2).ok()) << "without one HDF5 knows what to do";
}

TEST_F(ChunkRead, DamageIsTold) {
  Write(2);
  std::vector<uint32_t> memory;
  const uint64_t at = map_[7].address + map_[7].size / 2;
  ASSERT_TRUE(bench_->Write(at, "damaged").ok());
  EXPECT_FALSE(Read(whole_, memory, 2).ok());
  const Box elsewhere{.start = {0, 0}, .size = {kChunkRows, kColumns}};
  EXPECT_TRUE(Read(elsewhere, memory, 2).ok());
}

TEST_F(ChunkRead, WhatIsBeyondTheEndIsNotReadAsZeros) {
  Write(2);
  std::vector<uint32_t> memory;
  map_.back().address += 1u << 20;
  EXPECT_FALSE(Read(whole_, memory, 2).ok());
  map_.back().address = UINT64_MAX - 10;
  EXPECT_FALSE(Read(whole_, memory, 2).ok());
}

TEST_F(ChunkRead, AFailureOfStorageIsTold) {
  Write(0);
  ASSERT_TRUE(bench_->file_->drainer().Drain(Wait::kClose).ok());
  bench_->plan_ = [](FaultPoint point, uint64_t, uint64_t) {
    return point == FaultPoint::kRead ? Fault{EIO} : Fault{};
  };
  std::vector<uint32_t> memory;
  EXPECT_EQ(Read(whole_, memory, 0).code(), EIO);
}

}  // namespace
}  // namespace tidelane
