/// \file
/// The names under which the library for programs (library/) and the plugin find each other.
///
/// The library is linked to the program, the plugin is loaded by its HDF5; they share no symbol.
/// What a program sets travels as temporary properties of its lists; what it asks of a file or a
/// dataset as optional operations, which HDF5 numbers when the plugin registers their names. Names
/// that begin with gov.lbl.async, and the values that go with them, are those of the existing
/// asynchronous connector: a program that is already linked to that one's library is understood, too
/// (docs/decisions/0009-library.md).
///
/// Invariant: a name keeps its meaning and its value's type for ever; a new meaning gets a new name.
/// C and C++. Thread safety: constants.
#pragma once

#include <stdint.h>  // NOLINT: also C

// On file access lists and transfer lists: hbool_t, hbool_t, uint64_t microseconds.
#define TL_PROPERTY_DISABLE_IMPLICIT "gov.lbl.async.disable.implicit"
#define TL_PROPERTY_PAUSE "gov.lbl.async.pause"
#define TL_PROPERTY_DELAY "gov.lbl.async.delay"
// On file access lists: int, one of the three values below.
#define TL_PROPERTY_CLOSE "tidelane.close"
#define TL_PROPERTY_FLUSH "tidelane.flush"
// Likewise, of the three below those.
#define TL_PROPERTY_PUBLISH "tidelane.publish"
// Likewise, of the four below those; hbool_t; struct tl_journal_commits.
#define TL_PROPERTY_JOURNAL "tidelane.journal"
#define TL_PROPERTY_JOURNAL_REQUIRED "tidelane.journal_required"
#define TL_PROPERTY_JOURNAL_COMMITS "tidelane.journal_commits"
// On transfer lists: uint64_t bytes.
#define TL_PROPERTY_COPY_LIMIT "tidelane.copy_limit"
// On transfer lists: uint64_t, the handle of a GPU's stream.
#define TL_PROPERTY_GPU_STREAM "tidelane.gpu_stream"

enum { TL_WHEN_AS_CONFIGURED = 0, TL_WHEN_WAIT = 1, TL_WHEN_DEFERRED = 2 };
enum { TL_PUBLISH_AS_CONFIGURED = 0, TL_PUBLISH_INPLACE = 1, TL_PUBLISH_ATOMIC = 2 };
enum {
  TL_JOURNAL_AS_CONFIGURED = 0,
  TL_JOURNAL_OFF = 1,
  TL_JOURNAL_PROCESS = 2,
  TL_JOURNAL_POWER = 3
};
// A flush commits that is due by either; 0: it does not count; both 0: as configured.
struct tl_journal_commits {
  uint64_t flushes;
  uint64_t time_us;
};

// Operations on files and on datasets.
#define TL_FILE_WAIT "gov.lbl.async.file.wait"
#define TL_FILE_START "gov.lbl.async.file.start"
#define TL_FILE_PAUSE "gov.lbl.async.file.pause"
#define TL_FILE_DELAY "gov.lbl.async.file.delay"
#define TL_FILE_TEST "tidelane.file.test"
#define TL_FILE_COMMIT "tidelane.file.commit"
#define TL_DATASET_WAIT "gov.lbl.async.dataset.wait"
#define TL_DATASET_START "gov.lbl.async.dataset.start"
#define TL_DATASET_PAUSE "gov.lbl.async.dataset.pause"
#define TL_DATASET_DELAY "gov.lbl.async.dataset.delay"
#define TL_DATASET_TEST "tidelane.dataset.test"
// On files, groups and datasets: struct tl_query_apply_args.
#define TL_QUERY_APPLY "tidelane.query.apply"
// On requests, for connectors that are stacked on an asynchronous one.
#define TL_REQUEST_START "gov.lbl.async.request.start"
#define TL_REQUEST_DEPENDENCY "gov.lbl.async.request.dep"

// What delay takes and what test gives.
struct tl_delay_args {
  uint64_t time_us;
};
struct tl_test_args {
  int stored;
};

// Bits of what a query has found: regions of datasets, objects, attributes.
enum { TL_QUERY_FOUND_REGIONS = 1, TL_QUERY_FOUND_OBJECTS = 2, TL_QUERY_FOUND_ATTRIBUTES = 4 };

// H5Qapply, H5Qapply_multi and their forms with event sets (library/query_apply.c). The operation is asked of the first of the locations; all
// of them are the connector's. Identifiers (hid_t) are those of the HDF5 that asks; none of them is the operation's to close.
//
// The struct and what it refers to are the caller's, and there until the operation returns: what goes on afterwards, where HDF5 gives a
// request, has copies of its own; but `result` stays until the request has ended.
struct tl_query_apply_args {
  // In.
  uint32_t size;      // of this struct, for one that gets longer: what is beyond is not there
  uint32_t flags;     // none yet: 0; others are refused
  const void* query;  // as src/predicate/encoding.h describes it; checked, but not to be believed
  uint64_t query_size;
  const int64_t* locations;  // files, groups, datasets: what is at and below them
  uint64_t location_count;   // 1 or more
  int64_t view_list;         // creation list of the view (vcpl_id), or H5P_DEFAULT
  // Out, where the operation does not fail.
  unsigned*
      result;  // bits of the enum above; 0: nothing was found. Never a null pointer; 0 when the operation is asked
  int64_t
      view;  // an anonymous group, the caller's to close, with a dataset of references for each bit; -1 when the operation is asked
};
