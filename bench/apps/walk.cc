// walk: a file of many small objects, made (with --write), or opened cold and walked: each object is opened, and an attribute
// of it read, as a program does that looks what there is. Ranks all walk all of it, and each reads its metadata for itself.
#include <stdexcept>
#include <string>

#include "apps/app.h"

namespace tidelane::apps {
namespace {

struct Objects {
  std::string file = "objects.h5";
  bool write = false;
  int groups = 1000;  // each with a dataset, which has an attribute
};

void make_dataset(const Run& run, hid_t group, int number) {
  constexpr hsize_t kElements = 64;
  const hid_t space = ok(H5Screate_simple(1, &kElements, nullptr), "H5Screate_simple");
  const hid_t dataset = ok(H5Dcreate_async(group, "values", H5T_NATIVE_FLOAT, space, H5P_DEFAULT,
                                           H5P_DEFAULT, H5P_DEFAULT, run.events()),
                           "H5Dcreate");
  WriteAttribute(run, dataset, "number", number);
  CloseDataset(run, dataset);
  CloseSpace(space);
}

void look_at_dataset(const Run& run, hid_t group, int number) {
  const hid_t dataset = ok(H5Dopen_async(group, "values", H5P_DEFAULT, run.events()), "H5Dopen");
  if (ReadAttribute(run, dataset, "number") != number)
    throw std::runtime_error("an attribute is not what was written");
  CloseDataset(run, dataset);
}

nlohmann::json body(Run& run, const Objects& objects) {
  run.Io([&] {
    const hid_t file = objects.write ? CreateFile(run, objects.file) : OpenFile(run, objects.file);
    for (int number = 0; number < objects.groups; ++number) {
      const hid_t group = GroupOf(run, file, "group" + std::to_string(number), objects.write);
      objects.write ? make_dataset(run, group, number) : look_at_dataset(run, group, number);
      CloseGroup(run, group);
    }
    CloseFile(run, file);
  });
  return {};
}

}  // namespace
}  // namespace tidelane::apps

int main(int argc, char** argv) {
  using namespace tidelane::apps;
  Objects objects;
  const auto add = [&](CommandLine& line) {
    line.option("--file", objects.file).shows_default();
    line.flag("--write", objects.write, "make the file that runs with the same options walk");
    line.option("--groups", objects.groups, "each with a dataset, which has an attribute")
        .shows_default();
  };
  return Main(argc, argv, "walk", "A file of many small objects, made or walked.", add,
              [&](Run& run) { return body(run, objects); });
}
