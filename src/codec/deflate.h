/// \file
/// Streams of zlib's format, as HDF5's deflate filter stores them: one buffer in, one out.
///
/// Invariant: what DeflateEncode makes, every reader of the format decodes to the same bytes,
/// whichever library made it; DeflateDecode never writes beyond `to`, whatever it is given.
///
/// Thread safety: any thread may call these at any time. Compressors are kept for the next call
/// (codec/pool.h).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "base/config.h"

namespace tidelane {

inline constexpr unsigned kDeflateLevels = 10;  ///< 0, stored, to 9

/// The room that DeflateEncode needs, so that it fails for no data.
size_t DeflateBound(size_t bytes);

/// Called before the first use of `with`, except kNative. False, with the reason in `why`: its library
/// is not there.
bool PrepareDeflate(DeflateWith with, std::string& why);

/// The bytes written to `to`, which should have DeflateBound; nullopt when it is too small,
/// memory is short, or `with` is HDF5 itself. All streams are decompressed by libdeflate, which is the
/// fastest at that, too.
std::optional<size_t> DeflateEncode(DeflateWith with, unsigned level,
                                    std::span<const std::byte> from, std::span<std::byte> to);

enum class Inflated { kDone, kNoRoom, kCorrupt };
/// `bytes` is what was written to `to` when done. kNoRoom: `from` holds more than `to` does. What
/// follows the end of the stream is ignored, as zlib and HDF5 do.
Inflated DeflateDecode(std::span<const std::byte> from, std::span<std::byte> to, size_t& bytes);

}  // namespace tidelane
