/// \file
/// Copies of a large write into arena slabs, by memcpy and by streaming stores. The source is read
/// once and the slabs rotate, as in a checkpoint: no cache holds either.
///
/// Thread safety: one thread.
#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include <benchmark/benchmark.h>

#include "buffer/copy.h"

namespace {

constexpr size_t kPool = size_t{256} << 20;
constexpr size_t kSlab = size_t{1} << 20;
constexpr size_t kUnaligned = 24;  // where malloc and numpy put data, at best 16 bytes into a line

std::byte* FaultedPool() {
  void* memory = std::aligned_alloc(size_t{2} << 20, kPool);
  if (memory == nullptr) std::abort();
  madvise(memory, kPool, MADV_HUGEPAGE);
  std::memset(memory, 1, kPool);
  return static_cast<std::byte*>(memory);
}

void CopyWrites(benchmark::State& state, bool streaming) {
  static std::byte* const program = FaultedPool();
  static std::byte* const slabs = FaultedPool();
  const size_t write = static_cast<size_t>(state.range(0)) << 20;
  const size_t total = streaming ? size_t{1} << 40 : 0;
  for (auto _ : state) {
    for (size_t at = 0; at < kPool; at += write) {
      for (size_t i = at; i < at + write; i += kSlab) {
        const size_t n = i + kSlab == kPool ? kSlab - kUnaligned : kSlab;
        tidelane::CopyBytes(slabs + i, program + i + kUnaligned, n, total);
      }
    }
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * kPool));
}

// The same source again and again, as a program that has just computed it: the caches help memcpy.
void CopyHot(benchmark::State& state, bool streaming) {
  static std::byte* const program = FaultedPool();
  static std::byte* const slabs = FaultedPool();
  const size_t write = static_cast<size_t>(state.range(0)) << 20;
  const size_t total = streaming ? size_t{1} << 40 : 0;
  size_t slab = 0;
  for (auto _ : state) {
    for (size_t i = 0; i < write; i += kSlab, slab = (slab + kSlab) % kPool) {
      tidelane::CopyBytes(slabs + slab, program + i + kUnaligned, kSlab, total);
    }
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * write));
}

BENCHMARK_CAPTURE(CopyWrites, memcpy, false)->Arg(64);
BENCHMARK_CAPTURE(CopyWrites, streaming, true)->Arg(64);
BENCHMARK_CAPTURE(CopyHot, memcpy, false)->RangeMultiplier(2)->Range(1, 32);
BENCHMARK_CAPTURE(CopyHot, streaming, true)->RangeMultiplier(2)->Range(1, 32);

}  // namespace

BENCHMARK_MAIN();
