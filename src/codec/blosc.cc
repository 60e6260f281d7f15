/// \file
/// Blosc (32001): a chunk is a buffer of Blosc 1, which begins with, little-endian: four bytes of
/// versions, flags and type size; uint32 bytes decoded; uint32 bytes of a block; uint32 bytes of all.
///
/// The filter calls blosc_compress, which has one context under one lock, and a pool of threads where
/// BLOSC_NTHREADS asks for it. Its twin with a context of its own, on this thread only, makes the same
/// bytes. It does not look at the other BLOSC_ variables, so that with any of those Blosc is HDF5's.
///
/// Thread safety: see registered_filter.h.
#include <cstdint>
#include <cstdlib>
#include <limits>

#include "codec/byte_order.h"
#include "codec/registered_filter.h"

namespace tidelane::internal {
namespace {

constexpr size_t kHeader = 16;
constexpr size_t kMost = std::numeric_limits<int32_t>::max() - kHeader;  // BLOSC_MAX_BUFFERSIZE
constexpr const char* kVariables[] = {"BLOSC_CLEVEL",     "BLOSC_SHUFFLE",   "BLOSC_TYPESIZE",
                                      "BLOSC_COMPRESSOR", "BLOSC_BLOCKSIZE", "BLOSC_SPLITMODE"};

// cd_values: version (two of them), type size, chunk size, level, shuffle, compressor.
struct Settings {
  size_t type = 1;
  int level = 5;
  int shuffle = 1;
  const char* compressor = "blosclz";
};

struct Functions {
  int (*compress)(int level, int shuffle, size_t type, size_t bytes, const void* from, void* to,
                  size_t room, const char* compressor, size_t block, int threads);
  int (*decompress)(const void* from, void* to, size_t room, int threads);
  int (*name)(int code, const char** name);
};

class Blosc final : public RegisteredFilter {
 public:
  Blosc(const Functions& blosc, const Settings& settings) : blosc_(blosc), settings_(settings) {}

  size_t Bound(size_t bytes) const override { return bytes; }

  std::optional<size_t> Encode(std::span<const std::byte> from,
                               std::span<std::byte> to) const override {
    if (from.size() > kMost) return std::nullopt;
    return Result(blosc_.compress(settings_.level, settings_.shuffle, settings_.type, from.size(),
                                  from.data(), to.data(), from.size(), settings_.compressor, 0, 1));
  }

  std::optional<size_t> Decode(std::span<const std::byte> from,
                               std::span<std::byte> to) const override {
    if (from.size() < kHeader || LoadLittleEndian32(from.data() + 4) > to.size() ||
        LoadLittleEndian32(from.data() + 12) > from.size() || to.size() > kMost) {
      return std::nullopt;
    }
    return Result(blosc_.decompress(from.data(), to.data(), to.size(), 1));
  }

 private:
  static std::optional<size_t> Result(int made) {
    if (made <= 0) return std::nullopt;
    return static_cast<size_t>(made);
  }

  const Functions blosc_;
  const Settings settings_;
};

}  // namespace

BoundFilter BindBlosc(const FilterLibrary& library, std::span<const unsigned> values) {
  for (const char* variable : kVariables) {
    if (std::getenv(variable) != nullptr) return nullptr;
  }
  Functions blosc{};
  if (values.size() < 4 || !library.Find("blosc_compress_ctx", blosc.compress) ||
      !library.Find("blosc_decompress_ctx", blosc.decompress) ||
      !library.Find("blosc_compcode_to_compname", blosc.name)) {
    return nullptr;
  }
  Settings settings{.type = values[2]};
  if (values.size() > 4) settings.level = static_cast<int>(values[4]);
  if (values.size() > 5) settings.shuffle = static_cast<int>(values[5]);
  if (values.size() > 6 && blosc.name(static_cast<int>(values[6]), &settings.compressor) < 0) {
    return nullptr;
  }
  return std::make_shared<const Blosc>(blosc, settings);
}

}  // namespace tidelane::internal
