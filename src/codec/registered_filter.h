/// \file
/// Filters that are not HDF5's own: LZF, LZ4, zstd, bitshuffle, Blosc and Blosc2, by the numbers that
/// The HDF Group has registered for them. What compresses is the library of the filter that HDF5
/// itself has; what is around it in a chunk is written and read here, because the filter's own
/// function may call HDF5 ([decision 14](../../docs/decisions/0014-registered-filters.md)).
///
/// Invariants:
///  1. A chunk that Encode made is what HDF5's filter makes of it; what that made, Decode reads.
///  2. Decode writes `to` and nothing else, and reads nothing beyond `from`, whatever is there.
///  3. No global state of these libraries is used, none of their threads, and no HDF5.
///
/// Thread safety: const functions may be called from any thread at once.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "codec/filter_library.h"

namespace tidelane {

class RegisteredFilter {
 public:
  virtual ~RegisteredFilter() = default;

  /// False: it only decodes.
  virtual bool CanEncode() const { return true; }
  /// Most bytes that it makes of `bytes`.
  virtual size_t Bound(size_t bytes) const = 0;
  /// The bytes written to `to`, which has the bound. nullopt: HDF5's filter would fail here, too: most
  /// of them do so for a chunk that does not become smaller.
  virtual std::optional<size_t> Encode(std::span<const std::byte> from,
                                       std::span<std::byte> to) const = 0;
  /// The bytes written to `to`. nullopt: they are damaged, or more.
  virtual std::optional<size_t> Decode(std::span<const std::byte> from,
                                       std::span<std::byte> to) const = 0;
};

/// The filter with the number `id` and cd_values as a dataset has them; `code` is an address in the
/// function that HDF5 has for it. nullptr: one that we do not know, values that it would refuse, or
/// a library without the functions that we call.
std::shared_ptr<const RegisteredFilter> BindRegisteredFilter(int id, const void* code,
                                                             std::span<const unsigned> values);

namespace internal {

using BoundFilter = std::shared_ptr<const RegisteredFilter>;
BoundFilter BindBitshuffle(const FilterLibrary& library, std::span<const unsigned> values);
BoundFilter BindBlosc(const FilterLibrary& library, std::span<const unsigned> values);
BoundFilter BindBlosc2(const FilterLibrary& library, std::span<const unsigned> values);
BoundFilter BindLz4(const FilterLibrary& library, std::span<const unsigned> values);
BoundFilter BindLzf(const FilterLibrary& library, std::span<const unsigned> values);
BoundFilter BindZstd(const FilterLibrary& library, std::span<const unsigned> values);

}  // namespace internal
}  // namespace tidelane
