// series: a time series of particles, written step by step as a simulation does (VPIC-IO, with --write) or read so as an
// analysis does (BD-CATS-IO), with a computation after each step.
//
// A series lies in groups of one file, in a file for each step, or in datasets that each hold one variable of all steps.
// Every rank has its slice of each variable, or its piece of each row of it. What is read is compared with what was written, outside the measured time.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "apps/app.h"

namespace tidelane::apps {
namespace {

enum class Layout { kGroups, kFiles, kDatasets };

struct Series {
  std::string folder = ".";
  Layout layout = Layout::kGroups;
  bool write = false;
  bool random = false;  // steps in random order, each time another one
  int steps = 5;
  int variables = 8;
  uint64_t bytes = 4u << 20;  // of a variable in a step, for each rank
  int deflate = 0;            // level, with shuffle; a chunk is what a rank writes in one piece
  uint64_t piece = 0;         // of it, before another rank's comes in the file; 0: all of it
  bool empty = false;  // all calls but those that move elements: what they are waited for is left
};

using Values = std::vector<float>;

// Quick, as what a step of the computation leaves behind costs a writer nothing. What is to be compressed is smooth with a
// little noise.
void fill(const Series& series, Values& values, int number) {
  constexpr size_t kPeriod = 1021;
  const auto seed = static_cast<float>(number);
  for (size_t i = 0; i < values.size() && i < kPeriod; ++i)
    values[i] = seed + static_cast<float>(i) * 1e-3f;
  for (size_t done = kPeriod; done < values.size();) {
    const size_t part = std::min(done, values.size() - done);
    std::copy_n(values.begin(), part, values.begin() + static_cast<ptrdiff_t>(done));
    done += part;
  }
  if (series.deflate == 0) return;
  std::minstd_rand random(static_cast<unsigned>(number) + 1);
  for (float& value : values) value += static_cast<float>(random() % 4096) * 1e-6f;
}

int number_of(const Run& run, int step, int variable) {
  return (step * 100 + variable) * 16 + static_cast<int>(run.rank() % 16);
}

std::string variable_name(int variable) { return "v" + std::to_string(variable); }
std::string group_name(int step) { return "Step#" + std::to_string(step); }

std::string file_name(const Series& series, int step) {
  if (series.layout != Layout::kFiles) return series.folder + "/series.h5";
  char name[32];
  std::snprintf(name, sizeof name, "/time_%04d.h5", step);
  return series.folder + name;
}

hid_t open_or_create(const Run& run, const Series& series, int step) {
  const std::string name = file_name(series, step);
  return series.write ? CreateFile(run, name) : OpenFile(run, name);
}

hid_t compressed(const hsize_t* chunk, int level) {
  const hid_t how = ok(H5Pcreate(H5P_DATASET_CREATE), "H5Pcreate");
  ok(H5Pset_chunk(how, 2, chunk), "H5Pset_chunk");
  ok(H5Pset_shuffle(how), "H5Pset_shuffle");
  ok(H5Pset_deflate(how, static_cast<unsigned>(level)), "H5Pset_deflate");
  return how;
}

// One variable of one step: a dataset of its own, or a slab of a larger one. In rows where ranks take turns, a rank has its
// columns of all of them.
void transfer(Run& run, const Series& series, hid_t location, int step, int variable,
              Values& values) {
  const bool slab = series.layout == Layout::kDatasets;
  const hsize_t row = series.piece == 0 ? values.size() : series.piece / sizeof(float);
  const hsize_t rows = values.size() / row;
  const hsize_t all[2] = {slab ? static_cast<hsize_t>(series.steps) : rows, row * run.slots()};
  const hid_t space = ok(H5Screate_simple(2, all, nullptr), "H5Screate_simple");
  const std::string name = variable_name(variable);
  const bool create = series.write && (!slab || step == 0);
  const hsize_t count[2] = {rows, row};
  const hsize_t chunk[2] = {1, row};
  const hid_t how = create && series.deflate != 0 ? compressed(chunk, series.deflate) : H5P_DEFAULT;
  const hid_t dataset =
      create ? ok(H5Dcreate_async(location, name.c_str(), H5T_NATIVE_FLOAT, space, H5P_DEFAULT, how,
                                  H5P_DEFAULT, run.events()),
                  "H5Dcreate")
             : ok(H5Dopen_async(location, name.c_str(), H5P_DEFAULT, run.events()), "H5Dopen");
  if (how != H5P_DEFAULT) ok(H5Pclose(how), "H5Pclose");
  const hsize_t start[2] = {slab ? static_cast<hsize_t>(step) : 0, row * run.slot()};
  ok(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, nullptr, count, nullptr),
     "H5Sselect_hyperslab");
  const hid_t memory = ok(H5Screate_simple(2, count, nullptr), "H5Screate_simple");
  if (series.empty) {
    // The dataset alone was made or opened.
  } else if (series.write) {
    ok(H5Dwrite_async(dataset, H5T_NATIVE_FLOAT, memory, space, run.transfer(), values.data(),
                      run.events()),
       "H5Dwrite");
  } else {
    ok(H5Dread_async(dataset, H5T_NATIVE_FLOAT, memory, space, run.transfer(), values.data(),
                     run.events()),
       "H5Dread");
  }
  CloseSpace(memory);
  CloseDataset(run, dataset);
  CloseSpace(space);
  if (!series.empty) run.Moved(values.size(), sizeof(float));
}

std::vector<int> order_of(const Series& series) {
  std::vector<int> order(static_cast<size_t>(series.steps));
  std::iota(order.begin(), order.end(), 0);
  if (series.random) {
    std::mt19937 random(7);
    for (int& step : order) step = static_cast<int>(random() % static_cast<unsigned>(series.steps));
  }
  return order;
}

void do_step(Run& run, const Series& series, hid_t file, int step, std::vector<Values>& values) {
  const bool group = series.layout == Layout::kGroups;
  const hid_t location = group ? GroupOf(run, file, group_name(step), series.write) : file;
  for (int v = 0; v < series.variables; ++v)
    transfer(run, series, location, step, v, values[static_cast<size_t>(v)]);
  if (group) CloseGroup(run, location);
}

void check(const Run& run, const Series& series, int step, const std::vector<Values>& values) {
  Values expected(values.front().size());
  for (int v = 0; v < series.variables; ++v) {
    fill(series, expected, number_of(run, step, v));
    if (values[static_cast<size_t>(v)] != expected)
      throw std::runtime_error("step " + std::to_string(step) + " is not what was written");
  }
}

nlohmann::json body(Run& run, const Series& series) {
  if (series.piece % sizeof(float) != 0 || (series.piece != 0 && series.bytes % series.piece != 0))
    throw std::invalid_argument("--bytes must be a multiple of --piece, and that of a number");
  if (series.piece != 0 && series.layout == Layout::kDatasets)
    throw std::invalid_argument("--piece is not for --layout=datasets");
  std::vector<Values> values(static_cast<size_t>(series.variables),
                             Values(series.bytes / sizeof(float)));
  const bool one_file = series.layout != Layout::kFiles;
  hid_t file = H5I_INVALID_HID;
  if (one_file) run.Io([&] { file = open_or_create(run, series, 0); });
  const std::vector<int> order = order_of(series);
  for (const int& step : order) {
    for (int v = 0; series.write && v < series.variables; ++v)
      fill(series, values[static_cast<size_t>(v)], number_of(run, step, v));
    run.Io([&] {
      if (!one_file) file = open_or_create(run, series, step);
      do_step(run, series, file, step, values);
      if (!one_file) CloseFile(run, file);
    });
    if (!series.write && !series.empty) {
      run.Wait();
      check(run, series, step, values);
    }
    run.Compute(&step == &order.back());
  }
  if (one_file) run.Io([&] { CloseFile(run, file); });
  return {};
}

}  // namespace
}  // namespace tidelane::apps

int main(int argc, char** argv) {
  using namespace tidelane::apps;
  Series series;
  const std::map<std::string, Layout> layouts{
      {"groups", Layout::kGroups}, {"files", Layout::kFiles}, {"datasets", Layout::kDatasets}};
  const auto add = [&](CommandLine& line) {
    line.option("--folder", series.folder).shows_default();
    line.option("--layout", series.layout, layouts, "groups, files or datasets");
    line.flag("--write", series.write, "write what runs with the same options read");
    line.flag("--empty", series.empty, "no elements: what is waited for without them");
    line.flag("--random", series.random, "as many steps, each time any of them");
    line.option("--steps", series.steps).shows_default();
    line.option("--variables", series.variables).shows_default();
    line.option("--bytes", series.bytes, "of a variable in a step, for each rank").shows_default();
    line.option("--deflate", series.deflate, "level, with shuffle; 0: contiguous").between(0, 9);
    line.option("--piece", series.piece,
                "bytes of a variable before another rank's come in the file; 0: all of them");
  };
  return Main(argc, argv, "series", "A time series of particles, written or read step by step.",
              add, [&](Run& run) { return body(run, series); });
}
