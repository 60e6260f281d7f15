/// \file
/// What the loops of all sets of instructions share. Each loops_<set>.cc includes it after defining TIDELANE_LOOPS_TARGET, the attribute
/// that makes functions use the set.
///
/// Invariant: all has internal linkage and uses no function of the standard library: the linker keeps one copy of an inline function for
/// the whole program, and must not find one with instructions that only some machines have. Thread safety: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "predicate/loop.h"

#ifndef TIDELANE_LOOPS_TARGET
#define TIDELANE_LOOPS_TARGET
#endif

namespace tidelane::predicate {
namespace {

constexpr size_t kWord = 64;  // elements

/// `Outside::Word` says of 64 elements which are outside of a range.
template <class Outside>
TIDELANE_LOOPS_TARGET uint64_t RunLoop(const unsigned char* elements, size_t count,
                                       const Range& range, uint64_t* words) {
  constexpr size_t kSize = Outside::kSize;
  const typename Outside::Vector bias = Outside::Set(range.bias);
  const typename Outside::Vector limit = Outside::Set(range.limit);
  const uint64_t flip = range.inside ? ~uint64_t{0} : 0;
  uint64_t matches = 0;
  size_t i = 0;
  if (words != nullptr) {
    for (; i + kWord <= count; i += kWord) {
      *words++ = Outside::Word(elements + i * kSize, bias, limit) ^ flip;
    }
  } else {
    for (; i + kWord <= count; i += kWord) {
      const uint64_t word = Outside::Word(elements + i * kSize, bias, limit) ^ flip;
      matches += Outside::Ones(word);
    }
  }
  if (i < count) {
    unsigned char rest[kWord * kSize] = {};
    memcpy(rest, elements + i * kSize, (count - i) * kSize);
    const uint64_t valid = (uint64_t{1} << (count - i)) - 1;
    const uint64_t word = (Outside::Word(rest, bias, limit) ^ flip) & valid;
    if (words != nullptr) {
      *words = word;
    } else {
      matches += Outside::Ones(word);
    }
  }
  return matches;
}

/// `Family<size, swapped, magnitudes>` is an Outside of those.
template <template <unsigned, bool, bool> class Family, unsigned kSize>
Loop LoopOfSize(const Shape& shape) {
  if (shape.swapped) {
    return shape.magnitudes ? RunLoop<Family<kSize, true, true>>
                            : RunLoop<Family<kSize, true, false>>;
  }
  return shape.magnitudes ? RunLoop<Family<kSize, false, true>>
                          : RunLoop<Family<kSize, false, false>>;
}

template <template <unsigned, bool, bool> class Family>
Loop LoopOfFamily(const Shape& shape) {
  switch (shape.size) {
    case 1: return RunLoop<Family<1, false, false>>;
    case 2: return LoopOfSize<Family, 2>(shape);
    case 4: return LoopOfSize<Family, 4>(shape);
    default: return LoopOfSize<Family, 8>(shape);
  }
}

}  // namespace
}  // namespace tidelane::predicate
