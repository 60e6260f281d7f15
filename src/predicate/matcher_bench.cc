/// \file
/// How many bytes of elements a matcher looks at in a second, by type and set of instructions, and what is done with the bits afterwards.
///
/// The elements fit a second-level cache: what is measured is the loop. `one_sign` is a range of floats of one sign, whose bits are
/// compared as they are; `both_signs` needs more.
///
/// Thread safety: one thread.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "predicate/loops.h"
#include "predicate/matcher.h"

namespace {

using tidelane::predicate::Bits;
using tidelane::predicate::Comparison;
using tidelane::predicate::Condition;
using tidelane::predicate::Constants;
using tidelane::predicate::ElementType;
using tidelane::predicate::Instructions;
using tidelane::predicate::Matcher;
using tidelane::predicate::Number;
using Kind = ElementType::Kind;

constexpr size_t kBytes = size_t{256} << 10;

std::vector<uint8_t> Noise() {
  std::mt19937_64 random(5);
  std::vector<uint8_t> bytes(kBytes);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

struct Subject {
  const char* name;
  ElementType type;
  Condition condition;
};

void RunMatcher(benchmark::State& state, const Subject& subject, Instructions instructions,
                bool only_count) {
  tidelane::predicate::ForceInstructions(instructions);
  std::string why;
  const auto matcher = Matcher::Make(subject.condition, subject.type, Constants::kExact, why);
  tidelane::predicate::ForceNoInstructions();
  const std::vector<uint8_t> bytes = Noise();
  const size_t count = kBytes / subject.type.size;
  Bits bits;
  for (auto _ : state) {
    if (only_count) {
      benchmark::DoNotOptimize(matcher->Count(bytes.data(), count));
    } else {
      matcher->Run(bytes.data(), count, bits);
      benchmark::DoNotOptimize(bits.words());
    }
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * kBytes));
}

std::vector<Subject> Subjects() {
  const auto of = [](Kind kind, uint32_t size, bool swapped = false) {
    return ElementType{.kind = kind, .size = size, .swapped = swapped};
  };
  const Condition above = {Comparison::kGreater, {Number{1.9}}};
  const Condition below = {Comparison::kLess, {Number{1.9}}};
  return {{"int8", of(Kind::kSigned, 1), above},
          {"int16", of(Kind::kSigned, 2), above},
          {"int32", of(Kind::kSigned, 4), above},
          {"int64", of(Kind::kSigned, 8), above},
          {"uint64", of(Kind::kUnsigned, 8), above},
          {"half_one_sign", of(Kind::kFloat, 2), above},
          {"half_both_signs", of(Kind::kFloat, 2), below},
          {"float_one_sign", of(Kind::kFloat, 4), above},
          {"float_both_signs", of(Kind::kFloat, 4), below},
          {"float_swapped", of(Kind::kFloat, 4, true), below},
          {"double_one_sign", of(Kind::kFloat, 8), above},
          {"double_both_signs", of(Kind::kFloat, 8), below},
          {"double_swapped", of(Kind::kFloat, 8, true), below},
          {"long_double", of(Kind::kFloat, sizeof(Number)), above},
          {"string8",
           {.kind = Kind::kFixedString, .size = 8},
           {Comparison::kEqual, {std::string("abcd")}}},
          {"string16",
           {.kind = Kind::kFixedString, .size = 16},
           {Comparison::kLess, {std::string("abcd")}}},
          {"string40",
           {.kind = Kind::kFixedString, .size = 40},
           {Comparison::kEqual, {std::string("abcd")}}}};
}

Bits OfPercent(size_t size, unsigned percent) {
  std::mt19937 random(6);
  Bits bits(size);
  for (size_t i = 0; i < size; ++i) {
    if (random() % 100 < percent) bits.SetRange(i, 1);
  }
  return bits;
}

constexpr size_t kElements = 65536;

void GatherFloats(benchmark::State& state) {
  const Bits bits = OfPercent(kElements, static_cast<unsigned>(state.range(0)));
  const std::vector<float> from(kElements);
  std::vector<float> to(kElements);
  for (auto _ : state) {
    bits.Gather(from.data(), sizeof(float), to.data());
    benchmark::DoNotOptimize(to.data());
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * kElements * sizeof(float)));
}

void Positions(benchmark::State& state) {
  const Bits bits = OfPercent(kElements, static_cast<unsigned>(state.range(0)));
  std::vector<uint64_t> to(kElements);
  for (auto _ : state) {
    bits.Positions(0, to.data());
    benchmark::DoNotOptimize(to.data());
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * kElements));
}

void Bytes(benchmark::State& state) {
  const Bits bits = OfPercent(kElements, 50);
  std::vector<uint8_t> to(kElements);
  for (auto _ : state) {
    bits.Bytes(to.data());
    benchmark::DoNotOptimize(to.data());
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * kElements));
}

void CountBits(benchmark::State& state) {
  const Bits bits = OfPercent(kElements, 50);
  for (auto _ : state) benchmark::DoNotOptimize(bits.Count());
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * kElements));
}

void CopyUnaligned(benchmark::State& state) {
  const Bits bits = OfPercent(kElements, 50);
  Bits to(kElements);
  for (auto _ : state) {
    to.CopyRange(3, bits, 10, kElements - 64);
    benchmark::DoNotOptimize(to.words());
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * kElements));
}

BENCHMARK(GatherFloats)->Arg(1)->Arg(50)->Arg(99)->Arg(100);
BENCHMARK(Positions)->Arg(1)->Arg(50)->Arg(100);
BENCHMARK(Bytes);
BENCHMARK(CountBits);
BENCHMARK(CopyUnaligned);

}  // namespace

int main(int argc, char** argv) {
  constexpr const char* kNames[] = {"baseline", "avx2", "avx512"};
  for (Instructions instructions : tidelane::predicate::kAllInstructions) {
    if (!tidelane::predicate::Has(instructions)) continue;
    for (const Subject& subject : Subjects()) {
      for (bool only_count : {false, true}) {
        const std::string name = std::string(only_count ? "Count/" : "Run/") + subject.name + "/" +
                                 kNames[static_cast<size_t>(instructions)];
        benchmark::RegisterBenchmark(name.c_str(), RunMatcher, subject, instructions, only_count);
      }
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
