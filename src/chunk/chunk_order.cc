#include "chunk/chunk_order.h"

#include <algorithm>
#include <tuple>

namespace tidelane {

std::vector<OrderedChunk> OrderChunks(std::span<const ToldChunk> all, int ranks,
                                      std::span<const SharedWrite> writes) {
  std::vector<OrderedChunk> chunks;
  const size_t each = all.size() / static_cast<size_t>(ranks);
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].size == 0) continue;
    const ChunkGrid& grid = writes[all[i].write].grid;
    chunks.push_back({all[i], static_cast<int>(i / each), grid.OffsetOf(all[i].chunk)});
  }
  const auto place = [&](const OrderedChunk& chunk) {
    return std::tie(writes[chunk.told.write].dataset, chunk.origin);
  };
  // The one that stays comes first.
  std::ranges::sort(chunks, [&](const OrderedChunk& a, const OrderedChunk& b) {
    if (place(a) != place(b)) return place(a) < place(b);
    return std::tie(a.told.write, a.rank) > std::tie(b.told.write, b.rank);
  });
  const auto [end, last] = std::ranges::unique(
      chunks, [&](const OrderedChunk& a, const OrderedChunk& b) { return place(a) == place(b); });
  chunks.erase(end, last);
  return chunks;
}

}  // namespace tidelane
