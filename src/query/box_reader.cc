#include "query/box_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "query/object_name.h"

namespace tidelane::query {

namespace {

// Positions, and sizes of boxes in bits, have to fit in 64.
constexpr uint64_t kMostElements = uint64_t{1} << 63;

const char* KindOf(H5D_layout_t layout) {
  switch (layout) {
    case H5D_COMPACT: return "compact";
    case H5D_CONTIGUOUS: return "contiguous";
    case H5D_CHUNKED: return "chunked";
    case H5D_VIRTUAL: return "virtual";
    default: return "unknown";
  }
}

}  // namespace

bool SameBox(int rank, const Box& a, const Box& b) {
  return std::equal(a.start.begin(), a.start.begin() + rank, b.start.begin()) &&
         std::equal(a.size.begin(), a.size.begin() + rank, b.size.begin());
}

Status FindLayout(h5::Library& hdf5, hid_t dataset, Layout& found) {
  const h5::OwnedId space(hdf5, hdf5.Dget_space(dataset));
  const h5::OwnedId list(hdf5, hdf5.Dget_create_plist(dataset));
  if (!space.valid() || !list.valid())
    return Status::Failed(EINVAL, "ask HDF5 what " + NameOfDataset(hdf5, dataset) + " is");
  found.rank = hdf5.Sget_simple_extent_dims(space.get(), nullptr, nullptr);
  found.quantum.fill(1);
  const H5D_layout_t layout = hdf5.Pget_layout(list.get());
  found.kind = KindOf(layout);
  if (hdf5.Sget_simple_extent_type(space.get()) == H5S_NULL)
    return Status::Failed(EINVAL,
                          "query " + NameOfDataset(hdf5, dataset) + ", whose dataspace is null");
  if (found.rank == 0) {
    found.scalar = true;
    found.rank = 1;
    found.extent[0] = 1;
    return {};
  }
  hsize_t dims[kMaxRank], chunk[kMaxRank];
  hdf5.Sget_simple_extent_dims(space.get(), dims, nullptr);
  std::copy_n(dims, found.rank, found.extent.begin());
  uint64_t elements = 1;
  for (int d = 0; d < found.rank; ++d) {
    if (dims[d] == 0) {
      elements = 0;
      break;
    }
    if (elements > kMostElements / dims[d])
      return Status::Failed(EINVAL, "count the elements of " + NameOfDataset(hdf5, dataset));
    elements *= dims[d];
  }
  if (layout == H5D_CHUNKED && hdf5.Pget_chunk(list.get(), kMaxRank, chunk) == found.rank) {
    std::copy_n(chunk, found.rank, found.quantum.begin());
    found.filtered = hdf5.Pget_nfilters(list.get()) > 0;
  }
  return {};
}

BoxReader::BoxReader(h5::Library& hdf5, hid_t dataset, h5::OwnedId memory_type, uint64_t record,
                     bool variable)
    : hdf5_(&hdf5),
      dataset_(hdf5, hdf5.Iinc_ref(dataset) < 0 ? h5::kNoId : dataset),
      memory_type_(std::move(memory_type)),
      record_(record),
      variable_(variable) {}

BoxReader::~BoxReader() { GiveBack(); }

void BoxReader::Forget() {
  GiveBack();
  elements_ = 0;
}

void BoxReader::GiveBack() {
  if (!variable_ || elements_ == 0 || memory_ == nullptr) return;
  const hsize_t count = elements_;
  const h5::OwnedId space(*hdf5_, hdf5_->Screate_simple(1, &count, nullptr));
  hdf5_->Treclaim(memory_type_.get(), space.get(), h5::kDefault, memory_.get());
}

bool BoxReader::Holds(int rank, const Box& box) const {
  return elements_ != 0 && SameBox(rank, box, box_);
}

Status BoxReader::Read(int rank, const Box& box) {
  if (Holds(rank, box)) return {};
  uint64_t elements = 1;
  for (int d = 0; d < rank; ++d) elements *= box.size[d];
  GiveBack();
  elements_ = 0;
  Status status = Select(rank, box, elements);
  if (status.ok()) {
    status = rank == 0 ? ReadSelected(h5::kDefault, h5::kDefault, 1)
                       : ReadSelected(memory_space_.get(), file_space_.get(), elements);
  }
  if (!status.ok()) return status;
  box_ = box;
  elements_ = elements;
  return {};
}

Status BoxReader::Select(int rank, const Box& box, uint64_t elements) {
  if (rank == 0) return {};
  // Asked anew: HDF5 would look for what is beyond the end of a dataset that has been cut, if its old extent said that it is there.
  file_space_ = h5::OwnedId(*hdf5_, hdf5_->Dget_space(dataset_.get()));
  if (selected_ != elements) {
    memory_space_ = h5::OwnedId(*hdf5_, hdf5_->Screate_simple(1, &elements, nullptr));
    selected_ = elements;
  }
  if (hdf5_->Sselect_hyperslab(file_space_.get(), H5S_SELECT_SET, box.start.data(), nullptr,
                               box.size.data(), nullptr) >= 0) {
    return {};
  }
  return FailedAt(*hdf5_, "select elements of dataset", dataset_.get());
}

Status BoxReader::ReadSelected(hid_t memory_space, hid_t file_space, uint64_t elements) {
  const uint64_t bytes = elements * record_;
  if (bytes > capacity_) {
    memory_ = nullptr;
    capacity_ = 0;
    memory_.reset(new (std::nothrow) std::byte[bytes]);
    if (memory_ == nullptr)
      return Status::Failed(ENOMEM, "have " + std::to_string(bytes) + " bytes of memory to read " +
                                        NameOfDataset(*hdf5_, dataset_.get()));
    capacity_ = bytes;
  }
  // What HDF5 leaves as it is must not be taken for addresses.
  if (variable_) std::memset(memory_.get(), 0, bytes);
  if (hdf5_->Dread(dataset_.get(), memory_type_.get(), memory_space, file_space, h5::kDefault,
                   memory_.get()) < 0) {
    return FailedAt(*hdf5_, "read dataset", dataset_.get());
  }
  bytes_read_ += bytes;
  return {};
}

}  // namespace tidelane::query
