#include "vol/chunk_overlay.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "h5/error.h"
#include "h5/owned_id.h"
#include "vol/selected_box.h"
#include "vol/stretches.h"

namespace tidelane::vol {

namespace {

constexpr hid_t kFromList = 2;

class Overlay {
 public:
  Overlay(LibraryState& library, const Reading& reading, const ChunkGrid& grid,
          const std::vector<HeldChunk>& chunks)
      : library_(library),
        reading_(reading),
        type_(AskDataset(library, reading.dataset, H5VL_DATASET_GET_TYPE, reading.dxpl)),
        space_(AskDataset(library, reading.dataset, H5VL_DATASET_GET_SPACE, reading.dxpl)),
        grid_(grid),
        in_memory_(library.hdf5().Tget_size(reading.memory_type)),
        same_type_(library.hdf5().Tequal(type_.get(), reading.memory_type) > 0) {
    if (!FindExtent(library, reading.dataset, reading.dxpl, grid_)) return;
    // Newer ones of the same chunk take the older one's place.
    for (const HeldChunk& chunk : chunks) chunks_[grid_.IndexOf(chunk.origin.data())] = &chunk;
  }

  bool Lay() {
    h5::Library& hdf5 = library_.hdf5();
    const hid_t file = reading_.file_space == h5::kDefault ? space_.get() : reading_.file_space;
    hid_t memory = reading_.memory_space == h5::kDefault ? file : reading_.memory_space;
    h5::OwnedId block;
    if (memory == kBlockSpace) {
      const auto points = static_cast<hsize_t>(hdf5.Sget_select_npoints(file));
      block = h5::OwnedId(hdf5, hdf5.Screate_simple(1, &points, nullptr));
      memory = block.get();
    }
    Stretches from(hdf5, file, grid_.element);
    Stretches to(hdf5, memory, in_memory_);
    while (from.More() && to.More()) {
      Coordinates origin{};
      uint64_t in_chunk = 0;
      const uint64_t count = std::min({from.count, to.count, Together(from.at, origin, in_chunk)});
      const auto chunk = chunks_.find(grid_.IndexOf(origin.data()));
      auto* const memory_at = static_cast<std::byte*>(reading_.buffer) + to.at * in_memory_;
      if (chunk != chunks_.end() && !Copy(*chunk->second, in_chunk, memory_at, count)) return false;
      from.Skip(count);
      to.Skip(count);
    }
    return true;
  }

 private:
  // How many elements from `at` on lie together in a chunk, which one, and where in it.
  uint64_t Together(uint64_t at, Coordinates& origin, uint64_t& in_chunk) const {
    uint64_t together = 0;
    uint64_t step = 1;
    for (int d = grid_.rank - 1; d >= 0; --d) {
      const uint64_t here = at % grid_.extent[d];
      at /= grid_.extent[d];
      const uint64_t inside = here % grid_.chunk[d];
      origin[d] = here - inside;
      in_chunk += inside * step;
      step *= grid_.chunk[d];
      if (d == grid_.rank - 1) together = std::min(grid_.chunk[d] - inside, grid_.extent[d] - here);
    }
    return together;
  }

  bool Copy(const HeldChunk& chunk, uint64_t in_chunk, std::byte* to, uint64_t count) {
    const std::byte* const from = chunk.bytes + in_chunk * grid_.element;
    const uint64_t in_file = count * grid_.element;
    const uint64_t size = count * in_memory_;
    if (same_type_) {
      std::memcpy(to, from, in_file);
      return true;
    }
    // Fields of compound elements that the file has not are kept.
    converted_.resize(std::max(in_file, size));
    background_.assign(to, to + size);
    std::memcpy(converted_.data(), from, in_file);
    if (library_.hdf5().Tconvert(type_.get(), reading_.memory_type, count, converted_.data(),
                                 background_.data(), reading_.dxpl) < 0) {
      return false;
    }
    std::memcpy(to, converted_.data(), size);
    return true;
  }

  LibraryState& library_;
  const Reading& reading_;
  const h5::OwnedId type_;
  const h5::OwnedId space_;
  ChunkGrid grid_;
  const size_t in_memory_;
  const bool same_type_;
  std::unordered_map<uint64_t, const HeldChunk*> chunks_;
  std::vector<std::byte> converted_, background_;
};

// Nobody but HDF5 can tell what such a list makes of a read.
bool IsSimple(h5::Library& hdf5, const Reading& reading) {
  void* transform = nullptr;
  return reading.file_space != kFromList && reading.memory_space != kFromList &&
         hdf5.Pget(reading.dxpl, "data_transform", &transform) >= 0 && transform == nullptr;
}

}  // namespace

bool OverlayChunks(LibraryState& library, const Reading& reading, const ChunkGrid& grid,
                   const std::vector<HeldChunk>& chunks) {
  if (chunks.empty()) return true;
  if (!IsSimple(library.hdf5(), reading)) {
    h5::PushError(
        library.hdf5(),
        "a rank reads alone, with such a transfer list, what ranks have written together: "
        "flush first");
    return false;
  }
  return Overlay(library, reading, grid, chunks).Lay();
}

}  // namespace tidelane::vol
