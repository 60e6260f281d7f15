/// \file
/// LZF (32000), h5py's own filter: a chunk is one stream of liblzf and nothing around it. A chunk that
/// does not become smaller fails, which HDF5 notes in its mask.
///
/// Thread safety: see registered_filter.h; liblzf has no state.
#include <limits>

#include "codec/registered_filter.h"

namespace tidelane::internal {
namespace {

using Code = unsigned(const void* from, unsigned bytes, void* to, unsigned room);

class Lzf final : public RegisteredFilter {
 public:
  Lzf(Code* compress, Code* decompress) : compress_(compress), decompress_(decompress) {}

  size_t Bound(size_t bytes) const override { return bytes; }
  std::optional<size_t> Encode(std::span<const std::byte> from,
                               std::span<std::byte> to) const override {
    return Run(compress_, from, to);
  }
  std::optional<size_t> Decode(std::span<const std::byte> from,
                               std::span<std::byte> to) const override {
    return Run(decompress_, from, to);
  }

 private:
  static std::optional<size_t> Run(Code* code, std::span<const std::byte> from,
                                   std::span<std::byte> to) {
    constexpr size_t kMost = std::numeric_limits<unsigned>::max();
    if (from.empty() || from.size() > kMost || to.size() > kMost) return std::nullopt;
    const unsigned made = code(from.data(), static_cast<unsigned>(from.size()), to.data(),
                               static_cast<unsigned>(to.size()));
    if (made == 0) return std::nullopt;
    return made;
  }

  Code* compress_;
  Code* decompress_;
};

}  // namespace

BoundFilter BindLzf(const FilterLibrary& library, std::span<const unsigned>) {
  Code *compress, *decompress;
  if (!library.Find("lzf_compress", compress) || !library.Find("lzf_decompress", decompress)) {
    return nullptr;
  }
  return std::make_shared<const Lzf>(compress, decompress);
}

}  // namespace tidelane::internal
