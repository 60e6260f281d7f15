/// \file
/// bitshuffle (32008), alone or with LZ4 or zstd. Without them a chunk keeps its length; with them,
/// all numbers big-endian:
///
///     uint64  bytes decoded
///     uint32  bytes of a block decoded
///     each block: uint32 bytes stored; the block, compressed
///     the last elements, up to seven, as they are
///
/// The library is not told how many bytes it is given, so the blocks' lengths are added up before.
///
/// Thread safety: see registered_filter.h; bitshuffle has no state, unless it is built with OpenMP:
/// each thread of ours would then start a team of its own, so that such a build is left alone.
#include <algorithm>
#include <cstdint>

#include "codec/byte_order.h"
#include "codec/registered_filter.h"

namespace tidelane::internal {
namespace {

constexpr size_t kHeader = 12;
constexpr size_t kBlockHeader = 4;
constexpr size_t kMultiple = 8;  // elements of a block
enum Compression : unsigned { kNone = 0, kLz4 = 2, kZstd = 3 };

// cd_values: version (two of them), element, block, compression, zstd's level.
struct Settings {
  size_t element = 0;
  size_t block = 0;
  unsigned compression = kNone;
  int level = 0;
};

using Code = int64_t(const void* from, void* to, size_t elements, size_t element, size_t block);
using CodeWithLevel = int64_t(const void* from, void* to, size_t elements, size_t element,
                              size_t block, int level);

struct Functions {
  size_t (*default_block)(size_t element);
  size_t (*bound)(size_t elements, size_t element, size_t block) = nullptr;
  Code* encode = nullptr;
  CodeWithLevel* encode_zstd = nullptr;
  Code* decode = nullptr;
};

class Bitshuffle final : public RegisteredFilter {
 public:
  Bitshuffle(const Functions& functions, const Settings& settings)
      : functions_(functions), settings_(settings) {}

  size_t Bound(size_t bytes) const override {
    if (functions_.bound == nullptr) return bytes;
    return kHeader + functions_.bound(bytes / settings_.element, settings_.element, block());
  }

  std::optional<size_t> Encode(std::span<const std::byte> from,
                               std::span<std::byte> to) const override {
    const size_t element = settings_.element;
    if (from.size() % element != 0) return std::nullopt;
    std::byte* at = to.data();
    if (settings_.compression != kNone) {
      StoreBigEndian<uint64_t>(from.size(), at);
      StoreBigEndian(static_cast<uint32_t>(block() * element), at + 8);
      at += kHeader;
    }
    const size_t elements = from.size() / element;
    const int64_t made =
        settings_.compression == kZstd
            ? functions_.encode_zstd(from.data(), at, elements, element, block(), settings_.level)
            : functions_.encode(from.data(), at, elements, element, block());
    if (made < 0) return std::nullopt;
    if (settings_.compression == kNone) return from.size();
    return kHeader + static_cast<size_t>(made);
  }

  std::optional<size_t> Decode(std::span<const std::byte> from,
                               std::span<std::byte> to) const override {
    const size_t element = settings_.element;
    uint64_t bytes = from.size();
    size_t block = this->block();
    if (settings_.compression != kNone) {
      if (from.size() < kHeader) return std::nullopt;
      bytes = LoadBigEndian<uint64_t>(from.data());
      block = LoadBigEndian<uint32_t>(from.data() + 8) / element;
      from = from.subspan(kHeader);
      if (block == 0 || block % kMultiple != 0) return std::nullopt;
    }
    if (bytes > to.size() || bytes % element != 0) return std::nullopt;
    if (settings_.compression != kNone && !IsWhole(from, bytes / element, block)) {
      return std::nullopt;
    }
    if (functions_.decode(from.data(), to.data(), bytes / element, element, block) < 0) {
      return std::nullopt;
    }
    return bytes;
  }

 private:
  size_t block() const {
    return settings_.block != 0 ? settings_.block : functions_.default_block(settings_.element);
  }

  // Whether the blocks that `elements` make, and those that follow, are all in `from`.
  bool IsWhole(std::span<const std::byte> from, size_t elements, size_t block) const {
    const size_t left = elements % kMultiple;
    for (size_t rest = elements - left; rest != 0; rest -= std::min(rest, block)) {
      if (from.size() < kBlockHeader) return false;
      const size_t stored = LoadBigEndian<uint32_t>(from.data());
      from = from.subspan(kBlockHeader);
      if (stored > from.size()) return false;
      from = from.subspan(stored);
    }
    return from.size() >= left * settings_.element;
  }

  const Functions functions_;
  const Settings settings_;
};

bool Bind(const FilterLibrary& library, unsigned compression, Functions& to) {
  if (library.Has("GOMP_parallel") || library.Has("__kmpc_fork_call") ||
      !library.Find("bshuf_default_block_size", to.default_block)) {
    return false;
  }
  switch (compression) {
    case kNone:
      return library.Find("bshuf_bitshuffle", to.encode) &&
             library.Find("bshuf_bitunshuffle", to.decode);
    case kLz4:
      return library.Find("bshuf_compress_lz4_bound", to.bound) &&
             library.Find("bshuf_compress_lz4", to.encode) &&
             library.Find("bshuf_decompress_lz4", to.decode);
    case kZstd:
      return library.Find("bshuf_compress_zstd_bound", to.bound) &&
             library.Find("bshuf_compress_zstd", to.encode_zstd) &&
             library.Find("bshuf_decompress_zstd", to.decode);
    default: return false;
  }
}

}  // namespace

BoundFilter BindBitshuffle(const FilterLibrary& library, std::span<const unsigned> values) {
  if (values.size() < 3 || values[2] == 0) return nullptr;
  Settings settings{.element = values[2]};
  if (values.size() > 3) settings.block = values[3];
  if (values.size() > 4) settings.compression = values[4];
  if (values.size() > 5) settings.level = static_cast<int>(values[5]);
  if (settings.block % kMultiple != 0 || (settings.compression == kZstd && values.size() < 6)) {
    return nullptr;
  }
  Functions functions{};
  if (!Bind(library, settings.compression, functions)) return nullptr;
  return std::make_shared<const Bitshuffle>(functions, settings);
}

}  // namespace tidelane::internal
