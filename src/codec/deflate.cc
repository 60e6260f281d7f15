#include "codec/deflate.h"

#include <libdeflate.h>
#include <zlib.h>

#include <algorithm>
#include <array>

#include "codec/isal.h"
#include "codec/pool.h"

namespace tidelane {
namespace {

constinit std::array<Pool<libdeflate_compressor, libdeflate_free_compressor>, kDeflateLevels>
    compressors;
constinit Pool<libdeflate_decompressor, libdeflate_free_decompressor> decompressors;

std::optional<size_t> EncodeWithLibdeflate(unsigned level, std::span<const std::byte> from,
                                           std::span<std::byte> to) {
  libdeflate_compressor* compressor = compressors[level].Take();
  if (compressor == nullptr) compressor = libdeflate_alloc_compressor(static_cast<int>(level));
  if (compressor == nullptr) return std::nullopt;
  const size_t bytes =
      libdeflate_zlib_compress(compressor, from.data(), from.size(), to.data(), to.size());
  compressors[level].Give(compressor);
  if (bytes == 0) return std::nullopt;
  return bytes;
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
  if (with == DeflateWith::kZlib) return EncodeWithZlib(level, from, to);
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
