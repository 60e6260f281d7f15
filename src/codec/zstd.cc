/// \file
/// zstd (32015): a chunk is a frame of zstd with its length, and nothing around it. The first value is
/// the level; the filter takes what is below 1 as 1.
///
/// Thread safety: see registered_filter.h; each call makes a context of its own.
#include <algorithm>

#include "codec/registered_filter.h"

namespace tidelane::internal {
namespace {

constexpr int kDefaultLevel = 3;  // ZSTD_CLEVEL_DEFAULT

struct Functions {
  size_t (*bound)(size_t bytes);
  size_t (*compress)(void* to, size_t room, const void* from, size_t bytes, int level);
  size_t (*decompress)(void* to, size_t room, const void* from, size_t bytes);
  unsigned (*is_error)(size_t result);
  int (*most_level)();
};

class Zstd final : public RegisteredFilter {
 public:
  Zstd(const Functions& zstd, int level) : zstd_(zstd), level_(level) {}

  size_t Bound(size_t bytes) const override { return zstd_.bound(bytes); }
  std::optional<size_t> Encode(std::span<const std::byte> from,
                               std::span<std::byte> to) const override {
    return Result(zstd_.compress(to.data(), to.size(), from.data(), from.size(), level_));
  }
  std::optional<size_t> Decode(std::span<const std::byte> from,
                               std::span<std::byte> to) const override {
    return Result(zstd_.decompress(to.data(), to.size(), from.data(), from.size()));
  }

 private:
  std::optional<size_t> Result(size_t result) const {
    if (zstd_.is_error(result) != 0) return std::nullopt;
    return result;
  }

  const Functions zstd_;
  const int level_;
};

}  // namespace

BoundFilter BindZstd(const FilterLibrary& library, std::span<const unsigned> values) {
  Functions zstd{};
  if (!library.Find("ZSTD_compressBound", zstd.bound) ||
      !library.Find("ZSTD_compress", zstd.compress) ||
      !library.Find("ZSTD_decompress", zstd.decompress) ||
      !library.Find("ZSTD_isError", zstd.is_error) ||
      !library.Find("ZSTD_maxCLevel", zstd.most_level)) {
    return nullptr;
  }
  const int asked = values.empty() ? kDefaultLevel : static_cast<int>(values[0]);
  return std::make_shared<const Zstd>(zstd, std::clamp(asked, 1, zstd.most_level()));
}

}  // namespace tidelane::internal
