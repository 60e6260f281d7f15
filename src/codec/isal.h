/// \file
/// ISA-L's deflate: several times as fast as any other, at levels that compress less. There is no static
/// library of it in Debian or Ubuntu, so that it is looked for when somebody chooses it, and only then.
///
/// Invariant: no library is loaded, and nothing is called, before LoadIsal succeeded.
///
/// Thread safety: any thread may call these at any time. Compressors are kept (codec/pool.h).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace tidelane {

/// Loads it once for the process. False, with the reason in `why`: it is not installed, or too old.
bool LoadIsal(std::string& why);

/// A stream of zlib's format, at HDF5's `level` from 1 to 9; nullopt where `to` is too small for it,
/// memory is short, or it is not loaded.
std::optional<size_t> EncodeWithIsal(unsigned level, std::span<const std::byte> from,
                                     std::span<std::byte> to);

}  // namespace tidelane
