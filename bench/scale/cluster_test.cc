#include "scale/cluster.h"

#include <gtest/gtest.h>

#include "common/published_equation.h"
#include "model/epoch.h"
#include "scale/machines.h"

namespace tidelane::scale {
namespace {

constexpr uint64_t kMib = 1 << 20;
constexpr double kRounding = 1e-6;  // a nanosecond for each request

Machine Plain() {
  Machine machine;
  machine.storage_bandwidth = 1e9;
  return machine;
}

Program Phases(uint64_t ranks, uint64_t bytes, double compute = 0) {
  return {.ranks = ranks, .bytes = bytes, .request_bytes = bytes, .compute = compute, .epochs = 6};
}

Program Async(Program program) {
  program.async = true;
  return program;
}

TEST(Cluster, OneRankPaysLatencyAndTransferForEachRequest) {
  Machine machine = Plain();
  machine.latency = 0.002;
  Program program = Phases(1, 100'000'000, 0.5);
  program.request_bytes = 10'000'000;
  const Outcome outcome = Simulate(machine, program);
  const double io = 10 * (0.002 + 0.01);
  EXPECT_NEAR(outcome.io[0], io, kRounding);
  EXPECT_NEAR(outcome.total, 6 * model::SyncEpoch({io, 0.5, 0}), kRounding);
  EXPECT_NEAR(SeenBandwidth(program, outcome), 100e6 / io, 1e3);
}

TEST(Cluster, AllRanksShareWhatStorageHas) {
  for (const uint64_t ranks : {1, 2, 7, 64, 1000}) {
    const Outcome outcome = Simulate(Plain(), Phases(ranks, 1'000'000));
    EXPECT_NEAR(outcome.io[0], static_cast<double>(ranks) * 0.001, kRounding * 1000) << ranks;
  }
}

TEST(Cluster, FewNodesAreLimitedByTheirLinksAndManyByStorage) {
  Machine machine = Plain();
  machine.node_bandwidth = 1e8;
  machine.ranks_per_node = 2;
  const auto bandwidth = [&](uint64_t ranks) {
    Program program = Phases(ranks, 10'000'000);
    program.request_bytes = 100'000;
    return SeenBandwidth(program, Simulate(machine, program));
  };
  EXPECT_NEAR(bandwidth(2), 1e8, 3e6);
  EXPECT_NEAR(bandwidth(8), 4e8, 12e6);
  EXPECT_NEAR(bandwidth(200), 1e9, 3e7);
}

TEST(Cluster, RequestsThatStorageServesOneByOneMakeSmallOnesSlow) {
  Machine machine = Plain();
  machine.service = 1e-4;
  const Outcome outcome = Simulate(machine, Phases(100, 1000));
  EXPECT_NEAR(outcome.io[0], 100 * (1e-4 + 1e-6), kRounding * 100);
}

// Metadata, and what the system splits off: a synchronous program waits for each.
TEST(Cluster, SmallRequestsCostTheirLatencyAndLanesMergeThem) {
  Machine machine = Plain();
  machine.latency = 0.002;
  Program program = Phases(1, 80'000'000);
  program.request_bytes = 10'000'000;
  program.small_requests = 10;
  program.small_bytes = 1000;
  EXPECT_NEAR(Simulate(machine, program).io[0], 18 * 0.002 + 0.080 + 10e-6, kRounding * 10);
  program.small_requests = 0;
  const double without = Simulate(machine, Async(program)).total;
  program.small_requests = 10;
  EXPECT_EQ(Simulate(machine, Async(program)).total, without);
}

TEST(Cluster, ManyRanksShareStorageWhileEachAwaitsItsSmallRequests) {
  Machine machine = Plain();
  machine.latency = 0.002;
  Program program = Phases(4, 10'000'000);
  program.small_requests = 5;
  program.small_bytes = 0;
  // The pipe is busy for 40 ms; the last one's requests end six latencies after it began to move bytes.
  const double io = Simulate(machine, program).io[0];
  EXPECT_GE(io, 0.040 + 6 * 0.002 - kRounding);
  EXPECT_LE(io, 0.040 + 7 * 0.002);
}

// The first read nothing can hide; of the others the corrected equation, as of writes.
TEST(Cluster, ReadsAheadCostTheCopyOrTheRestOfStoragesWork) {
  Machine machine = Plain();
  machine.copy.Add(kMib, 1e9, 1);  // 1 GB/s
  for (const double compute : {0.0, 0.5, 2.0}) {
    Program program = Async(Phases(10, 100'000'000, compute));
    program.reads = true;
    const Outcome outcome = Simulate(machine, program);
    EXPECT_NEAR(outcome.io[0], 1.0, kRounding * 10);
    const model::EpochTimes times{1.0, compute, 0.1};
    EXPECT_NEAR(outcome.total, 1.0 + compute + 5 * model::AsyncEpoch(times), kRounding * 100)
        << compute;
    EXPECT_EQ(outcome.end, 0) << "nothing is read that nobody asks for";
  }
}

TEST(Cluster, WhatIsHiddenCostsTheCopy) {
  Machine machine = Plain();
  machine.copy.Add(kMib, 1e9, 1);  // 1 GB/s
  const Program program = Async(Phases(10, 100'000'000, 2));
  const Outcome outcome = Simulate(machine, program);
  for (const double io : outcome.io) EXPECT_NEAR(io, 0.1, kRounding);
  EXPECT_NEAR(outcome.total, 6 * model::AsyncEpoch({1.0, 2, 0.1}), kRounding);
  EXPECT_EQ(outcome.end, 0);
  EXPECT_NEAR(SeenBandwidth(program, outcome), 10e9, 1e6);
}

// The corrected equation, not the published one, where the computation is shorter than storage's work.
TEST(Cluster, WhatIsNotHiddenCostsTheRestOfStoragesWork) {
  Machine machine = Plain();
  machine.copy.Add(kMib, 1e9, 1);
  for (const double compute : {0.0, 0.2, 0.5, 0.9, 1.0}) {
    const Outcome outcome = Simulate(machine, Async(Phases(10, 100'000'000, compute)));
    const model::EpochTimes times{1.0, compute, 0.1};
    EXPECT_NEAR(outcome.total, 6 * model::AsyncEpoch(times), kRounding * 10) << compute;
    if (compute > 0 && compute < 1.0) {
      EXPECT_GT(outcome.total, 6 * bench::PublishedAsyncEpoch(times) + 0.1) << compute;
    }
  }
}

TEST(Machines, AreSaturatedWhereThePaperSaysSo) {
  for (const auto& [name, ranks] : {std::pair{"summit", 768}, {"cori", 1024}}) {
    const Machine machine = MachineCalled(name);
    const auto bandwidth = [&](int count) {
      Program program = Phases(static_cast<uint64_t>(count), 64 * kMib, 30);
      program.request_bytes = 16 * kMib;
      return SeenBandwidth(program, Simulate(machine, program));
    };
    EXPECT_GT(bandwidth(ranks / 2), 1.6 * bandwidth(ranks / 4)) << name;
    EXPECT_LT(bandwidth(4 * ranks), 1.25 * bandwidth(ranks)) << name;
    EXPECT_LT(bandwidth(8 * ranks), 1.1 * bandwidth(4 * ranks)) << name;
  }
}

TEST(Machines, CopiesOfManyRanksAddUp) {
  const Machine machine = MachineCalled("summit");
  const auto bandwidth = [&](uint64_t ranks) {
    const Program program = Async(Phases(ranks, 64 * kMib, 600));
    return SeenBandwidth(program, Simulate(machine, program));
  };
  EXPECT_NEAR(bandwidth(512) / bandwidth(32), 16, 0.01);
}

TEST(Workloads, KeepOrShareTheirBytes) {
  EXPECT_EQ(WorkloadCalled("vpic").At(64).bytes, WorkloadCalled("vpic").At(4096).bytes);
  EXPECT_EQ(WorkloadCalled("eqsim").At(64).bytes, 64 * WorkloadCalled("eqsim").At(4096).bytes);
}

}  // namespace
}  // namespace tidelane::scale
