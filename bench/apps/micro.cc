// micro: groups of datasets and attributes, a group for each step, written or read (the micro-benchmark of the asynchronous
// connector's paper, its Figures 3 to 6).
//
//   micro --file=m.h5 --groups=10 --datasets=5 --bytes=1048576 --attributes=128 [--compute-us=N]      then again with --read
//
// What is read is compared with what was written, outside the measured time. Ranks each hold a slice of every dataset, and
// all make every attribute.
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "apps/app.h"

namespace tidelane::apps {
namespace {

struct Micro {
  std::string file = "micro.h5";
  bool read = false;
  int groups = 10;
  int datasets = 5;
  size_t bytes = 1 << 20;  // of a dataset, for each rank
  int attributes = 8;      // of a group
};

using Values = std::vector<int32_t>;

void Fill(Values& values, hsize_t rank, int group, int dataset) {
  const auto seed = static_cast<int32_t>((static_cast<int>(rank) * 100 + group) * 100 + dataset);
  for (size_t i = 0; i < values.size(); ++i) values[i] = seed + static_cast<int32_t>(i);
}

double AttributeValue(int group, int attribute) { return group * 1000.0 + attribute; }

std::string Numbered(const char* name, int number) { return name + std::to_string(number); }

void Transfer(Run& run, const Micro& micro, hid_t group, int number, Values& values) {
  const hsize_t mine = values.size(), all = mine * run.slots(), start = mine * run.slot();
  const hid_t space = ok(H5Screate_simple(1, &all, nullptr), "H5Screate");
  const hid_t memory = ok(H5Screate_simple(1, &mine, nullptr), "H5Screate");
  ok(H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, nullptr, &mine, nullptr), "H5Sselect");
  const std::string name = Numbered("dataset", number);
  const hid_t dataset =
      micro.read ? ok(H5Dopen_async(group, name.c_str(), H5P_DEFAULT, run.events()), "H5Dopen")
                 : ok(H5Dcreate_async(group, name.c_str(), H5T_NATIVE_INT32, space, H5P_DEFAULT,
                                      H5P_DEFAULT, H5P_DEFAULT, run.events()),
                      "H5Dcreate");
  if (micro.read) {
    ok(H5Dread_async(dataset, H5T_NATIVE_INT32, memory, space, run.transfer(), values.data(),
                     run.events()),
       "H5Dread");
  } else {
    ok(H5Dwrite_async(dataset, H5T_NATIVE_INT32, memory, space, run.transfer(), values.data(),
                      run.events()),
       "H5Dwrite");
  }
  CloseDataset(run, dataset);
  CloseSpace(memory);
  CloseSpace(space);
  run.Moved(values.size(), sizeof(int32_t));
}

void Attributes(const Run& run, const Micro& micro, hid_t group, int number) {
  for (int i = 0; i < micro.attributes; ++i) {
    const std::string name = Numbered("attribute", i);
    if (!micro.read) {
      WriteAttribute(run, group, name, AttributeValue(number, i));
    } else if (ReadAttribute(run, group, name) != AttributeValue(number, i)) {
      throw std::runtime_error("an attribute is not what was written");
    }
  }
}

void Check(const Run& run, int group, const std::vector<Values>& values) {
  Values expected;
  for (size_t i = 0; i < values.size(); ++i) {
    expected.resize(values[i].size());
    Fill(expected, run.rank(), group, static_cast<int>(i));
    if (values[i] != expected) throw std::runtime_error("a dataset is not what was written");
  }
}

nlohmann::json Body(Run& run, const Micro& micro) {
  std::vector<Values> values(static_cast<size_t>(micro.datasets),
                             Values(micro.bytes / sizeof(int32_t)));
  hid_t file = H5I_INVALID_HID;
  run.Io([&] { file = micro.read ? OpenFile(run, micro.file) : CreateFile(run, micro.file); });
  for (int number = 0; number < micro.groups; ++number) {
    for (int i = 0; !micro.read && i < micro.datasets; ++i)
      Fill(values[static_cast<size_t>(i)], run.rank(), number, i);
    run.Io([&] {
      const hid_t group = GroupOf(run, file, Numbered("group", number), !micro.read);
      for (int i = 0; i < micro.datasets; ++i)
        Transfer(run, micro, group, i, values[static_cast<size_t>(i)]);
      Attributes(run, micro, group, number);
      CloseGroup(run, group);
    });
    if (micro.read) {
      run.Wait();
      Check(run, number, values);
    }
    run.Compute(number + 1 == micro.groups);
  }
  run.Io([&] { CloseFile(run, file); });
  return {{"read", micro.read}};
}

}  // namespace
}  // namespace tidelane::apps

int main(int argc, char** argv) {
  using namespace tidelane::apps;
  Micro micro;
  const auto add = [&](CommandLine& line) {
    line.option("--file", micro.file).shows_default();
    line.flag("--read", micro.read, "read what a run with the same options wrote");
    line.option("--groups", micro.groups, "steps").positive();
    line.option("--datasets", micro.datasets, "of a group").not_negative();
    line.option("--bytes", micro.bytes, "of a dataset, for each rank").positive();
    line.option("--attributes", micro.attributes, "of a group").not_negative();
  };
  return Main(argc, argv, "micro", "Groups of datasets and attributes, written or read.", add,
              [&](Run& run) { return Body(run, micro); });
}
