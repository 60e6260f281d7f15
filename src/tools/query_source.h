/// \file
/// The file that is asked, and where the columns of a query are in it: datasets of a group, or fields of one compound dataset.
///
/// Invariant: what is not found is said with the nearest names that there are.
/// Thread safety: one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/query_hdf5.h"

namespace tidelane::tools {

struct SourceColumn {
  std::string name;
  const Id* dataset = nullptr;
  std::string path;  ///< of the dataset, as it was named
  std::vector<std::string>
      fields;  ///< names of the fields that lead to it; none: the whole element
  Id type;     ///< of its elements, in the file

  std::string Field() const;  ///< as query/exports.h has fields
};

class Source {
 public:
  explicit Source(const Hdf5& hdf5) : hdf5_(hdf5) {}

  /// The functions below return what is wrong; empty: nothing.
  std::string Open(const std::string& path);
  /// Columns are datasets of this group from now on: "/", "/run7/step".
  std::string UseGroup(const std::string& path);
  /// Columns are fields of this compound dataset.
  std::string UseDataset(const std::string& path);
  std::string AddColumn(const std::string& name);

  std::vector<SourceColumn>& columns() { return columns_; }
  const std::vector<SourceColumn>& columns() const { return columns_; }

 private:
  std::string AddDataset(const std::string& name);
  std::string AddField(const std::string& name);
  std::string AddElements(const std::string& name);
  std::string NotThere(const std::string& what, hid_t from, const std::string& path);
  std::string Elsewhere(const std::string& name);
  std::vector<std::string> FieldsOf(hid_t type, const std::string& before = "") const;

  const Hdf5& hdf5_;
  std::string path_;
  Id file_;
  Id group_;
  std::string group_path_ = "/";
  Id table_;
  Id table_type_;
  std::string table_path_;
  std::vector<SourceColumn> columns_;
  std::vector<std::unique_ptr<Id>> datasets_;
};

}  // namespace tidelane::tools
