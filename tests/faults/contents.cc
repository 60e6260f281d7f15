#include "faults/contents.h"

#include <algorithm>

#include "conformance/fixture.h"

namespace tidelane::testing {
namespace {

void add_first(FileContents& contents) {
  contents.attributes[{"/", "title"}] = elements(1, 10);
  contents.datasets["a"] = elements(2, 3000);
  contents.attributes[{"a", "units"}] = elements(3, 4);
  contents.datasets["c"] = elements(4, 1500);
  contents.datasets["l"] = elements(50, 3 * 8192);
  contents.datasets["g/tiles"] = elements(5, kTiles * kTiles * kTile * kTile);
}

void add_second(FileContents& contents) {
  std::vector<int>& a = contents.datasets["a"];
  std::ranges::copy(elements(6, 1500), a.begin() + 700);
  contents.datasets["c"] = elements(4, 3000);
  contents.attributes[{"a", "more"}] = elements(7, 200);
  for (int i = 0; i < 10; ++i) {
    contents.datasets["g/h/d" + std::to_string(i)] = elements(10 + i, 20);
  }
}

void add_third(FileContents& contents) {
  contents.datasets["big"] = elements(30, 400'000);
  contents.datasets.erase("g/tiles");
}

void add_fourth(FileContents& contents) {
  contents.datasets["late"] = elements(40, 5000);
  contents.datasets["c"] = elements(4, 4000);
  contents.datasets["l"] = elements(50, 5 * 8192);
  contents.datasets["a"] = elements(41, 3000);
}

void expect_attribute(hid_t file, const std::string& object, const std::string& name,
                      const std::vector<int>& wanted) {
  const Hid attribute(
      H5Aopen_by_name(file, object.c_str(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT));
  ASSERT_TRUE(attribute.valid()) << object << " has no attribute " << name << "\n" << error_text();
  std::vector<int> values(wanted.size(), -1);
  ASSERT_GE(H5Aread(attribute, H5T_NATIVE_INT, values.data()), 0) << error_text();
  EXPECT_TRUE(values == wanted) << object << "@" << name << " has other elements than it should";
}

void expect_values(hid_t file, const std::string& name, const std::vector<int>& wanted) {
  const Hid dataset(H5Dopen2(file, name.c_str(), H5P_DEFAULT));
  ASSERT_TRUE(dataset.valid()) << name << "\n" << error_text();
  const Hid space(H5Dget_space(dataset));
  ASSERT_EQ(H5Sget_simple_extent_npoints(space), static_cast<hssize_t>(wanted.size())) << name;
  std::vector<int> values(wanted.size(), -1);
  ASSERT_GE(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0)
      << name << "\n"
      << error_text();
  EXPECT_TRUE(values == wanted) << name << " has other elements than it should";
}

}  // namespace

FileContents contents_after(int steps) {
  FileContents contents;
  constexpr void (*kAdd[kSteps])(FileContents&) = {add_first, add_second, add_third, add_fourth};
  for (int step = 0; step < steps; ++step) kAdd[step](contents);
  return contents;
}

void expect_contents_after(int steps, hid_t file) {
  SCOPED_TRACE("contents after step " + std::to_string(steps));
  const FileContents contents = contents_after(steps);
  for (const auto& [name, values] : contents.datasets) expect_values(file, name, values);
  for (const auto& [where, values] : contents.attributes) {
    expect_attribute(file, where.first, where.second, values);
  }
  size_t objects = 0;
  const auto count = [](hid_t, const char*, const H5O_info2_t*, void* data) -> herr_t {
    ++*static_cast<size_t*>(data);
    return 0;
  };
  EXPECT_GE(H5Ovisit3(file, H5_INDEX_NAME, H5_ITER_NATIVE, count, &objects, H5O_INFO_BASIC), 0)
      << error_text();
  const size_t groups = steps >= 2 ? 3 : 2;  // the root, "g" and "g/h"
  EXPECT_EQ(objects, contents.datasets.size() + groups) << "there is more than there should be";
}

}  // namespace tidelane::testing
