/// \file
/// A query that runs in the plugin (query/exports.h), as a stream of its hits.
///
/// Invariant: memory is that of a block of the scan and of its hits' elements; nothing grows with the number of hits.
/// Thread safety: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "query/exports.h"
#include "tools/loaded_library.h"
#include "tools/query_cells.h"
#include "tools/query_hdf5.h"
#include "tools/query_source.h"

namespace tidelane::tools {

struct QueryFunctions {
  explicit QueryFunctions(const LoadedLibrary& plugin);
  decltype(&tidelane_query_open) open;
  decltype(&tidelane_query_shape) shape;
  decltype(&tidelane_query_next) next;
  decltype(&tidelane_query_count) count;
  decltype(&tidelane_query_positions) positions;
  decltype(&tidelane_query_values) values;
  decltype(&tidelane_query_column_size) column_size;
  decltype(&tidelane_query_progress) progress;
  decltype(&tidelane_query_explain) explain;
  decltype(&tidelane_query_close) close;
  void (*free)(char*);
};

struct Progressed {
  uint64_t done = 0;
  uint64_t total = 0;
};

class QueryScan {
 public:
  using Meanwhile = std::function<void(Progressed)>;

  /// Elements of a column, of the hits that NextRows gave last.
  struct Values {
    std::vector<std::byte> block;    ///< of all hits of the block; of texts nothing
    std::vector<std::string> texts;  ///< strings of variable length
  };
  struct Rows {
    const uint64_t* positions = nullptr;  ///< row-major
    size_t count = 0;
    size_t first = 0;  ///< of the block's hits
  };

  QueryScan(const Hdf5& hdf5, const LoadedLibrary& plugin, const Source& source)
      : hdf5_(hdf5), functions_(plugin), source_(source) {}
  ~QueryScan();
  QueryScan(const QueryScan&) = delete;
  QueryScan& operator=(const QueryScan&) = delete;

  /// `meanwhile` is called some times a second. The functions below return false with the reason in `error`.
  bool Open(const std::string& text, Meanwhile meanwhile, std::string& error);
  /// The next hits, at most `most`; none: that was all.
  bool NextRows(size_t most, Rows& rows, std::string& error);
  /// All hits, of which those after the current block's are counted only.
  bool Count(uint64_t& hits, std::string& error);

  /// Of Rows: a number's or a fixed string's bytes, and any string.
  const std::byte* Element(size_t column, const Rows& rows, size_t row) const;
  std::string_view Text(size_t column, const Rows& rows, size_t row) const;

  const std::vector<CellType>& cells() const { return cells_; }
  const std::vector<uint64_t>& shape() const { return shape_; }
  const Source& source() const { return source_; }
  Progressed progressed() const;
  uint64_t found() const { return found_; }  ///< hits of the blocks so far
  std::string Explained() const;

 private:
  bool NextBlock(bool& any, std::string& error);
  bool LoadTexts(size_t column, const Rows& rows, std::string& error);
  bool ReadTexts(size_t column, const uint64_t* positions, size_t count);

  const Hdf5& hdf5_;
  QueryFunctions functions_;
  const Source& source_;
  Meanwhile meanwhile_;
  tl_scan* scan_ = nullptr;
  std::vector<uint64_t> shape_;
  std::vector<CellType> cells_;
  std::vector<Values> values_;
  std::vector<uint64_t> positions_;  // of the block's hits
  size_t given_ = 0;                 // of these
  uint64_t found_ = 0;
};

/// "cannot query x: Invalid argument (errno 22)" without what a person needs not.
std::string PluginWords(const std::string& why);

}  // namespace tidelane::tools
