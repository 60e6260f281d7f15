#include "codec/deflate.h"

#include <libdeflate.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>

#include "codec/isal.h"
#include "codec/pool.h"

namespace tidelane {
namespace {

// The same number means less effort to libdeflate than to zlib, and at some levels finds other things: of ramps of numbers its
// level 1 makes twice as much. These come to about as much as zlib's (docs/decisions/0010-deflate.md). What asks for the
// smallest files of all, zlib's highest level, is zlib's.
constexpr unsigned kInstead[] = {0, 3, 3, 4, 4, 6, 7, 8, 9};
// From this one on libdeflate sometimes misses what its quickest good level finds: where much repeats, both are tried.
constexpr unsigned kFirstWithDoubt = 6;
constexpr unsigned kQuickLevel = 2;

constinit std::array<Pool<libdeflate_compressor, libdeflate_free_compressor>,
                     std::size(kInstead) + 1>
    compressors;
constinit Pool<libdeflate_decompressor, libdeflate_free_decompressor> decompressors;

// 0: it does not fit, or there is no memory.
size_t Compress(unsigned effort, std::span<const std::byte> from, void* to, size_t room) {
  libdeflate_compressor* compressor = compressors[effort].Take();
  if (compressor == nullptr) compressor = libdeflate_alloc_compressor(static_cast<int>(effort));
  if (compressor == nullptr) return 0;
  const size_t bytes = libdeflate_zlib_compress(compressor, from.data(), from.size(), to, room);
  compressors[effort].Give(compressor);
  return bytes;
}

std::optional<size_t> EncodeWithLibdeflate(unsigned level, std::span<const std::byte> from,
                                           std::span<std::byte> to) {
  const unsigned effort = kInstead[level];
  const size_t bytes = Compress(effort, from, to.data(), to.size());
  if (bytes == 0) return std::nullopt;
  if (effort < kFirstWithDoubt || bytes > from.size() / 2) return bytes;
  const std::unique_ptr<void, void (*)(void*)> other(std::malloc(bytes), std::free);
  if (other == nullptr) return bytes;
  const size_t quick = Compress(kQuickLevel, from, other.get(), bytes - 1);
  if (quick == 0) return bytes;
  std::memcpy(to.data(), other.get(), quick);
  return quick;
}

std::optional<size_t> EncodeWithZlib(unsigned level, std::span<const std::byte> from,
                                     std::span<std::byte> to) {
  uLongf bytes = to.size();
  const int result =
      compress2(reinterpret_cast<Bytef*>(to.data()), &bytes,
                reinterpret_cast<const Bytef*>(from.data()), from.size(), static_cast<int>(level));
  if (result != Z_OK) return std::nullopt;
  return bytes;
}

}  // namespace

// libdeflate gives up a few bytes before the end of its room; ISA-L stores what does not become smaller
// in blocks of at most 64 KiB with five bytes each, behind headers of less than 400 bytes.
size_t DeflateBound(size_t bytes) {
  const size_t isal = bytes + (bytes / 32768 + 1) * 5 + 400;
  return std::max<size_t>(
      {compressBound(bytes), libdeflate_zlib_compress_bound(nullptr, bytes), isal});
}

bool PrepareDeflate(DeflateWith with, std::string& why) {
  return with != DeflateWith::kIsal || LoadIsal(why);
}

std::optional<size_t> DeflateEncode(DeflateWith with, unsigned level,
                                    std::span<const std::byte> from, std::span<std::byte> to) {
  if (level >= kDeflateLevels || with == DeflateWith::kNative) return std::nullopt;
  const bool smallest = with == DeflateWith::kLibdeflate && level >= std::size(kInstead);
  if (with == DeflateWith::kZlib || smallest) return EncodeWithZlib(level, from, to);
  if (with == DeflateWith::kIsal && level != 0) return EncodeWithIsal(level, from, to);
  return EncodeWithLibdeflate(level, from, to);
}

Inflated DeflateDecode(std::span<const std::byte> from, std::span<std::byte> to, size_t& bytes) {
  libdeflate_decompressor* decompressor = decompressors.Take();
  if (decompressor == nullptr) decompressor = libdeflate_alloc_decompressor();
  if (decompressor == nullptr) return Inflated::kCorrupt;
  const libdeflate_result result = libdeflate_zlib_decompress_ex(
      decompressor, from.data(), from.size(), to.data(), to.size(), nullptr, &bytes);
  decompressors.Give(decompressor);
  if (result == LIBDEFLATE_SUCCESS) return Inflated::kDone;
  return result == LIBDEFLATE_INSUFFICIENT_SPACE ? Inflated::kNoRoom : Inflated::kCorrupt;
}

}  // namespace tidelane
