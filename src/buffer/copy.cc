/// \file
/// memcpy for writes that fit the caches, streaming stores for those that do not.
///
/// Thread safety: none needed.
#include "buffer/copy.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <cstdint>
#include <cstring>

namespace tidelane {
namespace {

#ifdef __SSE2__

// Measured by copy_bench on 2 cores of an AMD EPYC (Zen 5, 32 MiB of L3), 1 MiB slabs, unaligned
// source, GB/s:
//                                          memcpy  streaming
//   64 MiB writes, cold source and slabs     17        24
//   16 MiB writes, source just computed      24        32
//    4 MiB writes, source just computed      23        33
//    4 MiB writes, source and slabs hot      54        32
// AVX and AVX-512 stores and rep movsb were no faster than SSE2's, so there is nothing to choose at
// run time. With a lane writing the slabs to the page cache beside it, the caller's time falls by a
// quarter from 4 MiB on and the lane's rises by about as much: the work moves to where nobody waits
// for it. Slabs are hot only while little is under way.
constexpr size_t kStreamFrom = size_t{4} << 20;
constexpr size_t kLine = 64;

// One cache line, from anywhere, to a line's beginning.
inline void StreamLine(std::byte* to, const std::byte* from) {
  auto* lanes = reinterpret_cast<__m128i*>(to);
  const auto* source = reinterpret_cast<const __m128i*>(from);
  const __m128i a = _mm_loadu_si128(source);
  const __m128i b = _mm_loadu_si128(source + 1);
  const __m128i c = _mm_loadu_si128(source + 2);
  const __m128i d = _mm_loadu_si128(source + 3);
  _mm_stream_si128(lanes, a);
  _mm_stream_si128(lanes + 1, b);
  _mm_stream_si128(lanes + 2, c);
  _mm_stream_si128(lanes + 3, d);
}

void StreamCopy(std::byte* to, const std::byte* from, size_t n) {
  const size_t head = (kLine - reinterpret_cast<uintptr_t>(to) % kLine) % kLine;
  std::memcpy(to, from, head);
  to += head;
  from += head;
  n -= head;
  for (; n >= kLine; n -= kLine, to += kLine, from += kLine) StreamLine(to, from);
  std::memcpy(to, from, n);
  // Streaming stores are not ordered by the mutex that later hands the slab to a lane: only this
  // orders them.
  _mm_sfence();
}

#endif

}  // namespace

void CopyBytes(void* to, const void* from, size_t n, size_t total) {
  if (n == 0) return;
#ifdef __SSE2__
  if (total >= kStreamFrom && n >= 4 * kLine) {
    StreamCopy(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), n);
    return;
  }
#else
  (void)total;
#endif
  std::memcpy(to, from, n);
}

}  // namespace tidelane
