// The seeds the simulator is run with, and devices that lie: its checks must notice each of them.
#include "file/simulator.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

namespace tidelane {
namespace {

// A number from the environment: TIDELANE_TEST_SEEDS=500 runs so many, TIDELANE_TEST_SEED=17 that one alone.
unsigned FromEnvironment(const char* name, unsigned usual) {
  const char* text = std::getenv(name);
  return text == nullptr ? usual : static_cast<unsigned>(std::atoi(text));
}

unsigned Seeds(unsigned usual) { return FromEnvironment("TIDELANE_TEST_SEEDS", usual); }

Simulator::Tally RunSeeds(SimulatorOptions options, unsigned seeds, unsigned steps) {
  Simulator::Tally all;
  const unsigned only = FromEnvironment("TIDELANE_TEST_SEED", 0);
  for (unsigned seed = only != 0 ? only : 1; seed <= std::max(only, seeds); ++seed) {
    options.seed = seed;
    // Arenas of 4 to 64 slabs, files with and without a user block, new and old.
    options.arena_bytes = uint64_t{256 * 1024} << seed % 5;
    options.base_address = seed % 3 == 0 ? 512 : 0;
    options.existing = seed % 2 == 0;
    Simulator simulator(options);
    simulator.Run(steps);
    simulator.Finish();
    EXPECT_EQ(simulator.wrong(), "") << "seed " << seed;
    all.writes += simulator.tally().writes;
    all.lent += simulator.tally().lent;
    all.reads += simulator.tally().reads;
    all.reads_later += simulator.tally().reads_later;
    all.flushes += simulator.tally().flushes;
    all.nested += simulator.tally().nested;
    all.failures += simulator.tally().failures;
    all.waits += simulator.tally().waits;
    all.cuts += simulator.tally().cuts;
    all.grows += simulator.tally().grows;
    if (::testing::Test::HasFailure() || only != 0) break;
  }
  std::printf(
      "calls: %lu writes (%lu lent), %lu reads (%lu late), %lu cuts, %lu grows, %lu flushes, %lu "
      "failures, "
      "%lu waits, "
      "%lu nested\n",
      all.writes, all.lent, all.reads, all.reads_later, all.cuts, all.grows, all.flushes,
      all.failures, all.waits, all.nested);
  return all;
}

TEST(SimulatorTest, RandomCallsOnHealthyStorage) {
  const uint64_t ahead = Read(Counter::kAheadBytes);
  const Simulator::Tally all = RunSeeds({}, Seeds(30), 1500);
  EXPECT_GT(all.lent, 1000u);
  EXPECT_GT(all.reads_later, 1000u);
  EXPECT_GT(Read(Counter::kAheadBytes), ahead);
}

TEST(SimulatorTest, RandomCallsOnStorageThatFailsAndRecovers) {
  SimulatorOptions options;
  options.faults = true;
  EXPECT_GT(RunSeeds(options, Seeds(30), 1500).failures, 100u);
}

TEST(SimulatorTest, ProgramCallsWhileTheDeviceIsWriting) {
  SimulatorOptions options;
  options.interleave = true;
  EXPECT_GT(RunSeeds(options, Seeds(30), 1500).nested, 1000u);
}

TEST(SimulatorTest, ProgramCallsWhileAFailingDeviceIsWriting) {
  SimulatorOptions options;
  options.interleave = true;
  options.faults = true;
  EXPECT_GT(RunSeeds(options, Seeds(30), 1500).nested, 1000u);
}

TEST(SimulatorTest, SmallFilesWhereEverythingOverlaps) {
  SimulatorOptions options;
  options.file_bytes = 3000;
  options.longest_write = 500;
  options.faults = true;
  options.interleave = true;
  RunSeeds(options, Seeds(60), 1500);
}

TEST(SimulatorTest, WrittenThrough) {
  SimulatorOptions options;
  options.write_through = true;
  options.faults = true;
  RunSeeds(options, Seeds(6), 600);
}

TEST(SimulatorTest, ThreadedLanes) {
  for (unsigned lanes = 1; lanes <= 4; ++lanes) {
    SimulatorOptions options;
    options.lanes = lanes;
    options.file_bytes = lanes % 2 == 0 ? 4000 : 1u << 20;
    options.longest_write = lanes % 2 == 0 ? 600 : 200'000;
    RunSeeds(options, Seeds(5), 1000);
  }
}

TEST(SimulatorTest, ThreadedLanesOnStorageThatFailsAndRecovers) {
  for (unsigned lanes = 1; lanes <= 4; ++lanes) {
    SimulatorOptions options;
    options.lanes = lanes;
    options.faults = true;
    options.file_bytes = lanes % 2 == 0 ? 4000 : 1u << 20;
    options.longest_write = lanes % 2 == 0 ? 600 : 200'000;
    RunSeeds(options, Seeds(5), 1000);
  }
}

// What storage is asked to do depends on the program's calls alone, where nothing is chosen by time. A commit that changes
// these numbers says why; TIDELANE_TEST_RECORD=1 writes them anew.
TEST(SimulatorTest, StorageIsAskedForWhatTheBaselineSays) {
  const char* source = std::getenv("TIDELANE_TEST_SOURCE_DIR");
  if (source == nullptr) GTEST_SKIP() << "TIDELANE_TEST_SOURCE_DIR is not set, as it is by ctest";
  const std::string path = std::string(source) + "/src/file/simulator_baseline.txt";
  std::ostringstream found;
  for (const std::string kind : {"calm", "faults", "interleaved"}) {
    for (unsigned seed = 1; seed <= 20; ++seed) {
      SimulatorOptions options;
      options.seed = seed;
      options.arena_bytes = uint64_t{256 * 1024} << seed % 5;
      options.base_address = seed % 3 == 0 ? 512 : 0;
      options.existing = seed % 2 == 0;
      options.timeless = true;
      options.faults = kind == "faults";
      options.interleave = kind == "interleaved";
      Simulator simulator(options);
      simulator.Run(600);
      simulator.Finish();
      EXPECT_EQ(simulator.wrong(), "");
      found << kind << ' ' << seed << ' ' << simulator.tally().requests << ' ' << std::hex
            << simulator.tally().digest << std::dec << '\n';
    }
  }
  if (FromEnvironment("TIDELANE_TEST_RECORD", 0) != 0) std::ofstream(path) << found.str();
  std::ostringstream baseline;
  baseline << std::ifstream(path).rdbuf();
  EXPECT_EQ(found.str(), baseline.str());
}

// A device that does not do what it says. The simulator must notice each of its lies.
class LyingDevice final : public Device {
 public:
  enum class Lie { kDropsWrites, kShiftsWrites, kKeepsTails, kStaleReads };

  LyingDevice(std::unique_ptr<Device> inner, Lie lie) : inner_(std::move(inner)), lie_(lie) {}

  int Read(uint64_t address, void* buffer, size_t n) override {
    const int error = inner_->Read(address, buffer, n);
    if (lie_ == Lie::kStaleReads && Turn() && n > 0)
      static_cast<unsigned char*>(buffer)[n / 2] ^= 1;
    return error;
  }
  int Write(uint64_t address, const struct iovec* parts, size_t count) override {
    if (lie_ == Lie::kDropsWrites && Turn()) return 0;
    return inner_->Write(lie_ == Lie::kShiftsWrites && Turn() ? address + 1 : address, parts,
                         count);
  }
  int Truncate(uint64_t size) override {
    return lie_ == Lie::kKeepsTails && Turn() ? 0 : inner_->Truncate(size);
  }
  int Reserve(uint64_t address, uint64_t size) override { return inner_->Reserve(address, size); }
  int Size(uint64_t& size) override { return inner_->Size(size); }
  int Lock(bool exclusive) override { return inner_->Lock(exclusive); }
  int Unlock() override { return inner_->Unlock(); }
  int Sync() override { return inner_->Sync(); }
  int Close() override { return inner_->Close(); }
  int* descriptor() override { return inner_->descriptor(); }

 private:
  bool Turn() { return ++calls_ % 5 == 0; }

  const std::unique_ptr<Device> inner_;
  const Lie lie_;
  std::atomic<unsigned> calls_{0};
};

TEST(SimulatorTest, EveryLieOfADeviceIsNoticed) {
  using Lie = LyingDevice::Lie;
  for (const Lie lie :
       {Lie::kDropsWrites, Lie::kShiftsWrites, Lie::kKeepsTails, Lie::kStaleReads}) {
    for (unsigned seed = 1; seed <= 5; ++seed) {
      SimulatorOptions options;
      options.seed = seed;
      options.wrap = [lie](std::unique_ptr<Device> device) {
        return std::make_unique<LyingDevice>(std::move(device), lie);
      };
      Simulator simulator(options);
      simulator.Run(1500);
      EXPECT_NE(simulator.wrong(), "") << "lie " << static_cast<int>(lie) << ", seed " << seed;
    }
  }
}

}  // namespace
}  // namespace tidelane
