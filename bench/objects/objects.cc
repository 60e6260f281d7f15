// objects: a file of many small objects, written and walked.
//
//   objects --write  one group per step of a loop, each with a small dataset and an attribute on it
//   objects --walk   opens the file, visits every object, opens it, and reads its attribute
//
// Walking reads no dataset's elements: it is what listing tools and readers do before they read.
// Prints as JSON the time and the processor time of each phase.
#include <string>
#include <vector>

#include <hdf5.h>
#include <nlohmann/json.hpp>

#include "common/measure.h"
#include "common/options.h"

namespace tidelane::objects {
namespace {

using measure::ok;
using measure::Phase;

constexpr hsize_t kElements = 64;
constexpr const char* kDataset = "values";
constexpr const char* kAttribute = "number";

void write_group(hid_t file, int number, hid_t space, hid_t scalar) {
  const std::vector<float> values(kElements, static_cast<float>(number));
  const std::string name = "group" + std::to_string(number);
  const hid_t group =
      ok(H5Gcreate(file, name.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), "H5Gcreate");
  const hid_t dataset =
      ok(H5Dcreate(group, kDataset, H5T_NATIVE_FLOAT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
         "H5Dcreate");
  ok(H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), "H5Dwrite");
  const hid_t attribute =
      ok(H5Acreate(dataset, kAttribute, H5T_NATIVE_INT, scalar, H5P_DEFAULT, H5P_DEFAULT),
         "H5Acreate");
  ok(H5Awrite(attribute, H5T_NATIVE_INT, &number), "H5Awrite");
  ok(H5Aclose(attribute), "H5Aclose");
  ok(H5Dclose(dataset), "H5Dclose");
  ok(H5Gclose(group), "H5Gclose");
}

nlohmann::json write(const std::string& path, int groups) {
  nlohmann::json out;
  const Phase total;
  ok(H5open(), "H5open");
  const hid_t file =
      ok(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), "H5Fcreate");
  out["create"] = total.end();
  const Phase writing;
  const hsize_t dims[1] = {kElements};
  const hid_t space = ok(H5Screate_simple(1, dims, nullptr), "H5Screate_simple");
  const hid_t scalar = ok(H5Screate(H5S_SCALAR), "H5Screate");
  for (int i = 0; i < groups; ++i) write_group(file, i, space, scalar);
  H5Sclose(scalar);
  H5Sclose(space);
  out["write"] = writing.end();
  const Phase closing;
  ok(H5Fclose(file), "H5Fclose");
  ok(H5close(), "H5close");
  out["close"] = closing.end();
  out["total"] = total.end();
  out["bytes"] = static_cast<double>(groups) * kElements * sizeof(float);
  return out;
}

struct Seen {
  int objects = 0;
  int attributes = 0;
};

herr_t visit(hid_t root, const char* name, const H5O_info2_t* info, void* data) noexcept {
  auto& seen = *static_cast<Seen*>(data);
  const hid_t object = H5Oopen(root, name, H5P_DEFAULT);
  if (object < 0) return -1;
  ++seen.objects;
  herr_t result = 0;
  if (info->type == H5O_TYPE_DATASET) {
    int number = 0;
    const hid_t attribute = H5Aopen(object, kAttribute, H5P_DEFAULT);
    if (attribute < 0 || H5Aread(attribute, H5T_NATIVE_INT, &number) < 0) result = -1;
    if (attribute >= 0) H5Aclose(attribute);
    if (name == "group" + std::to_string(number) + "/" + kDataset) ++seen.attributes;
  }
  return H5Oclose(object) < 0 ? -1 : result;
}

nlohmann::json walk(const std::string& path, int groups) {
  nlohmann::json out;
  const Phase total;
  ok(H5open(), "H5open");
  const hid_t file = ok(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), "H5Fopen");
  out["create"] = total.end();
  Seen seen;
  ok(H5Ovisit(file, H5_INDEX_NAME, H5_ITER_INC, visit, &seen, H5O_INFO_BASIC), "H5Ovisit");
  ok(H5Fclose(file), "H5Fclose");
  ok(H5close(), "H5close");
  out["total"] = total.end();
  out["objects"] = seen.objects;
  if (seen.objects != 2 * groups + 1 || seen.attributes != groups) {
    throw std::runtime_error("the walk saw " + std::to_string(seen.objects) + " objects and " +
                             std::to_string(seen.attributes) + " right attributes");
  }
  return out;
}

}  // namespace
}  // namespace tidelane::objects

int main(int argc, char** argv) {
  using namespace tidelane::objects;
  tidelane::measure::CommandLine line("A file of many small objects, written or walked.");
  std::string file = "objects.h5";
  std::string json_path;
  int groups = 1000;
  bool walking = false;
  line.option("--file", file).shows_default();
  line.option("--groups", groups, "each with a dataset and an attribute")
      .positive()
      .shows_default();
  line.flag("--walk,!--write", walking, "walk an existing file instead of writing one");
  line.option("--json", json_path, "write the result there instead of to standard output");
  if (const auto status = line.parse(argc, argv)) return *status;
  return tidelane::measure::report(
      "objects", json_path, [&] { return walking ? walk(file, groups) : write(file, groups); });
}
