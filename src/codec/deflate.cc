/// \file
/// Compressors are some hundred KiB and worth keeping: making one anew costs page faults that take
/// as long as a small chunk. Each pool is an array of places; a place is taken, and filled again,
/// by one exchange. A fork in the meantime loses at most what other threads have taken.
///
/// Thread safety: see the header.
#include "codec/deflate.h"

#include <libdeflate.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <atomic>

namespace tidelane {
namespace {

// Lanes, and programs' threads through HDF5's lock: more at once make their own and free it.
constexpr size_t kPlaces = 16;

template <typename T, void (*kFree)(T*)>
class Pool {
 public:
  T* Take() {
    for (std::atomic<T*>& place : places_) {
      if (place.load(std::memory_order_relaxed) == nullptr) continue;
      if (T* taken = place.exchange(nullptr, std::memory_order_acquire)) return taken;
    }
    return nullptr;
  }
  void Give(T* mine) {
    for (std::atomic<T*>& place : places_) {
      T* empty = nullptr;
      if (place.compare_exchange_strong(empty, mine, std::memory_order_release,
                                        std::memory_order_relaxed)) {
        return;
      }
    }
    kFree(mine);
  }

 private:
  std::array<std::atomic<T*>, kPlaces> places_{};
};

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

// libdeflate gives up a few bytes before the end of its room.
size_t DeflateBound(size_t bytes) {
  return std::max<size_t>(compressBound(bytes), libdeflate_zlib_compress_bound(nullptr, bytes));
}

std::optional<size_t> DeflateEncode(DeflateWith with, unsigned level,
                                    std::span<const std::byte> from, std::span<std::byte> to) {
  if (level >= kDeflateLevels || with == DeflateWith::kNative) return std::nullopt;
  if (with == DeflateWith::kZlib) return EncodeWithZlib(level, from, to);
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
