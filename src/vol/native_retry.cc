#include "vol/native_retry.h"

#include <algorithm>
#include <utility>

#include "base/counters.h"
#include "h5/error.h"
#include "vol/call_inside.h"

namespace tidelane::vol {

namespace {

h5::OwnedId CopyOfSpace(h5::Library& hdf5, hid_t space) {
  if (hdf5.Iget_type(space) != H5I_DATASPACE) return {};  // H5S_ALL, H5S_BLOCK
  return {hdf5, hdf5.Scopy(space)};
}

}  // namespace

NativeRetry::~NativeRetry() {
  if (reads_.empty()) return;
  const h5::KeepErrorStack keep(library_.hdf5());  // closing ids forgets it
  reads_.clear();
}

bool NativeRetry::Note(const Reading& reading) {
  h5::Library& hdf5 = library_.hdf5();
  if (hdf5.Iget_type(reading.memory_type) != H5I_DATATYPE) return false;
  if (!ReadDatasetOf(library_, reading).chunks) return false;
  reads_.push_back({reading.dataset,
                    DatasetCatalogue::Of(library_).At(reading.dataset).number,
                    {hdf5, hdf5.Tcopy(reading.memory_type)},
                    CopyOfSpace(hdf5, reading.memory_space),
                    CopyOfSpace(hdf5, reading.file_space),
                    reading.memory_space,
                    reading.file_space,
                    reading.buffer});
  changes_ = library_.changes;
  if (reads_.back().type.valid()) return true;
  reads_.pop_back();
  return false;
}

bool NativeRetry::ReadOne(const Kept& kept) {
  const DatasetEntry* const known = DatasetCatalogue::Of(library_).Find(kept.dataset);
  if (known == nullptr || known->number != kept.number || changes_ != library_.changes) {
    return false;
  }
  void* dataset = kept.dataset;
  hid_t type = kept.type.get();
  hid_t memory = kept.memory_space.valid() ? kept.memory_space.get() : kept.memory_id;
  hid_t file = kept.file_space.valid() ? kept.file_space.get() : kept.file_id;
  void* buffer = kept.buffer;
  return library_.hdf5().native().dataset_cls.read(1, &dataset, &type, &memory, &file,
                                                   library_.default_dxpl, &buffer, nullptr) >= 0;
}

bool NativeRetry::Run(h5::OwnedId& stack) {
  if (library_.closing) return false;
  Count(Fallback::kReadFailed);
  bool all = false;
  const auto read = [&] {
    all = std::ranges::all_of(reads_, [this](const Kept& kept) { return ReadOne(kept); });
    h5::Library& hdf5 = library_.hdf5();
    if (!all && hdf5.Eget_num(h5::kDefault) > 0) {
      stack = h5::OwnedId(hdf5, hdf5.Eget_current_stack());
    }
  };
  return Enter(library_, read) && all;
}

}  // namespace tidelane::vol
