/// \file
/// C functions of the plugin's file for programs that load it themselves: queries, for the Python package and the program tidelane.
///
/// A scan is one query over columns of equal shape: datasets, or fields of compound datasets. It is lazy: elements are read and
/// compared block by block, in row-major order, as the caller asks for blocks; nothing of the size of a dataset is ever in memory. Each
/// call that may take long has a budget of time, so that its caller can look at signals and tell progress.
///
/// What a scan finds is what H5Dread would have given when its block was read: what is pending, in a chunk cache or on its way
/// included.
///
/// Texts that are returned belong to the caller: tidelane_free (vol/exports.h). Results below 0 are failures; the reason is then in `why`
/// (`size` bytes; may be nullptr), as "what: why (errno N)".
///
/// Invariant: a function keeps its name, arguments and meaning.
/// Thread safety: a scan may be used by one thread at a time. tidelane_query_open, _next, _count, _values, _explain, _rewind and _close enter the copy of HDF5 that
/// `hdf5` is in: where that is not thread-safe, the caller keeps other threads out of it meanwhile. The others enter no HDF5.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

struct tl_scan;

struct tl_query_column {
  const char* name;  ///< as the text calls it
  int64_t
      dataset;  ///< an identifier (hid_t) of an open dataset; the scan holds a reference of its own
  const char*
      field;  ///< of its compound type, "a" or "a.b" (names with dots: with a backslash before the dot); nullptr or "": the whole element
};

/// Block of a scan: `elements` elements from the row-major position `first` on, of which `hits` match. `bits`: one for each, the first in
/// the lowest bit of the first word; valid until the next call with this scan.
struct tl_query_block {
  uint64_t first;
  uint64_t elements;
  uint64_t hits;
  const uint64_t* bits;
};

enum {
  /// A decimal constant stands for the nearest number of a column's own floating type, as in NumPy; else for itself.
  TL_QUERY_CONSTANTS_OF_COLUMN = 1,
  /// Pieces of some kilobytes are read at once, so that small arrays are many of them: for tests.
  TL_QUERY_SMALL_PIECES = 2
};

/// JSON: ["Energy", "x"], the names of columns in `text`, ascending; nullptr, with the reason: it is no query.
char* tidelane_query_names(const char* text, char* why, size_t size);

/// `hdf5`: an address in the copy of HDF5 that the identifiers belong to (that of its H5open). Columns that the text does not name are there
/// for their values. nullptr, with the reason: no query, a name without column, columns of different shapes, a constant that does not
/// fit a column's type, an element type that cannot be compared (references, opaque, arrays, sequences), more than 2^63 elements.
tl_scan* tidelane_query_open(const void* hdf5, const char* text, const tl_query_column* columns,
                             size_t count, unsigned flags, char* why, size_t size);

/// The rank and the first `most` lengths of the columns' common shape.
int tidelane_query_shape(const tl_scan* scan, uint64_t* dims, int most);

/// The next block. 1: there it is; 0: there is none any more; 2: `budget_us` have passed, ask again.
int tidelane_query_next(tl_scan* scan, int64_t budget_us, tl_query_block* block, char* why,
                        size_t size);

/// Goes through all blocks that are left, and adds their hits to `count`, each block's when it has been looked at. 0: all; 2: `budget_us` have passed,
/// ask again. A block that tidelane_query_next has begun it goes on with; one that it has begun itself tidelane_query_next begins again: each
/// block is either given or counted. Whoever changes from one to the other for ever with no time at all may not come to a block's end.
int tidelane_query_count(tl_scan* scan, int64_t budget_us, uint64_t* count, char* why, size_t size);

/// Of the block that tidelane_query_next gave last:
/// the row-major positions of its hits, ascending, `hits` of them
void tidelane_query_positions(const tl_scan* scan, uint64_t* to);
/// 0 or 1 for each element
void tidelane_query_mask(const tl_scan* scan, uint8_t* to);
/// and its hits' elements in column `column` (its number in tidelane_query_open), in the machine's own form of the column's type
/// (tidelane_query_column_size bytes each; 0: no such column). Strings of variable length are not given: -1.
int tidelane_query_values(tl_scan* scan, size_t column, void* to, char* why, size_t size);
uint64_t tidelane_query_column_size(const tl_scan* scan, size_t column);

/// How many elements have been looked at, and how many there are.
void tidelane_query_progress(const tl_scan* scan, uint64_t* done, uint64_t* total);

/// JSON: {"query": text, "shape": [...], "elements": N, "columns": [{"name", "dataset", "field", "type", "layout", "filters": [...], "read": "as stored"
/// or "converted"}], "blocks": N, "strategy": "scan", "scanned": {"blocks", "elements", "bytes", "hits"}}.
char* tidelane_query_explain(const tl_scan* scan);

/// Begins again, with what the columns have now; their shape is asked anew, and must still be the same for all of them.
int tidelane_query_rewind(tl_scan* scan, char* why, size_t size);

void tidelane_query_close(tl_scan* scan);
}
