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
// One query over what is at and below a place in the file.
#define TL_FILE_QUERY "tidelane.file.query"
// The same, which may be answered after the operation, by when its request has completed.
#define TL_FILE_QUERY_LATER "tidelane.file.query_later"
#define TL_DATASET_WAIT "gov.lbl.async.dataset.wait"
#define TL_DATASET_START "gov.lbl.async.dataset.start"
#define TL_DATASET_PAUSE "gov.lbl.async.dataset.pause"
#define TL_DATASET_DELAY "gov.lbl.async.dataset.delay"
#define TL_DATASET_TEST "tidelane.dataset.test"
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

// What a query finds: elements of a dataset, an object, or an attribute of one.
enum { TL_FOUND_REGION = 0, TL_FOUND_OBJECT = 1, TL_FOUND_ATTRIBUTE = 2 };
struct tl_query_found {
  int kind;
  int64_t object;         // hid_t, open until the function returns
  const char* path;       // from the place on; "." is the place itself
  const char* attribute;  // of TL_FOUND_ATTRIBUTE; else nullptr
  int64_t space;  // hid_t of TL_FOUND_REGION: the dataset's dataspace, with its elements selected
};
struct tl_query_args {
  int64_t place;      // hid_t of a file, group or dataset
  const void* query;  // encoded (src/predicate/encoding.h)
  uint64_t size;
  // Called for each, in the order of names; below 0 ends it, and the operation fails.
  int (*found)(void* context, const struct tl_query_found* found);
  void* context;
};
struct tl_query_later_args {
  // Its bytes need not outlive the operation. What is found is what `path` leads to from `object`, which need not be that itself.
  struct tl_query_args query;
  // Called once if the operation has accepted the query, perhaps before it returns: everything has been told, or, with `failed`, never will be.
  // Below 0: the asker could make nothing of it, and the request fails.
  int (*done)(void* context, int failed);
  int accepted;  // set by the operation, which may fail all the same
};
