#include "tools/query_write.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <vector>

namespace tidelane::tools {
namespace {

constexpr unsigned kTruncate = 2;       // H5F_ACC_TRUNC
constexpr int kUtf8 = 1;                // H5T_CSET_UTF8
constexpr size_t kVariable = SIZE_MAX;  // H5T_VARIABLE
constexpr hsize_t kUnlimited = ~hsize_t{0};
constexpr size_t kChunkBytes = 1 << 16;
constexpr size_t kWriteBytes = 1 << 20;

bool Failed(const Hdf5& hdf5, const std::string& what, std::string& error) {
  error = what + ": " + hdf5.Why();
  return false;
}

/// One that grows along its first dimension, and what is not in it yet.
class GrowingDataset {
 public:
  GrowingDataset(const Hdf5& hdf5, Id type, size_t element, size_t width)
      : hdf5_(hdf5), type_(std::move(type)), row_(element * std::max<size_t>(width, 1)) {
    const hsize_t chunk = std::clamp<hsize_t>(kChunkBytes / row_, 1, kChunkBytes);
    most_ = std::max<hsize_t>(kWriteBytes / row_ / chunk, 1) * chunk;
    chunk_ = {chunk};
    if (width != 0) chunk_.push_back(width);
  }

  bool Create(hid_t file, const std::string& name) {
    std::vector<hsize_t> none = chunk_;
    std::vector<hsize_t> most = chunk_;
    none[0] = 0;
    most[0] = kUnlimited;
    const Id space(hdf5_, hdf5_.data.make_space(rank(), none.data(), most.data()));
    const Id creation(hdf5_, hdf5_.data.create_list(hdf5_.Predefined("H5P_CLS_DATASET_CREATE_ID")));
    const Id links(hdf5_, hdf5_.data.create_list(hdf5_.Predefined("H5P_CLS_LINK_CREATE_ID")));
    hdf5_.data.set_chunk(creation.get(), rank(), chunk_.data());
    hdf5_.data.set_groups(links.get(), 1);
    hdf5_.data.set_character_set(links.get(), kUtf8);
    dataset_ = Id(hdf5_, hdf5_.data.create(file, name.c_str(), type_.get(), space.get(),
                                           links.get(), creation.get(), kDefault));
    return dataset_.valid();
  }

  /// Of a whole row.
  bool Add(const void* bytes, size_t rows) {
    const auto* const from = static_cast<const std::byte*>(bytes);
    waiting_.insert(waiting_.end(), from, from + rows * row_);
    return waiting_.size() < most_ * row_ || Store();
  }
  bool Add(std::string_view text) {
    texts_.emplace_back(text);
    bytes_ += text.size();
    return (texts_.size() < most_ && bytes_ < kWriteBytes) || Store();
  }

  bool Store() {
    std::vector<const char*> pointers;
    for (const std::string& text : texts_) pointers.push_back(text.c_str());
    const void* const from = texts_.empty() ? static_cast<const void*>(waiting_.data())
                                            : static_cast<const void*>(pointers.data());
    std::vector<hsize_t> size = chunk_;
    size[0] = texts_.empty() ? waiting_.size() / row_ : texts_.size();
    if (size[0] == 0) return true;
    std::vector<hsize_t> start(chunk_.size());
    start[0] = stored_;
    std::vector<hsize_t> extent = size;
    extent[0] += stored_;
    if (hdf5_.data.set_extent(dataset_.get(), extent.data()) < 0) return false;
    const Id memory(hdf5_, hdf5_.data.make_space(rank(), size.data(), nullptr));
    const Id space(hdf5_, hdf5_.data.space(dataset_.get()));
    if (hdf5_.data.select_box(space.get(), 0, start.data(), nullptr, size.data(), nullptr) < 0 ||
        hdf5_.data.write(dataset_.get(), type_.get(), memory.get(), space.get(), kDefault, from) <
            0)
      return false;
    stored_ = extent[0];
    waiting_.clear();
    texts_.clear();
    bytes_ = 0;
    return true;
  }

  bool Close() { return Store() && dataset_.Close(); }
  hid_t id() const { return dataset_.get(); }

 private:
  int rank() const { return static_cast<int>(chunk_.size()); }

  const Hdf5& hdf5_;
  Id type_;
  size_t row_;
  std::vector<hsize_t> chunk_;
  hsize_t most_ = 0;  // rows that wait
  Id dataset_;
  hsize_t stored_ = 0;
  std::vector<std::byte> waiting_;
  std::deque<std::string> texts_;
  size_t bytes_ = 0;
};

class HitsFile {
 public:
  HitsFile(const Hdf5& hdf5, QueryScan& scan) : hdf5_(hdf5), scan_(scan) {}

  bool Write(const Written& written, std::string& error) {
    file_ =
        Id(hdf5_, hdf5_.objects.create_file(written.path.c_str(), kTruncate, kDefault, kDefault));
    if (!file_.valid()) return Failed(hdf5_, "the new file cannot be created", error);
    if (!Describe(file_.get(), "query", written.query) ||
        !Describe(file_.get(), "source", written.source))
      return Failed(hdf5_, "an attribute cannot be written", error);
    if (!CreateAll(error) || !WriteAll(error)) return false;
    for (const auto& dataset : datasets_) {
      if (!dataset->Close()) return Failed(hdf5_, "hits cannot be written", error);
    }
    return file_.Close() || Failed(hdf5_, "the new file cannot be closed", error);
  }

 private:
  // The machine's own form of the column's type, which has this size in memory.
  Id TypeOf(size_t column) const {
    const Hdf5Types& types = hdf5_.types;
    const hid_t type = scan_.source().columns()[column].type.get();
    const size_t size = scan_.cells()[column].element.size;
    if (types.of(type) == Hdf5Class::kString) return Id(hdf5_, types.copy(type));
    Id native(hdf5_, types.native(type, 0));
    if (native.valid() && types.size(native.get()) == size) return native;
    Id same(hdf5_, types.copy(type));  // a half, of which HDF5 makes a float
    types.set_order(same.get(), types.order(hdf5_.Predefined("H5T_NATIVE_INT")));
    return types.size(same.get()) == size ? std::move(same) : Id();
  }

  bool Describe(hid_t object, const char* name, const std::string& text) const {
    const Id type(hdf5_, hdf5_.types.copy(hdf5_.Predefined("H5T_C_S1")));
    hdf5_.types.set_size(type.get(), kVariable);
    hdf5_.types.set_character_set(type.get(), kUtf8);
    const hsize_t one = 1;
    const Id space(hdf5_, hdf5_.data.make_space(0, &one, nullptr));
    const Id attribute(hdf5_, hdf5_.data.create_attribute(object, name, type.get(), space.get(),
                                                          kDefault, kDefault));
    const char* const pointer = text.c_str();
    return attribute.valid() &&
           hdf5_.data.write_attribute(attribute.get(), type.get(), &pointer) >= 0;
  }

  // "coordinates", unless a column is called so.
  std::string CoordinatesName() const {
    std::string name = "coordinates";
    const auto taken = [&](const SourceColumn& column) {
      const std::string own =
          column.name.substr(std::min(column.name.size(), column.name.find_first_not_of('/')));
      return own == name || own.starts_with(name + "/");
    };
    while (std::ranges::any_of(scan_.source().columns(), taken)) name += '_';
    return name;
  }

  bool Create(std::unique_ptr<GrowingDataset> dataset, const std::string& name,
              std::string& error) {
    if (!dataset->Create(file_.get(), name))
      return Failed(hdf5_, "dataset '" + name + "' cannot be created", error);
    datasets_.push_back(std::move(dataset));
    return true;
  }

  bool CreateAll(std::string& error) {
    const std::vector<SourceColumn>& columns = scan_.source().columns();
    for (size_t i = 0; i < columns.size(); ++i) {
      Id type = TypeOf(i);
      if (!type.valid())
        return Failed(hdf5_, "column '" + columns[i].name + "' has a type that cannot be written",
                      error);
      auto dataset = std::make_unique<GrowingDataset>(hdf5_, std::move(type),
                                                      scan_.cells()[i].element.size, 0);
      if (!Create(std::move(dataset), columns[i].name, error)) return false;
      const hid_t id = datasets_.back()->id();
      if (!Describe(id, "dataset", columns[i].path) ||
          (!columns[i].fields.empty() && !Describe(id, "field", columns[i].Field())))
        return Failed(hdf5_, "an attribute cannot be written", error);
    }
    if (scan_.shape().empty()) return true;
    Id whole(hdf5_, hdf5_.types.copy(hdf5_.Predefined("H5T_NATIVE_UINT64")));
    return Create(std::make_unique<GrowingDataset>(hdf5_, std::move(whole), sizeof(uint64_t),
                                                   scan_.shape().size()),
                  CoordinatesName(), error);
  }

  bool WriteAll(std::string& error) {
    QueryScan::Rows rows;
    for (;;) {
      if (!scan_.NextRows(SIZE_MAX, rows, error)) return false;
      if (rows.count == 0) return true;
      for (size_t i = 0; i < scan_.cells().size(); ++i) {
        if (!AddColumn(i, rows)) return Failed(hdf5_, "hits cannot be written", error);
      }
      if (scan_.shape().empty()) continue;
      Locate(rows);
      if (!datasets_.back()->Add(coordinates_.data(), rows.count))
        return Failed(hdf5_, "coordinates cannot be written", error);
    }
  }

  bool AddColumn(size_t column, const QueryScan::Rows& rows) {
    if (scan_.cells()[column].element.kind != predicate::ElementType::Kind::kVariableString)
      return datasets_[column]->Add(scan_.Element(column, rows, 0), rows.count);
    for (size_t row = 0; row < rows.count; ++row) {
      if (!datasets_[column]->Add(scan_.Text(column, rows, row))) return false;
    }
    return true;
  }

  void Locate(const QueryScan::Rows& rows) {
    const std::vector<uint64_t>& shape = scan_.shape();
    coordinates_.resize(rows.count * shape.size());
    for (size_t row = 0; row < rows.count; ++row) {
      uint64_t rest = rows.positions[row];
      for (size_t d = shape.size(); d-- > 0; rest /= shape[d])
        coordinates_[row * shape.size() + d] = rest % shape[d];
    }
  }

  const Hdf5& hdf5_;
  QueryScan& scan_;
  Id file_;
  std::vector<std::unique_ptr<GrowingDataset>> datasets_;
  std::vector<uint64_t> coordinates_;
};

}  // namespace

bool WriteHits(const Hdf5& hdf5, QueryScan& scan, const Written& written, std::string& error) {
  return HitsFile(hdf5, scan).Write(written, error);
}

}  // namespace tidelane::tools
