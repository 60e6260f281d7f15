/// \file
/// How many requests storage sees, and how many bytes, where a request costs latency and a byte bandwidth: counted. Reads take their time;
/// of writes the store only says how long they took, so that a busy machine does not change what is learned from them.
#include <time.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "file/file_fixture.h"

namespace tidelane {
namespace {

constexpr uint64_t kKib = 1024, kMib = 1024 * kKib;
constexpr uint64_t kWindow = 64 * kKib;  // of HDF5's sieve

struct Costs {
  uint64_t latency_us = 0, ns_per_kib = 0;

  uint64_t Ns(uint64_t size) const { return latency_us * 1000 + ns_per_kib * size / kKib; }
};

// The file itself, which says that writes took what they cost.
class CostingStore final : public Store {
 public:
  CostingStore(std::unique_ptr<Store> file, Costs costs) : file_(std::move(file)), costs_(costs) {}

  int Write(Run& run) override { return Told(run, file_->Write(run)); }
  int WriteBytes(Run& run, const void* bytes) override {
    return Told(run, file_->WriteBytes(run, bytes));
  }
  int Read(uint64_t address, void* buffer, size_t n) override {
    return file_->Read(address, buffer, n);
  }
  uint64_t size() const override { return file_->size(); }
  int SetSize(uint64_t size) override { return file_->SetSize(size); }
  int Reserve(uint64_t address, uint64_t size) override { return file_->Reserve(address, size); }
  void EndReservations(uint64_t& found) override { file_->EndReservations(found); }
  int Version(FileVersion& version) override { return file_->Version(version); }
  bool memory_speed() const override { return file_->memory_speed(); }
  Status Publish(Publishing when) override { return file_->Publish(when); }
  void Withhold(Withholding why) override { file_->Withhold(why); }
  int Close() override { return file_->Close(); }

 private:
  int Told(Run& run, int error) const {
    run.write_end_ns = run.write_begin_ns + costs_.Ns(run.size());
    return error;
  }

  const std::unique_ptr<Store> file_;
  const Costs costs_;
};

class FileRequestsTest : public ::testing::Test {
 protected:
  void Open(const std::string& contents, uint64_t latency_us, uint64_t ns_per_kib) {
    bench_.config_.mode = Mode::kAuto;
    bench_.record_ = false;
    const Costs costs{latency_us, ns_per_kib};
    bench_.make_store_ = [costs](const std::shared_ptr<Device>& device) {
      return std::make_unique<CostingStore>(DirectStoreOn(device), costs);
    };
    bench_.plan_ = [this, costs](FaultPoint point, uint64_t, uint64_t size) {
      Seen* const seen = point == FaultPoint::kRead    ? &reads_
                         : point == FaultPoint::kWrite ? &writes_
                                                       : nullptr;
      if (seen == nullptr) return Fault{};
      ++seen->requests;
      seen->bytes += size;
      const timespec time{.tv_sec = 0, .tv_nsec = static_cast<long>(costs.Ns(size))};
      if (point == FaultPoint::kRead && time.tv_nsec != 0)
        ::clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr);
      return Fault{};
    };
    bench_.Open(contents);
    ASSERT_TRUE(bench_.file_->Lock(true).ok());
  }
  // Pieces of 8 bytes, so far apart.
  void WriteColumn(uint64_t count, uint64_t apart) {
    std::string expected = bench_.Stored();
    const OneDataset dataset;
    for (uint64_t i = 0; i < count; ++i) {
      ASSERT_TRUE(bench_.Write(i * apart + 8, "changed!").ok());
      expected.replace(i * apart + 8, 8, "changed!");
    }
    ASSERT_TRUE(bench_.file_->Flush().ok());
    EXPECT_EQ(Difference(bench_.Stored(), expected), "");
  }

  struct Seen {
    std::atomic<uint64_t> requests{0}, bytes{0};
  };
  Seen reads_, writes_;
  FileBench bench_{1, 16 * kMib};
};

// 1 ms and 200 MB/s: a gap of 8 KiB costs less than a tenth of a request.
TEST_F(FileRequestsTest, AColumnTakesNoMoreWritesThanTheSieveWouldWhereRequestsAreDear) {
  constexpr uint64_t kRows = 500, kRow = 8 * kKib;
  Open(std::string(kRows * kRow, 'o'), 1000, 5'000);
  WriteColumn(kRows, kRow);
  EXPECT_LE(writes_.requests, kRows * kRow / kWindow);
  EXPECT_LE(reads_.requests, kRows * kRow / kWindow);
  EXPECT_LE(writes_.bytes, kRows * kRow);
}

// 0.2 ms and 10 MB/s: one of 16 KiB costs sixteen. First runs may be joined in vain: they tell what bytes cost.
TEST_F(FileRequestsTest, AndOnlyItsBytesWhereBytesAre) {
  constexpr uint64_t kRows = 512, kRow = 16 * kKib;
  Open(std::string(kRows * kRow, 'o'), 200, 100'000);
  WriteColumn(kRows, kRow);
  EXPECT_LE(reads_.requests, 4u);
  EXPECT_LE(writes_.bytes, 4 * kMib + kRows * 8);
}

TEST_F(FileRequestsTest, AndWhereBothAreCheap) {
  constexpr uint64_t kRows = 500, kRow = 8 * kKib;
  bench_.storage_->promises_speed = true;
  bench_.chooser_times_.quick_request_ns = 3'600'000'000'000;  // a busy machine is no slow storage
  Open(std::string(kRows * kRow, 'o'), 0, 0);
  WriteColumn(kRows, kRow);
  EXPECT_EQ(reads_.requests, 0u);
  EXPECT_EQ(writes_.bytes, kRows * 8);
}

// 0.2 ms and 10 MB/s: a block of 64 KiB takes as long as 27 reads of 512 bytes, of each of which it has one.
TEST_F(FileRequestsTest, ScatteredMetadataIsReadAsItIsAskedForWhereBytesAreDear) {
  constexpr uint64_t kObjects = 400, kApart = 100 * kKib, kHeader = 512;
  Open(std::string(kObjects * kApart, 'm'), 200, 100'000);
  for (uint64_t i = 0; i < kObjects; ++i) {
    ASSERT_EQ(bench_.Read(i * kApart, kHeader, false), std::string(kHeader, 'm'));
  }
  EXPECT_LE(reads_.bytes, 4 * kObjects * kHeader);
}

TEST_F(FileRequestsTest, DenseMetadataIsReadByTheBlockThereToo) {
  constexpr uint64_t kObjects = 2000, kHeader = 512;
  Open(std::string(kObjects * kHeader, 'm'), 200, 100'000);
  for (uint64_t i = 0; i < kObjects; ++i) {
    ASSERT_EQ(bench_.Read(i * kHeader, kHeader, false), std::string(kHeader, 'm'));
  }
  EXPECT_LE(reads_.requests, kObjects / 10);
}

// 1 ms and 200 MB/s: it takes as long as one and a third, and has two.
TEST_F(FileRequestsTest, AndScatteredMetadataWhereRequestsAreDear) {
  constexpr uint64_t kObjects = 600, kApart = 32 * kKib, kHeader = 512;
  Open(std::string(kObjects * kApart, 'm'), 1000, 5'000);
  for (uint64_t i = 0; i < kObjects; ++i) {
    ASSERT_EQ(bench_.Read(i * kApart, kHeader, false), std::string(kHeader, 'm'));
  }
  EXPECT_LE(reads_.requests, kObjects * 5 / 6);
}

}  // namespace
}  // namespace tidelane
