/// \file
/// LZ4 (32004). A chunk, all numbers big-endian:
///
///     uint64  bytes decoded
///     uint32  bytes of a block decoded, the last one may be shorter
///     each block: uint32 bytes stored; LZ4's block, or, stored in full length, the bytes themselves
///
/// Thread safety: see registered_filter.h; LZ4's functions have no state.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

#include "codec/byte_order.h"
#include "codec/registered_filter.h"

namespace tidelane::internal {
namespace {

constexpr size_t kHeader = 12;
constexpr size_t kBlockHeader = 4;
constexpr size_t kDefaultBlock = size_t{1} << 30;
constexpr size_t kMost = std::numeric_limits<int32_t>::max();  // that the filter takes

struct Functions {
  int (*bound)(int bytes);
  int (*compress)(const char* from, char* to, int bytes, int room);
  int (*decompress)(const char* from, char* to, int bytes, int room);
};

class Lz4 final : public RegisteredFilter {
 public:
  Lz4(const Functions& lz4, size_t block) : lz4_(lz4), block_(block) {}

  size_t Bound(size_t bytes) const override {
    if (bytes == 0 || bytes > kMost) return bytes;
    const size_t block = std::min(block_, bytes);
    return kHeader + ((bytes - 1) / block + 1) * (BlockBound(block) + kBlockHeader);
  }

  std::optional<size_t> Encode(std::span<const std::byte> from,
                               std::span<std::byte> to) const override {
    if (from.empty() || from.size() > kMost) return std::nullopt;
    const size_t block = std::min(block_, from.size());
    StoreBigEndian<uint64_t>(from.size(), to.data());
    StoreBigEndian(static_cast<uint32_t>(block), to.data() + 8);
    size_t at = kHeader;
    while (!from.empty()) {
      const std::span<const std::byte> piece = from.first(std::min(block, from.size()));
      const size_t stored = EncodeBlock(piece, to.data() + at + kBlockHeader);
      if (stored == 0) return std::nullopt;
      StoreBigEndian(static_cast<uint32_t>(stored), to.data() + at);
      at += kBlockHeader + stored;
      from = from.subspan(piece.size());
    }
    return at;
  }

  std::optional<size_t> Decode(std::span<const std::byte> from,
                               std::span<std::byte> to) const override {
    if (from.size() < kHeader) return std::nullopt;
    const uint64_t bytes = LoadBigEndian<uint64_t>(from.data());
    const uint64_t block = std::min<uint64_t>(LoadBigEndian<uint32_t>(from.data() + 8), bytes);
    if (bytes > std::min(to.size(), kMost) || (block == 0 && bytes != 0)) return std::nullopt;
    from = from.subspan(kHeader);
    for (std::span<std::byte> rest = to.first(bytes); !rest.empty();) {
      const std::span<std::byte> piece = rest.first(std::min<size_t>(block, rest.size()));
      if (!DecodeBlock(from, piece)) return std::nullopt;
      rest = rest.subspan(piece.size());
    }
    return bytes;
  }

 private:
  size_t BlockBound(size_t bytes) const {
    return static_cast<size_t>(lz4_.bound(static_cast<int>(bytes)));
  }

  size_t EncodeBlock(std::span<const std::byte> from, std::byte* to) const {
    const int stored =
        lz4_.compress(reinterpret_cast<const char*>(from.data()), reinterpret_cast<char*>(to),
                      static_cast<int>(from.size()), static_cast<int>(BlockBound(from.size())));
    if (stored <= 0) return 0;
    if (static_cast<size_t>(stored) < from.size()) return static_cast<size_t>(stored);
    std::memcpy(to, from.data(), from.size());
    return from.size();
  }

  // `from` goes on behind the block.
  bool DecodeBlock(std::span<const std::byte>& from, std::span<std::byte> to) const {
    if (from.size() < kBlockHeader) return false;
    const size_t stored = LoadBigEndian<uint32_t>(from.data());
    from = from.subspan(kBlockHeader);
    if (stored > std::min(from.size(), kMost)) return false;
    if (stored == to.size()) {
      std::memcpy(to.data(), from.data(), stored);
    } else if (lz4_.decompress(reinterpret_cast<const char*>(from.data()),
                               reinterpret_cast<char*>(to.data()), static_cast<int>(stored),
                               static_cast<int>(to.size())) != static_cast<int>(to.size())) {
      return false;
    }
    from = from.subspan(stored);
    return true;
  }

  const Functions lz4_;
  const size_t block_;
};

}  // namespace

BoundFilter BindLz4(const FilterLibrary& library, std::span<const unsigned> values) {
  Functions lz4{};
  if (!library.Find("LZ4_compressBound", lz4.bound) ||
      !library.Find("LZ4_compress_default", lz4.compress) ||
      !library.Find("LZ4_decompress_safe", lz4.decompress)) {
    return nullptr;
  }
  const size_t block = values.empty() || values[0] == 0 ? kDefaultBlock : values[0];
  return std::make_shared<const Lz4>(lz4, block);
}

}  // namespace tidelane::internal
