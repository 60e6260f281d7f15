/// \file
/// Of ISA-L's levels 1 and 2 are used: 0 compresses much less and is no faster, 3 takes twice the time
/// for nothing on numbers. Measured in docs/decisions/0010-deflate.md.
///
/// Thread safety: see the header.
#include "codec/isal.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <isa-l/igzip_lib.h>
#include <limits>
#include <new>

#include "base/annotations.h"
#include "codec/pool.h"

namespace tidelane {
namespace {

constexpr char kLibrary[] = "libisal.so.2";  // whose structures are those of our header
constexpr unsigned kFastest = 1, kSmaller = 2;

struct Functions {
  decltype(&isal_deflate_stateless_init) init;
  decltype(&isal_deflate_stateless) run;
};
constinit Functions isal{};
constinit std::atomic<bool> loaded{false};
constinit Mutex load_mutex;

struct Compressor {
  isal_zstream stream;
  std::array<uint8_t, ISAL_DEF_LVL2_DEFAULT> room;  // that level 2 asks for, and 1 is content with
};
static_assert(ISAL_DEF_LVL1_MIN <= ISAL_DEF_LVL2_DEFAULT);

void Free(Compressor* compressor) { delete compressor; }
constinit Pool<Compressor, Free> compressors;

template <typename Function>
bool Find(void* handle, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(handle, name));
  return function != nullptr;
}

}  // namespace

// The handle is never given back: lanes may be inside until the process ends.
bool LoadIsal(std::string& why) {
  MutexLock lock(load_mutex);
  if (loaded.load(std::memory_order_acquire)) return true;
  void* const handle = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr || !Find(handle, "isal_deflate_stateless_init", isal.init) ||
      !Find(handle, "isal_deflate_stateless", isal.run)) {
    const char* const error = dlerror();
    why = error != nullptr ? error : kLibrary;
    return false;
  }
  loaded.store(true, std::memory_order_release);
  return true;
}

std::optional<size_t> EncodeWithIsal(unsigned level, std::span<const std::byte> from,
                                     std::span<std::byte> to) {
  constexpr size_t kMost = std::numeric_limits<uint32_t>::max();
  if (!loaded.load(std::memory_order_acquire) || from.size() > kMost) return std::nullopt;
  Compressor* compressor = compressors.Take();
  if (compressor == nullptr) compressor = new (std::nothrow) Compressor;
  if (compressor == nullptr) return std::nullopt;
  isal_zstream& stream = compressor->stream;
  isal.init(&stream);
  stream.level = level <= kFastest ? kFastest : kSmaller;
  stream.level_buf = compressor->room.data();
  stream.level_buf_size = static_cast<uint32_t>(compressor->room.size());
  stream.gzip_flag = IGZIP_ZLIB;
  stream.flush = NO_FLUSH;
  stream.end_of_stream = 1;
  stream.next_in = const_cast<uint8_t*>(reinterpret_cast<const uint8_t*>(from.data()));
  stream.avail_in = static_cast<uint32_t>(from.size());
  stream.next_out = reinterpret_cast<uint8_t*>(to.data());
  stream.avail_out = static_cast<uint32_t>(std::min(to.size(), kMost));
  const int result = isal.run(&stream);
  const size_t made = stream.total_out;
  compressors.Give(compressor);
  if (result != COMP_OK) return std::nullopt;
  return made;
}

}  // namespace tidelane
