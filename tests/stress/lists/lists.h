// Property lists with everything a program may put into them, drawn at random (STRESS_LISTS=xafcdl; a letter
// for each kind of list), one family a file, and operations that there are for the sake of a list; m: files are mounted, too. Without that each list is
// what it always was, and so are the sequences of operations.
//
// Invariant: a list depends on its seed alone, and both sides get the same: what is left out here is what native HDF5 does
// not do alike twice. Thread safety: none needed; what the callbacks count belongs to the caller.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "stress/op.h"

namespace tidelane::stress::lists {

// What the callbacks of one transfer list have seen.
struct Calls {
  int64_t allocations = 0;
  int64_t conversions = 0;
};

// What the callbacks of one side have been told so far; compared after every operation.
struct Heard {
  int64_t object_flushes = 0;
  int64_t appends = 0;
  int64_t links = 0;
};

// Of which kinds lists are drawn: transfer lists x, access lists of datasets a and files f, creation lists of files c
// and datasets d, lists for links and copies l; mounts m.
bool asked_for(char kind);
// Another stream than the operation's own choices are drawn from.
Rng stream(uint64_t seed, uint64_t which);

Hid transfer(const Op& op, Calls& calls);  // `calls` must live as long as the list is used
bool extremes(const Op& op);  // whether values are written that do not fit into every type

Hid dataset_access(const std::string& path, uint64_t nth);  // for the nth open on this side
void describe_access(hid_t dset, Outcome& out);             // what the library says it uses

void more_access(hid_t fapl, uint64_t seed, Heard& heard);  // seed 0: nothing
void more_creation(hid_t fcpl, uint64_t seed);

unsigned deflate_level(uint64_t seed);
void filters_before(hid_t dcpl, const Dataset& dataset, uint64_t seed);
void filters_after(hid_t dcpl, const Dataset& dataset, uint64_t seed);
void more_dataset_creation(hid_t dcpl, const Dataset& dataset, uint64_t seed);
// Whether its pipeline is longer than the catalog believes.
bool has_more_filters(hid_t dset, const Dataset& dataset);

// All that a dataset has at this moment; nothing where the library does not say.
std::optional<size_t> elements_of(hid_t dset, Outcome& out);

// H5Dread_chunk, which is two functions in HDF5 2 (this program is run with other libraries than it was linked to).
herr_t read_chunk(hid_t dset, hid_t dxpl, const hsize_t* offset, uint32_t* mask, void* buffer);

// Operations; each table is empty where its list is not asked for.
std::span<const OpRow> dataset_ops();
std::span<const OpRow> virtual_ops();
std::span<const OpRow> link_ops();
std::span<const OpRow> copy_ops();
std::span<const OpRow> file_ops();
std::span<const OpRow> mount_ops();

}  // namespace tidelane::stress::lists
