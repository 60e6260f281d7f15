// Datasets and their models: see twin.h.
#include "gpu/twin.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>

namespace tidelane::testing {
namespace {

constexpr const char* kSuffix = ".model";

size_t elements_of(const Extent& extent) {
  return std::accumulate(extent.begin(), extent.end(), size_t{1}, std::multiplies<>());
}

// The spaces that a transfer means, where it says H5S_ALL.
struct Spaces {
  Spaces(const Extent& extent, hid_t memory, hid_t file)
      : whole(simple(extent)),
        in_file(file == H5S_ALL ? whole.get() : file),
        in_memory(memory == H5S_ALL ? in_file : memory) {}
  size_t count() const { return static_cast<size_t>(H5Sget_select_npoints(in_file)); }

  Hid whole;
  hid_t in_file;
  hid_t in_memory;
};

struct Packed {
  const void* bytes;
  size_t size;
};

herr_t give(const void** bytes, size_t* size, void* data) {
  const auto* const packed = static_cast<Packed*>(data);
  *bytes = packed->bytes;
  *size = packed->size;
  return 0;
}

Bytes gather(hid_t space, const Bytes& from, hid_t type, size_t count) {
  Bytes packed(count * H5Tget_size(type));
  if (count == 0) return packed;
  EXPECT_GE(H5Dgather(space, from.data(), type, packed.size(), packed.data(), nullptr, nullptr), 0)
      << error_text();
  return packed;
}

void scatter(const Bytes& packed, hid_t type, hid_t space, Bytes& to) {
  if (packed.empty()) return;
  Packed all{packed.data(), packed.size()};
  EXPECT_GE(H5Dscatter(give, &all, type, space, to.data()), 0) << error_text();
}

// Elements of one type as another; `before` is what the receiving side holds, which members that do not exist keep.
Bytes convert(Bytes packed, hid_t from, hid_t to, size_t count, Bytes before) {
  if (count == 0 || H5Tequal(from, to) > 0) return packed;
  const size_t size = std::max(H5Tget_size(from), H5Tget_size(to));
  packed.resize(count * size);
  before.resize(count * size);
  EXPECT_GE(H5Tconvert(from, to, count, packed.data(), before.data(), H5P_DEFAULT), 0)
      << error_text();
  packed.resize(count * H5Tget_size(to));
  return packed;
}

}  // namespace

Twin::Twin(hid_t location, const std::string& name, const Extent& extent, const Options& options)
    : name_(name),
      type_(H5Tcopy(options.type)),
      extent_(extent),
      model_(elements_of(extent) * H5Tget_size(options.type)),
      dataset_(H5Dcreate2(location, name.c_str(), options.type, simple(extent, options.limits),
                          H5P_DEFAULT, options.creation, options.access)) {
  EXPECT_TRUE(dataset_.valid()) << name << "\n" << error_text();
}

herr_t Twin::write(const Memory& memory, hid_t memory_space, hid_t file_space, hid_t memory_type,
                   hid_t list) {
  const hid_t type = this->memory_type(memory_type);
  const herr_t result = H5Dwrite(dataset_, type, memory_space, file_space, list, memory.get());
  if (result >= 0) {
    model_write(const_cast<Memory&>(memory).contents(), memory_space, file_space, type);
  }
  return result;
}

herr_t Twin::read(Memory& memory, hid_t memory_space, hid_t file_space, hid_t memory_type,
                  hid_t list) {
  const hid_t type = this->memory_type(memory_type);
  const herr_t result = H5Dread(dataset_, type, memory_space, file_space, list, memory.get());
  if (result >= 0) model_read(memory.contents(), memory_space, file_space, type);
  return result;
}

void Twin::model_write(const Bytes& memory, hid_t memory_space, hid_t file_space,
                       hid_t memory_type) {
  const hid_t type = this->memory_type(memory_type);
  const Spaces spaces(extent_, memory_space, file_space);
  const size_t count = spaces.count();
  Bytes packed = gather(spaces.in_memory, memory, type, count);
  packed =
      convert(std::move(packed), type, type_, count, gather(spaces.in_file, model_, type_, count));
  scatter(packed, type_, spaces.in_file, model_);
}

void Twin::model_read(Bytes& memory, hid_t memory_space, hid_t file_space, hid_t memory_type) {
  const hid_t type = this->memory_type(memory_type);
  const Spaces spaces(extent_, memory_space, file_space);
  const size_t count = spaces.count();
  Bytes packed = gather(spaces.in_file, model_, type_, count);
  packed =
      convert(std::move(packed), type_, type, count, gather(spaces.in_memory, memory, type, count));
  scatter(packed, type, spaces.in_memory, memory);
}

void Twin::resize(hsize_t rows) {
  extent_[0] = rows;
  EXPECT_GE(H5Dset_extent(dataset_, extent_.data()), 0) << error_text();
  model_.resize(elements_of(extent_) * H5Tget_size(type_));
}

void Twin::reopen(hid_t location) {
  dataset_ = Hid(H5Dopen2(location, name_.c_str(), H5P_DEFAULT));
  EXPECT_TRUE(dataset_.valid()) << name_ << "\n" << error_text();
}

void Twin::leave(const std::string& folder) const {
  std::ofstream out(folder + "/" + name_ + kSuffix, std::ios::binary);
  out.write(model_.data(), static_cast<std::streamsize>(model_.size()));
  EXPECT_TRUE(out.good());
}

void compare_with_models(const std::string& path, const std::string& folder) {
  const Hid opened = open(path, H5F_ACC_RDONLY);
  ASSERT_TRUE(opened.valid());
  int compared = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != kSuffix) continue;
    ++compared;
    const std::string name = entry.path().stem();
    std::ifstream in(entry.path(), std::ios::binary);
    const Bytes expected{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    const Hid dataset(H5Dopen2(opened, name.c_str(), H5P_DEFAULT));
    ASSERT_TRUE(dataset.valid()) << name << "\n" << error_text();
    const Hid type(H5Dget_type(dataset));
    const Hid space(H5Dget_space(dataset));
    const auto count = static_cast<size_t>(H5Sget_simple_extent_npoints(space));
    ASSERT_EQ(count * H5Tget_size(type), expected.size()) << name;
    Bytes found(expected.size(), 'x');
    ASSERT_GE(H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, found.data()), 0)
        << name << "\n"
        << error_text();
    const auto [at, wanted] = std::mismatch(found.begin(), found.end(), expected.begin());
    if (at == found.end()) continue;
    ADD_FAILURE() << name << ": byte " << at - found.begin() << " of " << found.size() << " is "
                  << int{*at} << " and should be " << int{*wanted};
  }
  EXPECT_GT(compared, 0);
}

}  // namespace tidelane::testing
