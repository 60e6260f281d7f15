/// \file
/// Decompressing needs room whose size nobody tells a filter. Chunks of a dataset are alike, so the
/// first try is what the last chunk took; where that is too little, twice as much, and so on up to
/// what such a stream can hold at all.
///
/// Invariant: the size of the buffer that HDF5 is told afterwards is what its own filter would have told, and the buffer has no
/// less. HDF5 takes it for more than that: H5Ocopy clears and copies as many bytes of other buffers, whose sizes agree with
/// what its own filter says and with nothing else.
///
/// Thread safety: see the header.
#include "vol/deflate_filter.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/counters.h"
#include "codec/deflate.h"
#include "engine/engine.h"

namespace tidelane::vol {
namespace {

constexpr size_t kMostRatio = 1032;  // of deflate: 258 bytes from two bits
constexpr size_t kFailed = 0;        // what a filter returns; HDF5 then says so on its error stack

// The program's buffer, as HDF5 hands it to a filter: to be freed and replaced on success only.
struct Buffer {
  size_t& size;
  void*& data;

  std::span<const std::byte> First(size_t bytes) const {
    return {static_cast<const std::byte*>(data), bytes};
  }
  void Replace(h5::Library& hdf5, void* with, size_t told) {
    hdf5.free_memory(data);
    data = with;
    size = told;
  }
};

std::span<std::byte> Allocate(h5::Library& hdf5, size_t room) {
  void* memory = hdf5.allocate_memory(room, false);
  return {static_cast<std::byte*>(memory), memory == nullptr ? 0 : room};
}

size_t Compress(h5::Library& hdf5, unsigned level, size_t bytes, Buffer buffer) {
  const std::span<std::byte> room = Allocate(hdf5, DeflateBound(bytes));
  if (room.empty()) return kFailed;
  const std::optional<size_t> made =
      DeflateEncode(Engine::Get().config().deflate, level, buffer.First(bytes), room);
  if (!made) {
    hdf5.free_memory(room.data());
    return kFailed;
  }
  // So says HDF5's own; where the result is larger, HDF5 2.2 takes that for a filter that wrote past its buffer.
  const size_t told = hdf5.major_version() >= 2 ? std::max(bytes, *made) : bytes;
  buffer.Replace(hdf5, room.data(), told);
  Count(Counter::kChunksDeflated);
  return *made;
}

// HDF5's own begins with as much as the buffer has and doubles that: the first such size that is `bytes` or more.
size_t RoomOfNative(size_t size, size_t bytes) {
  size = std::max<size_t>(size, 1);
  while (size < bytes) size *= 2;
  return size;
}

// A small chunk after a large one: HDF5 may keep it for long.
void GiveBack(h5::Library& hdf5, size_t room, Buffer buffer) {
  void* smaller = hdf5.resize_memory(buffer.data, room);
  if (smaller != nullptr) buffer.data = smaller;
}

size_t Decompress(LibraryState& library, size_t bytes, Buffer buffer) {
  h5::Library& hdf5 = library.hdf5();
  const size_t size = buffer.size;
  const size_t most = RoomOfNative(size, kMostRatio * bytes + 1);
  const size_t guess = library.last_inflated == 0 ? 4 * bytes : library.last_inflated;
  size_t try_with = RoomOfNative(size, std::min(guess, kMostRatio * bytes + 1));
  while (true) {
    const std::span<std::byte> room = Allocate(hdf5, try_with);
    if (room.empty()) return kFailed;
    size_t made = 0;
    const Inflated result = DeflateDecode(buffer.First(bytes), room, made);
    if (result == Inflated::kDone && made != 0) {
      const size_t told = RoomOfNative(size, made);
      buffer.Replace(hdf5, room.data(), told);
      if (room.size() > 2 * told) GiveBack(hdf5, told, buffer);
      library.last_inflated = made;
      Count(Counter::kChunksInflated);
      return made;
    }
    hdf5.free_memory(room.data());
    if (result != Inflated::kNoRoom || try_with >= most) return kFailed;
    try_with *= 2;
  }
}

size_t Filter(LibraryState& library, unsigned flags, size_t values, const unsigned level[],
              size_t bytes, size_t* size, void** data) {
  if (values != 1 || level[0] >= kDeflateLevels) return kFailed;
  const Buffer buffer{*size, *data};
  if ((flags & H5Z_FLAG_REVERSE) != 0) return Decompress(library, bytes, buffer);
  return Compress(library.hdf5(), level[0], bytes, buffer);
}

template <int Slot>
size_t FilterOf(unsigned flags, size_t values, const unsigned level[], size_t bytes, size_t* size,
                void** data) {
  return Filter(LibraryStateOf<Slot>(), flags, values, level, bytes, size, data);
}

template <size_t... Slots>
constexpr std::array<H5Z_func_t, h5::kSlots> Filters(std::index_sequence<Slots...>) {
  return {FilterOf<static_cast<int>(Slots)>...};
}
constexpr auto kFilters = Filters(std::make_index_sequence<h5::kSlots>());

}  // namespace

void ReplaceDeflate(LibraryState& library) {
  h5::Library& hdf5 = library.hdf5();
  if (Engine::Get().config().deflate == DeflateWith::kNative || !hdf5.CanReplaceFilters()) return;
  if (hdf5.Zfilter_avail(H5Z_FILTER_DEFLATE) <= 0) return;
  // Whether HDF5 1.14.6 loses filtered chunks that ranks write together, or hangs, depends on how large they come out:
  // an MPI program that runs natively keeps the sizes it ran with.
  if (hdf5.mpi() != nullptr && hdf5.mpi()->running()) return;
  const H5Z_class2_t filter{H5Z_CLASS_T_VERS,
                            H5Z_FILTER_DEFLATE,
                            1,
                            1,
                            "deflate",
                            nullptr,
                            nullptr,
                            kFilters[static_cast<size_t>(library.slot)]};
  if (!hdf5.FindFilter(H5Z_FILTER_DEFLATE, library.own_deflate)) library.own_deflate = {};
  hdf5.ReplaceFilter(filter);  // HDF5 keeps a copy
}

void RestoreDeflate(LibraryState& library) {
  if (library.own_deflate.id != H5Z_FILTER_DEFLATE) return;
  H5Z_class2_t now{};
  const bool ours = library.hdf5().FindFilter(H5Z_FILTER_DEFLATE, now) &&
                    now.filter == kFilters[static_cast<size_t>(library.slot)];
  if (!ours) return;  // the program has put one of its own in our place
  library.hdf5().ReplaceFilter(library.own_deflate);
  library.own_deflate = {};
}

}  // namespace tidelane::vol
