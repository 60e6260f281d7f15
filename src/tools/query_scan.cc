#include "tools/query_scan.h"

#include <algorithm>
#include <array>

namespace tidelane::tools {
namespace {

constexpr int64_t kBudgetUs = 50'000;
constexpr size_t kWhyBytes = 4096;
constexpr size_t kMostRows = 16384;   // at once
constexpr size_t kMostPoints = 1024;  // of one H5Dread
constexpr int kMostRank = 32;

using Why = std::array<char, kWhyBytes>;

// Elements of a column by themselves: fields in records that have nothing else.
Id MemoryType(const Hdf5& hdf5, const SourceColumn& column) {
  Id type(hdf5, hdf5.types.copy(column.type.get()));
  for (auto name = column.fields.rbegin(); name != column.fields.rend(); ++name) {
    Id outer(hdf5, hdf5.types.create(Hdf5Class::kCompound, hdf5.types.size(type.get())));
    hdf5.types.insert(outer.get(), name->c_str(), 0, type.get());
    type = std::move(outer);
  }
  return type;
}

}  // namespace

QueryFunctions::QueryFunctions(const LoadedLibrary& plugin) {
  plugin.Get("tidelane_query_open", open);
  plugin.Get("tidelane_query_shape", shape);
  plugin.Get("tidelane_query_next", next);
  plugin.Get("tidelane_query_count", count);
  plugin.Get("tidelane_query_positions", positions);
  plugin.Get("tidelane_query_values", values);
  plugin.Get("tidelane_query_column_size", column_size);
  plugin.Get("tidelane_query_progress", progress);
  plugin.Get("tidelane_query_explain", explain);
  plugin.Get("tidelane_query_close", close);
  plugin.Get("tidelane_free", free);
}

std::string PluginWords(const std::string& why) {
  constexpr std::string_view kMistake = ": Invalid argument (errno 22)";
  return why.ends_with(kMistake) ? why.substr(0, why.size() - kMistake.size()) : why;
}

QueryScan::~QueryScan() {
  if (scan_ != nullptr) functions_.close(scan_);
}

bool QueryScan::Open(const std::string& text, Meanwhile meanwhile, std::string& error) {
  meanwhile_ = std::move(meanwhile);
  std::vector<tl_query_column> columns;
  std::vector<std::string> fields;
  for (const SourceColumn& column : source_.columns()) fields.push_back(column.Field());
  for (size_t i = 0; i < fields.size(); ++i) {
    const SourceColumn& column = source_.columns()[i];
    columns.push_back({column.name.c_str(), column.dataset->get(), fields[i].c_str()});
  }
  Why why{};
  scan_ = functions_.open(hdf5_.Code(), text.c_str(), columns.data(), columns.size(),
                          TL_QUERY_CONSTANTS_OF_COLUMN, why.data(), why.size());
  if (scan_ == nullptr) {
    error = PluginWords(why.data());
    return false;
  }
  std::array<uint64_t, kMostRank> dims{};
  const int rank = functions_.shape(scan_, dims.data(), kMostRank);
  shape_.assign(dims.begin(), dims.begin() + std::clamp(rank, 0, kMostRank));
  for (size_t i = 0; i < columns.size(); ++i) {
    cells_.push_back(
        CellTypeOf(hdf5_, source_.columns()[i].type.get(), functions_.column_size(scan_, i)));
  }
  values_.resize(columns.size());
  return true;
}

Progressed QueryScan::progressed() const {
  Progressed progressed;
  functions_.progress(scan_, &progressed.done, &progressed.total);
  return progressed;
}

// The next block that has hits.
bool QueryScan::NextBlock(bool& any, std::string& error) {
  Why why{};
  tl_query_block block{};
  positions_.clear();
  given_ = 0;
  for (any = false; !any;) {
    const int step = functions_.next(scan_, kBudgetUs, &block, why.data(), why.size());
    if (step < 0) {
      error = PluginWords(why.data());
      return false;
    }
    meanwhile_(progressed());
    if (step == 0) return true;
    any = step == 1 && block.hits != 0;
  }
  found_ += block.hits;
  positions_.resize(block.hits);
  functions_.positions(scan_, positions_.data());
  for (size_t i = 0; i < values_.size(); ++i) {
    if (cells_[i].element.kind == predicate::ElementType::Kind::kVariableString) continue;
    values_[i].block.resize(block.hits * cells_[i].element.size);
    if (functions_.values(scan_, i, values_[i].block.data(), why.data(), why.size()) < 0) {
      error = PluginWords(why.data());
      return false;
    }
  }
  return true;
}

bool QueryScan::NextRows(size_t most, Rows& rows, std::string& error) {
  rows = {};
  if (given_ == positions_.size()) {
    bool any = false;
    if (!NextBlock(any, error)) return false;
    if (!any) return true;
  }
  rows.positions = positions_.data() + given_;
  rows.count = std::min({most, kMostRows, positions_.size() - given_});
  rows.first = given_;
  for (size_t i = 0; i < values_.size(); ++i) {
    if (cells_[i].element.kind == predicate::ElementType::Kind::kVariableString &&
        !LoadTexts(i, rows, error))
      return false;
  }
  given_ += rows.count;
  return true;
}

bool QueryScan::Count(uint64_t& hits, std::string& error) {
  Why why{};
  int step = 2;
  hits = found_;
  while (step == 2) {
    step = functions_.count(scan_, kBudgetUs, &hits, why.data(), why.size());
    if (step >= 0) meanwhile_(progressed());
  }
  if (step < 0) error = PluginWords(why.data());
  return step == 0;
}

// The plugin gives no strings of variable length: HDF5 does, of these elements alone.
bool QueryScan::LoadTexts(size_t column, const Rows& rows, std::string& error) {
  values_[column].texts.clear();
  for (size_t i = 0; i < rows.count; i += kMostPoints) {
    const size_t count = std::min(kMostPoints, rows.count - i);
    if (ReadTexts(column, rows.positions + i, count)) continue;
    error = "column '" + source_.columns()[column].name + "' cannot be read: " + hdf5_.Why();
    return false;
  }
  return true;
}

bool QueryScan::ReadTexts(size_t column, const uint64_t* positions, size_t count) {
  const SourceColumn& source = source_.columns()[column];
  std::vector<hsize_t> points(count * shape_.size());
  for (size_t i = 0; i < count; ++i) {
    uint64_t rest = positions[i];
    for (size_t d = shape_.size(); d-- > 0; rest /= shape_[d])
      points[i * shape_.size() + d] = rest % shape_[d];
  }
  const Id space(hdf5_, hdf5_.data.space(source.dataset->get()));
  if (!shape_.empty() && hdf5_.data.select_points(space.get(), 0, count, points.data()) < 0)
    return false;
  const hsize_t length = count;
  const Id memory(hdf5_, hdf5_.data.make_space(1, &length, nullptr));
  const Id type = MemoryType(hdf5_, source);
  std::vector<char*> texts(count);
  if (hdf5_.data.read(source.dataset->get(), type.get(), memory.get(), space.get(), kDefault,
                      texts.data()) < 0)
    return false;
  for (const char* text : texts) values_[column].texts.emplace_back(text == nullptr ? "" : text);
  return hdf5_.types.reclaim(type.get(), memory.get(), kDefault, texts.data()) >= 0;
}

const std::byte* QueryScan::Element(size_t column, const Rows& rows, size_t row) const {
  return values_[column].block.data() + (rows.first + row) * cells_[column].element.size;
}

std::string_view QueryScan::Text(size_t column, const Rows& rows, size_t row) const {
  if (cells_[column].element.kind == predicate::ElementType::Kind::kVariableString)
    return values_[column].texts[row];
  return TextOf(cells_[column], Element(column, rows, row));
}

std::string QueryScan::Explained() const {
  char* const text = functions_.explain(scan_);
  const std::string kept(text == nullptr ? "null" : text);
  functions_.free(text);
  return kept;
}

}  // namespace tidelane::tools
