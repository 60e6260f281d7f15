#include "query/late_search.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/counters.h"
#include "engine/engine.h"
#include "file/call_scope.h"
#include "h5/stored_arrays.h"
#include "query/columns.h"
#include "query/object_name.h"
#include "query/selection.h"

namespace tidelane::query {

namespace {

// Below this a lane takes as long to be woken as the scan itself.
constexpr uint64_t kLeastBytes = 64u << 10;
// Hits are kept as a bit for each element: 256 MiB.
constexpr uint64_t kMostElements = uint64_t{1} << 31;
// So that the places of their pieces are few.
constexpr uint64_t kMostBytes = uint64_t{1} << 40;
// A lane has a tile of each column, and takes one after the other: enough for storage, and not more than its cache.
constexpr TileSizes kLateTiles{2u << 20, 512u << 10, 16u << 20};

// Everybody holds a tile, a chunk, and of one with filters what is stored and what is between two of them.
unsigned HelpersFor(Engine& engine, const std::vector<StoredArray>& arrays) {
  uint64_t bytes = kLateTiles.most;
  bool decodes = false;
  for (const StoredArray& array : arrays) {
    decodes |= array.pipeline != nullptr;
    bytes += array.grid.ChunkBytes() * (array.pipeline != nullptr ? 3 : 1);
  }
  const unsigned most = decodes ? engine.FilterLanes() : engine.config().lanes_for_all();
  return static_cast<unsigned>(std::min<uint64_t>(engine.arena().cap() / bytes, most));
}

bool SameShape(const ChunkGrid& grid, const Layout& layout) {
  return grid.rank == layout.rank &&
         std::equal(grid.extent.begin(), grid.extent.begin() + grid.rank, layout.extent.begin());
}

// Where the records of all readers lie; false: of one of them only HDF5 knows.
bool FindArrays(const Columns& columns, std::vector<StoredArray>& arrays) {
  for (size_t i = 0; i < columns.count(); ++i) {
    if (!columns.at(i).as_stored) return false;
  }
  for (const BoxReader& reader : columns.readers()) {
    std::optional<StoredArray> array =
        h5::FindStoredArray(columns.hdf5(), reader.dataset(), reader.memory_type());
    if (!array.has_value() || array->grid.element != reader.record() ||
        !SameShape(array->grid, columns.layout()) ||
        (!arrays.empty() && array->source != arrays.front().source)) {
      return false;
    }
    arrays.push_back(*std::move(array));
  }
  return true;
}

}  // namespace

std::shared_ptr<LateSearch> LateSearch::Begin(const Scan& scan) {
  const Columns& columns = scan.columns();
  Engine& engine = Engine::Get();
  CallScope* const call = CallScope::current();
  const std::vector<bool> used = scan.filter().Used(columns.count());
  const uint64_t record = std::max<uint64_t>(1, columns.RecordBytes(used));
  const uint64_t elements = scan.blocks().elements();
  if (call == nullptr || columns.layout().scalar || std::ranges::count(used, true) == 0 ||
      elements <= kLeastBytes / record) {
    return nullptr;  // nothing to be told: lanes would not gain anything
  }
  std::vector<StoredArray> arrays;
  const bool may =
      engine.lanes().threaded() && elements <= std::min(kMostElements, kMostBytes / record);
  const unsigned helpers = may && FindArrays(columns, arrays) ? HelpersFor(engine, arrays) : 0;
  std::shared_ptr<LateSearch> search;
  if (helpers != 0) {
    auto lanes = std::make_shared<LateScan>(scan, std::move(arrays), scan.Plan(kLateTiles),
                                            engine.lanes(), helpers);
    search.reset(new LateSearch(scan, std::move(lanes)));
  }
  if (search == nullptr || !search->Keep(columns)) {
    Count(Fallback::kQueryNow);
    return nullptr;
  }
  call->AddRead(search->lanes_, search->lanes_->FileBytes());
  return search;
}

bool LateSearch::Keep(const Columns& columns) {
  h5::Library& hdf5 = columns.hdf5();
  for (size_t i = 0; i < columns.count(); ++i) {
    H5O_info2_t info;
    if (hdf5.Oget_info3(columns.dataset_of(i), &info, H5O_INFO_BASIC) < 0) return false;
    columns_.push_back({columns.at(i).name, columns.at(i).field, info.token});
  }
  const h5::OwnedId space(hdf5, hdf5.Dget_space(columns.dataset_of(0)));
  most_.resize(static_cast<size_t>(layout_.rank));
  return hdf5.Sget_simple_extent_dims(space.get(), nullptr, most_.data()) == layout_.rank;
}

Status LateSearch::Finish(h5::Library& hdf5, hid_t file, bool unchanged, hid_t& space) {
  if (lanes_ != nullptr) {
    status_ = Select(hdf5, file, unchanged);
    lanes_ = nullptr;
  }
  space = space_.valid() ? space_.get() : h5::kNoId;
  return status_;
}

Status LateSearch::Select(h5::Library& hdf5, hid_t file, bool unchanged) {
  Status status = lanes_->status();
  if (!status.ok()) {
    Count(Fallback::kReadFailed);
    return unchanged ? LookAgain(hdf5, file) : status;
  }
  Selection selection(layout_);
  for (const auto& [first, bits] : lanes_->hits()) selection.Add(first, bits);
  if (selection.hits() == 0) return {};
  space_ =
      h5::OwnedId(hdf5, hdf5.Screate_simple(layout_.rank, layout_.extent.data(), most_.data()));
  return selection.Select(hdf5, space_);
}

Status LateSearch::LookAgain(h5::Library& hdf5, hid_t file) {
  std::vector<h5::OwnedId> datasets;
  std::vector<ColumnSpec> specs;
  for (const Kept& column : columns_) {
    datasets.emplace_back(hdf5, hdf5.Oopen_by_token(file, column.dataset));
    if (!datasets.back().valid()) return FailedAt(hdf5, "open a dataset of", file);
    specs.push_back({column.name, datasets.back().get(), column.field});
  }
  Scan scan(hdf5, query_);
  if (Status status = scan.Open(specs, predicate::Constants::kExact); !status.ok()) return status;
  return Search(scan, space_);
}

}  // namespace tidelane::query
