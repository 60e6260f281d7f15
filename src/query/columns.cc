#include "query/columns.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "extent/test_hooks.h"
#include "query/object_name.h"

namespace tidelane::query {

namespace {

bool SameShape(const Layout& a, const Layout& b) {
  return a.rank == b.rank && a.scalar == b.scalar &&
         std::equal(a.extent.begin(), a.extent.begin() + a.rank, b.extent.begin());
}

std::string ShapeOf(const Layout& layout) {
  if (layout.scalar) return "()";
  std::string text = "(";
  for (int d = 0; d < layout.rank; ++d)
    text += (d == 0 ? "" : ", ") + std::to_string(layout.extent[d]);
  return text + ")";
}

// Sizes that numbers have are known when this is compiled.
template <size_t size>
void PickOf(const std::byte* from, uint64_t record, uint64_t count, std::byte* to) {
  for (uint64_t i = 0; i < count; ++i) std::memcpy(to + i * size, from + i * record, size);
}

}  // namespace

void Pick(const std::byte* from, uint64_t record, uint64_t count, size_t size, std::byte* to) {
  switch (size) {
    case 1: PickOf<1>(from, record, count, to); break;
    case 2: PickOf<2>(from, record, count, to); break;
    case 4: PickOf<4>(from, record, count, to); break;
    case 8: PickOf<8>(from, record, count, to); break;
    default:
      for (uint64_t i = 0; i < count; ++i) std::memcpy(to + i * size, from + i * record, size);
  }
}

Status Columns::Open(const std::vector<ColumnSpec>& specs) {
  for (const ColumnSpec& spec : specs) {
    if (Status status = Add(spec); !status.ok()) return status;
  }
  return {};
}

Status Columns::Add(const ColumnSpec& spec) {
  if (hdf5_.Iget_type(spec.dataset) != H5I_DATASET)
    return Status::Failed(EINVAL, "find the dataset of column '" + spec.name + "'");
  Layout layout;
  if (Status status = FindLayout(hdf5_, spec.dataset, layout); !status.ok()) return status;
  if (columns_.empty()) layout_ = layout;
  if (!SameShape(layout, layout_)) {
    return Status::Failed(EINVAL, "query columns of different shapes: '" + columns_[0].name +
                                      "' has " + ShapeOf(layout_) + ", '" + spec.name + "' has " +
                                      ShapeOf(layout));
  }
  const h5::OwnedId type(hdf5_, hdf5_.Dget_type(spec.dataset));
  Element element;
  if (Status status = FindElement(hdf5_, type.get(), spec.field, element); !status.ok()) {
    return Status::Failed(status.code(), std::string(status.operation()) + " of column '" +
                                             spec.name + "', " +
                                             NameOfDataset(hdf5_, spec.dataset));
  }
  for (int d = 0; d < layout.rank; ++d)
    layout_.quantum[d] = std::max(layout_.quantum[d], layout.quantum[d]);
  layout_.filtered = layout_.filtered || layout.filtered;
  Column column{spec.name, spec.field,     element.name,        element.type,
                0,         element.offset, element.whole_record};
  column.reader = ReaderFor(spec.dataset, element);
  if (column.reader == layouts_.size()) layouts_.push_back(layout);
  columns_.push_back(std::move(column));
  picked_.emplace_back();
  return {};
}

size_t Columns::ReaderFor(hid_t dataset, Element& element) {
  for (size_t i = 0; i < readers_.size() && element.whole_record; ++i) {
    if (shared_[i] && readers_[i].dataset() == dataset) return i;
  }
  const bool variable = element.type.kind == predicate::ElementType::Kind::kVariableString;
  readers_.emplace_back(hdf5_, dataset, std::move(element.memory_type), element.record, variable);
  shared_.push_back(element.whole_record);
  return readers_.size() - 1;
}

size_t Columns::Find(const std::string& name) const {
  const auto found = std::ranges::find(columns_, name, &Column::name);
  return static_cast<size_t>(found - columns_.begin());
}

uint64_t Columns::RecordBytes(const std::vector<bool>& columns) const {
  std::vector<bool> counted(readers_.size());
  uint64_t bytes = 0;
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (!columns[i] || counted[columns_[i].reader]) continue;
    counted[columns_[i].reader] = true;
    bytes += readers_[columns_[i].reader].record();
  }
  return bytes;
}

uint64_t Columns::bytes_read() const {
  uint64_t bytes = 0;
  for (const BoxReader& reader : readers_) bytes += reader.bytes_read();
  return bytes;
}

bool Columns::Holds(size_t column, const Box& box) const {
  return readers_[columns_[column].reader].Holds(layout_.scalar ? 0 : layout_.rank, box);
}

Status Columns::Load(size_t number, const Box& box, const std::byte*& elements) {
  const Column& column = columns_[number];
  BoxReader& reader = readers_[column.reader];
  if (Status status = reader.Read(layout_.scalar ? 0 : layout_.rank, box); !status.ok())
    return status;
  if (reader.record() == column.type.size) {
    elements = reader.data();
    return {};
  }
  Picked& picked = picked_[number];
  if (!picked.current || !SameBox(layout_.rank, picked.box, box)) {
    uint64_t count = 1;
    for (int d = 0; d < layout_.rank; ++d) count *= box.size[d];
    const uint64_t bytes = count * column.type.size;
    if (bytes > picked.capacity) {
      picked.bytes.reset(new (std::nothrow) std::byte[bytes]);
      picked.capacity = picked.bytes == nullptr ? 0 : bytes;
      if (picked.bytes == nullptr)
        return Status::Failed(ENOMEM, "have memory for column '" + column.name + "'");
    }
    Pick(reader.data() + column.offset, reader.record(), count, column.type.size,
         picked.bytes.get());
    picked.current = true;
    picked.box = box;
  }
  elements = picked.bytes.get();
  return {};
}

void Columns::Forget() {
  for (BoxReader& reader : readers_) reader.Forget();
  for (Picked& picked : picked_) picked.current = false;
}

Status Columns::Refresh() {
  if (!MutationEnabled("query_stale")) Forget();
  for (size_t i = 0; i < readers_.size(); ++i) {
    if (Status status = FindLayout(hdf5_, readers_[i].dataset(), layouts_[i]); !status.ok())
      return status;
    if (!SameShape(layouts_[i], layouts_[0]))
      return Status::Failed(EINVAL, "query columns that have come to have different shapes");
  }
  layout_.extent = layouts_[0].extent;
  return {};
}

}  // namespace tidelane::query
