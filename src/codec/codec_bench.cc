/// \file
/// The filters one by one, on a chunk of 1 MiB of slowly varying 4-byte numbers.
///
/// Thread safety: one thread.
#include <cstdint>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "codec/deflate.h"
#include "codec/fletcher32.h"
#include "codec/shuffle.h"

namespace {

using tidelane::DeflateWith;
using Bytes = std::vector<std::byte>;

constexpr size_t kChunk = size_t{1} << 20;

// 20 bits vary smoothly, 4 are noise: deflates to about a third once shuffled.
Bytes Chunk() {
  Bytes bytes(kChunk);
  uint32_t noise = 1;
  for (size_t i = 0; i < kChunk; i += 4) {
    noise = noise * 1664525 + 1013904223;
    const uint32_t number = static_cast<uint32_t>(i * 37) + (noise >> 28);
    for (size_t k = 0; k < 4; ++k) bytes[i + k] = static_cast<std::byte>(number >> (8 * k));
  }
  return bytes;
}

void CountBytes(benchmark::State& state) {
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * kChunk));
}

void Shuffle(benchmark::State& state) {
  const Bytes from = Chunk();
  Bytes to(kChunk);
  for (auto _ : state) {
    tidelane::Shuffle(from, static_cast<size_t>(state.range(0)), to.data());
    benchmark::ClobberMemory();
  }
  CountBytes(state);
}
BENCHMARK(Shuffle)->Arg(2)->Arg(3)->Arg(4)->Arg(8)->Arg(16);

void Unshuffle(benchmark::State& state) {
  const Bytes from = Chunk();
  Bytes to(kChunk);
  for (auto _ : state) {
    tidelane::Unshuffle(from, static_cast<size_t>(state.range(0)), to.data());
    benchmark::ClobberMemory();
  }
  CountBytes(state);
}
BENCHMARK(Unshuffle)->Arg(2)->Arg(3)->Arg(4)->Arg(8)->Arg(16);

void Fletcher32(benchmark::State& state) {
  const Bytes from = Chunk();
  for (auto _ : state) benchmark::DoNotOptimize(tidelane::Fletcher32(from));
  CountBytes(state);
}
BENCHMARK(Fletcher32);

Bytes Shuffled() {
  Bytes to(kChunk);
  tidelane::Shuffle(Chunk(), 4, to.data());
  return to;
}

void Deflate(benchmark::State& state, DeflateWith with) {
  const Bytes from = Shuffled();
  Bytes to(tidelane::DeflateBound(kChunk));
  size_t size = 0;
  if (std::string why; !tidelane::PrepareDeflate(with, why))
    return state.SkipWithError(why.c_str());
  for (auto _ : state) {
    size = tidelane::DeflateEncode(with, static_cast<unsigned>(state.range(0)), from, to).value();
  }
  state.counters["of"] = static_cast<double>(size) / kChunk;
  CountBytes(state);
}
BENCHMARK_CAPTURE(Deflate, libdeflate, DeflateWith::kLibdeflate)->Arg(1)->Arg(4)->Arg(6)->Arg(9);
BENCHMARK_CAPTURE(Deflate, isal, DeflateWith::kIsal)->Arg(1)->Arg(4);
BENCHMARK_CAPTURE(Deflate, zlib, DeflateWith::kZlib)->Arg(1)->Arg(4)->Arg(6)->Arg(9);

void Inflate(benchmark::State& state) {
  const Bytes from = Shuffled();
  Bytes stored(tidelane::DeflateBound(kChunk));
  stored.resize(tidelane::DeflateEncode(DeflateWith::kZlib, 6, from, stored).value());
  Bytes to(kChunk);
  size_t size = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(tidelane::DeflateDecode(stored, to, size));
  }
  CountBytes(state);
}
BENCHMARK(Inflate);

}  // namespace
