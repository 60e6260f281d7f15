/// \file
/// What recording costs: a captured write as a whole, which only adds to its file's tally, and what
/// is recorded with requests, with waits (where a summary was asked for) and at the end.
///
/// Thread safety: one program's thread; the lane is the engine's.
#include <memory>
#include <vector>

#include <benchmark/benchmark.h>

#include "base/activity.h"
#include "base/config.h"
#include "base/counters.h"
#include "base/summary.h"
#include "device/device.h"
#include "file/file.h"
#include "lane/lanes.h"

namespace tidelane {
namespace {

// Storage that takes no time: what remains is ours.
class NoStorage final : public Device {
 public:
  int Read(uint64_t, void*, size_t) override { return 0; }
  int Write(uint64_t, const iovec*, size_t) override { return 0; }
  int Size(uint64_t& size) override {
    size = 0;
    return 0;
  }
  int Truncate(uint64_t) override { return 0; }
  int Reserve(uint64_t, uint64_t) override { return 0; }
  int Sync() override { return 0; }
  int Lock(bool) override { return 0; }
  int Unlock() override { return 0; }
  int Close() override { return 0; }
  int* descriptor() override { return nullptr; }
};

void CapturedWrites(benchmark::State& state) {
  const auto size = static_cast<uint64_t>(state.range(0));
  Config config;
  Arena arena(64u << 20);
  Lanes lanes(1);
  const std::vector<std::byte> bytes(size);
  {
    FileEnvironment environment{config, arena, lanes, [] {}};
    const auto file = std::make_shared<File>(std::move(environment), std::make_unique<NoStorage>(),
                                             FileIdentity{1, 1}, "nowhere", true);
    uint64_t address = 4096;
    for (auto _ : state) {
      benchmark::DoNotOptimize(file->Write(address, size, bytes.data()));
      address += size;
    }
    (void)file->Flush();
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(CapturedWrites)->Arg(64)->Arg(4096)->Arg(65536);

// What a captured write would cost more if it told the counters itself.
void TwoCounters(benchmark::State& state) {
  for (auto _ : state) {
    Count(Counter::kWritesDeferred);
    Count(Counter::kBytesDeferred, 4096);
  }
}
BENCHMARK(TwoCounters);

// A lane's request, beside the storage it waits for.
void OneRequest(benchmark::State& state) {
  for (auto _ : state) {
    Working working(1u << 20);
    benchmark::DoNotOptimize(working.Stop());
  }
}
BENCHMARK(OneRequest);

// A wait of the program.
void OneWait(benchmark::State& state) {
  RecordWaits(state.range(0) != 0);
  for (auto _ : state) {
    const Waiting waiting(Wait::kFlush);
    benchmark::ClobberMemory();
  }
  RecordWaits(true);
}
BENCHMARK(OneWait)->ArgName("asked")->Arg(0)->Arg(1);

// What TIDELANE_SUMMARY adds, once.
void OneSummary(benchmark::State& state) {
  const Config config;
  for (auto _ : state) {
    const Summary summary = TakeSummary(config);
    benchmark::DoNotOptimize(state.range(0) == 0 ? SummaryTable(summary) : SummaryJson(summary));
  }
}
BENCHMARK(OneSummary)->ArgName("json")->Arg(0)->Arg(1);

}  // namespace
}  // namespace tidelane

BENCHMARK_MAIN();
