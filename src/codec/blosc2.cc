/// \file
/// Blosc2 (32026), decoded only: a chunk is a contiguous frame of Blosc2 with one chunk of its own,
/// which is an array of its b2nd where the frame's header has such a layer, and plain bytes otherwise.
/// To encode takes Blosc2's parameter structures, which change with its versions; HDF5 does it.
///
/// Of b2nd_array_t one member is read: `shape`, the second since there is such a thing.
///
/// Thread safety: see registered_filter.h. The filter of HDF5 closes Blosc2 whenever it fails, so that
/// it is opened again before each use, by one thread at a time; no use of ours lasts while HDF5 runs
/// the filter, because HDF5's caller waits for the lanes that read for it.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string_view>

#include "base/annotations.h"
#include "codec/byte_order.h"
#include "codec/registered_filter.h"

namespace tidelane::internal {
namespace {

constexpr size_t kLengthAt = 16;  // int64 behind a tag: bytes of the frame
constexpr size_t kHeaderAt = 12;  // int32 behind a tag: bytes of its header
constexpr size_t kLeastFrame = 87;
constexpr size_t kMost = std::numeric_limits<int32_t>::max();
constexpr size_t kMostRank = 8;  // of a shape in cd_values
constexpr size_t kShapeAt = 7;   // among cd_values: rank and lengths

struct Frame;  // blosc2_schunk
struct Array {
  Frame* frame;
  int64_t shape[kMostRank];
};

struct Functions {
  void (*init)();
  void* (*storage)(uint8_t id);
  Frame* (*open)(uint8_t* frame, int64_t bytes, bool copy);
  int (*close)(Frame* frame);
  int (*decode)(Frame* frame, int64_t chunk, void* to, int32_t room);
  int (*to_array)(Frame* frame, Array** array);  // which owns the frame then
  int (*close_array)(Array* array);
  int (*decode_array)(const Array* array, const int64_t* start, const int64_t* stop, void* to,
                      const int64_t* shape, int64_t room);
};

constinit Mutex init_mutex;

class Blosc2 final : public RegisteredFilter {
 public:
  Blosc2(const Functions& blosc2, std::span<const unsigned> shape, size_t type)
      : blosc2_(blosc2), rank_(shape.size()), bytes_(type) {
    shape_.fill(1);
    std::copy(shape.begin(), shape.end(), shape_.begin());
    // What a file says need not fit into memory, or into a number: then no chunk has room for it, and HDF5 says so.
    for (const unsigned length : shape) {
      if (__builtin_mul_overflow(bytes_, size_t{length}, &bytes_)) {
        bytes_ = std::numeric_limits<size_t>::max();
        break;
      }
    }
  }

  bool CanEncode() const override { return false; }
  size_t Bound(size_t bytes) const override { return bytes + kLeastFrame + 4096; }
  std::optional<size_t> Encode(std::span<const std::byte>, std::span<std::byte>) const override {
    return std::nullopt;
  }

  std::optional<size_t> Decode(std::span<const std::byte> from,
                               std::span<std::byte> to) const override {
    if (from.size() < kLeastFrame || to.size() > kMost ||
        LoadBigEndian<uint64_t>(from.data() + kLengthAt) != from.size()) {
      return std::nullopt;
    }
    Open();
    auto* const bytes = const_cast<uint8_t*>(reinterpret_cast<const uint8_t*>(from.data()));
    Frame* const frame = blosc2_.open(bytes, static_cast<int64_t>(from.size()), false);
    if (frame == nullptr) return std::nullopt;
    if (IsArray(from)) return DecodeArray(frame, to);
    const int made = blosc2_.decode(frame, 0, to.data(), static_cast<int32_t>(to.size()));
    blosc2_.close(frame);
    if (made <= 0) return std::nullopt;
    return static_cast<size_t>(made);
  }

 private:
  void Open() const {
    MutexLock lock(init_mutex);
    blosc2_.init();
    blosc2_.storage(0);  // which is registered when it is first asked for
  }

  // Whether a layer of the frame's header has that name, now or formerly.
  static bool IsArray(std::span<const std::byte> frame) {
    const size_t header = LoadBigEndian<uint32_t>(frame.data() + kHeaderAt);
    const std::string_view text(reinterpret_cast<const char*>(frame.data()),
                                std::min(header, frame.size()));
    return text.find("b2nd") != text.npos || text.find("caterva") != text.npos;
  }

  std::optional<size_t> DecodeArray(Frame* frame, std::span<std::byte> to) const {
    Array* array = nullptr;
    if (rank_ == 0 || bytes_ > to.size() || blosc2_.to_array(frame, &array) < 0) {
      blosc2_.close(frame);
      return std::nullopt;
    }
    constexpr Shape kStart{};
    const bool done = std::equal(shape_.begin(), shape_.begin() + rank_, array->shape) &&
                      blosc2_.decode_array(array, kStart.data(), shape_.data(), to.data(),
                                           shape_.data(), static_cast<int64_t>(to.size())) >= 0;
    blosc2_.close_array(array);
    if (!done) return std::nullopt;
    return bytes_;
  }

  using Shape = std::array<int64_t, 2 * kMostRank>;  // more than any version of Blosc2 looks at
  const Functions blosc2_;
  const size_t rank_;  // 0: cd_values have no shape
  Shape shape_;
  size_t bytes_;
};

bool Bind(const FilterLibrary& library, Functions& to) {
  return library.Find("blosc2_init", to.init) && library.Find("blosc2_get_io_cb", to.storage) &&
         library.Find("blosc2_schunk_from_buffer", to.open) &&
         library.Find("blosc2_schunk_free", to.close) &&
         library.Find("blosc2_schunk_decompress_chunk", to.decode) &&
         library.Find("b2nd_from_schunk", to.to_array) &&
         library.Find("b2nd_free", to.close_array) &&
         library.Find("b2nd_get_slice_cbuffer", to.decode_array);
}

}  // namespace

BoundFilter BindBlosc2(const FilterLibrary& library, std::span<const unsigned> values) {
  Functions blosc2{};
  // With BLOSC_NTHREADS it has threads of its own.
  if (values.size() < 4 || values[2] == 0 || std::getenv("BLOSC_NTHREADS") != nullptr ||
      !Bind(library, blosc2)) {
    return nullptr;
  }
  std::span<const unsigned> shape;
  if (values.size() > kShapeAt) {
    const size_t rank = values[kShapeAt];
    if (rank < 2 || rank > kMostRank || values.size() < kShapeAt + 1 + rank) return nullptr;
    shape = values.subspan(kShapeAt + 1, rank);
  }
  return std::make_shared<const Blosc2>(blosc2, shape, values[2]);
}

}  // namespace tidelane::internal
