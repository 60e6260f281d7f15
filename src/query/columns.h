/// \file
/// The columns of a scan: datasets of one shape, or fields of them, read box by box.
///
/// Fields of one dataset share what is read of it, where records can be read as they are stored.
///
/// Invariant: all columns have the shape of the first one, as it was when they were opened. Thread safety: under HDF5's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "h5/library.h"
#include "predicate/element_type.h"
#include "query/box_reader.h"
#include "query/element.h"
#include "query/element_source.h"

namespace tidelane::query {

struct ColumnSpec {
  std::string name;
  hid_t dataset = h5::kNoId;
  std::string field;
};

struct Column {
  std::string name;
  std::string field;
  std::string type_name;
  predicate::ElementType type;
  size_t reader = 0;    // of Columns
  uint64_t offset = 0;  // bytes from the beginning of a record
  bool as_stored = false;
};

/// Copies a field of `size` bytes out of `count` records, of which the first one's begins at `from`.
void Pick(const std::byte* from, uint64_t record, uint64_t count, size_t size, std::byte* to);

class Columns final : public ElementSource {
 public:
  explicit Columns(h5::Library& hdf5) : hdf5_(hdf5) {}

  /// All, in this order; at least one.
  Status Open(const std::vector<ColumnSpec>& specs);

  size_t count() const { return columns_.size(); }
  const Column& at(size_t column) const { return columns_[column]; }
  /// count(): none of them.
  size_t Find(const std::string& name) const;
  const Layout& layout() const { return layout_; }
  const Layout& layout_of(size_t column) const { return layouts_[columns_[column].reader]; }
  h5::Library& hdf5() const { return hdf5_; }
  hid_t dataset_of(size_t column) const { return readers_[columns_[column].reader].dataset(); }
  /// Of those that read datasets, for one column or several.
  const std::deque<BoxReader>& readers() const { return readers_; }
  /// Of all of `columns`' elements at one position, as they are read.
  uint64_t RecordBytes(const std::vector<bool>& columns) const;
  uint64_t bytes_read() const;

  Status Load(size_t column, const Box& box, const std::byte*& elements) override;
  /// Whether a Load of it would read nothing.
  bool Holds(size_t column, const Box& box) const;
  /// What was read is not believed any more.
  void Forget();
  /// Asks for the shape anew. EINVAL: it is no longer the same for all.
  Status Refresh();

 private:
  Status Add(const ColumnSpec& spec);
  size_t ReaderFor(hid_t dataset, Element& element);

  struct Picked {
    std::unique_ptr<std::byte[]> bytes;  // a field's elements, one after another
    uint64_t capacity = 0;
    bool current = false;  // of `box`
    Box box;
  };

  h5::Library& hdf5_;
  Layout layout_;
  std::deque<BoxReader> readers_;
  std::vector<Layout> layouts_;  // of each reader's dataset
  std::vector<bool> shared_;     // likewise: it reads whole records
  std::vector<Column> columns_;
  std::vector<Picked> picked_;  // of each column
};

}  // namespace tidelane::query
