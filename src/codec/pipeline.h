/// \file
/// A dataset's filters, run on any thread and without HDF5: deflate, shuffle, fletcher32 and those of
/// registered_filter.h, in any order, as HDF5's own pipeline runs them.
///
/// Invariants:
///  1. What Encode makes, native HDF5 reads as the same chunk; what native HDF5 wrote, Decode reads.
///  2. Decode writes `chunk` and nothing else, whatever bytes it is given.
///
/// Thread safety: const functions may be called from any thread at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/raw_bytes.h"
#include "base/status.h"
#include "codec/deflate.h"
#include "codec/registered_filter.h"

namespace tidelane {

/// HDF5's numbers of its own filters that we can run, and one for all that are not its own.
enum class FilterId { kDeflate = 1, kShuffle = 2, kFletcher32 = 3, kRegistered = -1 };

/// One filter as a dataset's creation list has it.
struct FilterSpec {
  int id = 0;             ///< HDF5's number
  bool optional = false;  ///< H5Z_FLAG_OPTIONAL: a chunk that it fails for goes without it
  /// cd_values, as H5Pget_filter2 gives them from a dataset's own creation list: deflate's level,
  /// shuffle's element size.
  std::vector<unsigned> values;
  /// Of a filter that is not HDF5's own: an address in the function that HDF5 has for it.
  const void* code = nullptr;
};

class Pipeline {
 public:
  enum class Use { kBoth, kDecode };
  /// nullopt: a filter (or a setting of one) that we cannot run in the direction of `use`, or deflate
  /// `with` kNative; HDF5 has to.
  static std::optional<Pipeline> Make(std::span<const FilterSpec> filters, DeflateWith with,
                                      Use use = Use::kBoth);

  /// In order. `out` is replaced, and no larger than what it holds. `mask` is set: a bit for each optional filter that failed and was
  /// left out. As in HDF5, a chunk that deflate makes larger is stored larger; only short memory
  /// makes HDF5's own filters fail.
  Status Encode(std::span<const std::byte> chunk, RawBytes& out, uint32_t& mask) const;

  /// In reverse order, filters in `mask` left out. Fails for a wrong checksum, a corrupt stream, and
  /// bytes that do not make exactly `chunk`; that is then partly written. Checksums are always
  /// verified (HDF5 leaves that out where a transfer list says H5Z_DISABLE_EDC).
  Status Decode(std::span<const std::byte> stored, uint32_t mask, std::span<std::byte> chunk) const;

  /// Whether one of its filters compresses. The others only move bytes or add them up, at nearly the speed of memory.
  bool compresses() const;

  /// So many bytes Encode's result has at most for a chunk of `bytes`.
  size_t Bound(size_t bytes) const;

 private:
  struct Stage {
    FilterId id;
    bool optional;
    unsigned value;  // deflate's level, shuffle's element size
    std::shared_ptr<const RegisteredFilter> registered;
  };
  struct Data;

  static std::optional<Stage> MakeStage(const FilterSpec& filter, DeflateWith with, Use use);
  static size_t BoundOf(const Stage& stage, size_t bytes);

  bool EncodeStage(const Stage& stage, Data& data) const;
  Status DecodeStage(const Stage& stage, size_t room, bool last, Data& data) const;

  std::vector<Stage> stages_;
  DeflateWith with_ = DeflateWith::kLibdeflate;
};

}  // namespace tidelane
