// series: reads a time series step by step and computes after each, as an analysis does (the BD-CATS-IO pattern).
//
// Prints as JSON what each step's calls took, opening and closing included. A series lies in groups of one file, in a
// file for each step, or in datasets that each hold one variable of all steps. What is read is compared with what was
// written, outside the measured time.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <hdf5.h>
#include <nlohmann/json.hpp>

#include "common/measure.h"

namespace tidelane::series {
namespace {

using measure::now_us;
using measure::ok;

enum class Layout { kGroups, kFiles, kDatasets };

struct Options {
  std::string folder = ".";
  Layout layout = Layout::kGroups;
  bool write = false;
  bool random = false;  // steps in random order, each time another one
  int steps = 5;
  int variables = 8;
  uint64_t bytes = 4u << 20;  // of a variable in a step
  double compute_us = 0;      // after each step
};

using Values = std::vector<float>;

void fill(Values& values, int step, int variable) {
  const auto seed = static_cast<float>(step * 100 + variable);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = seed + static_cast<float>(i % 1021) * 1e-3f;
}

double compute(double us) {
  double sum = 0;
  for (const double end = now_us() + us; now_us() < end;) {
    for (int i = 1; i < 2000; ++i) sum += 1.0 / (sum + i);
  }
  return sum;
}

std::string variable_name(int variable) { return "v" + std::to_string(variable); }
std::string group_name(int step) { return "Step#" + std::to_string(step); }

std::string file_name(const Options& options, int step) {
  if (options.layout != Layout::kFiles) return options.folder + "/series.h5";
  char name[32];
  std::snprintf(name, sizeof name, "/time_%04d.h5", step);
  return options.folder + name;
}

hid_t open_or_create(const Options& options, int step) {
  const std::string name = file_name(options, step);
  return options.write
             ? ok(H5Fcreate(name.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), "H5Fcreate")
             : ok(H5Fopen(name.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), "H5Fopen");
}

// One variable of one step: a dataset of its own, or a slab of a larger one.
void transfer(const Options& options, hid_t location, int step, int variable, Values& values) {
  const bool slab = options.layout == Layout::kDatasets;
  const hsize_t all[2] = {slab ? static_cast<hsize_t>(options.steps) : 1, values.size()};
  const hid_t space = ok(H5Screate_simple(2, all, nullptr), "H5Screate_simple");
  const std::string name = variable_name(variable);
  const bool create = options.write && (!slab || step == 0);
  const hid_t dataset = create ? ok(H5Dcreate2(location, name.c_str(), H5T_NATIVE_FLOAT, space,
                                               H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                                    "H5Dcreate2")
                               : ok(H5Dopen2(location, name.c_str(), H5P_DEFAULT), "H5Dopen2");
  const hsize_t start[2] = {slab ? static_cast<hsize_t>(step) : 0, 0};
  const hsize_t count[2] = {1, values.size()};
  ok(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, nullptr, count, nullptr),
     "H5Sselect_hyperslab");
  const hid_t memory = ok(H5Screate_simple(2, count, nullptr), "H5Screate_simple");
  if (options.write) {
    ok(H5Dwrite(dataset, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, values.data()), "H5Dwrite");
  } else {
    ok(H5Dread(dataset, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, values.data()), "H5Dread");
  }
  ok(H5Sclose(memory), "H5Sclose");
  ok(H5Dclose(dataset), "H5Dclose");
  ok(H5Sclose(space), "H5Sclose");
}

std::vector<int> order_of(const Options& options) {
  std::vector<int> order(static_cast<size_t>(options.steps));
  std::iota(order.begin(), order.end(), 0);
  if (options.random) {
    std::mt19937 random(7);
    for (int& step : order)
      step = static_cast<int>(random() % static_cast<unsigned>(options.steps));
  }
  return order;
}

void do_step(const Options& options, hid_t file, int step, std::vector<Values>& values) {
  hid_t location = file;
  if (options.layout == Layout::kGroups) {
    location =
        options.write
            ? ok(H5Gcreate2(file, group_name(step).c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                 "H5Gcreate2")
            : ok(H5Gopen2(file, group_name(step).c_str(), H5P_DEFAULT), "H5Gopen2");
  }
  for (int v = 0; v < options.variables; ++v) {
    transfer(options, location, step, v, values[static_cast<size_t>(v)]);
  }
  if (location != file) ok(H5Gclose(location), "H5Gclose");
}

void check(const Options& options, int step, std::vector<Values>& values) {
  Values expected(values.front().size());
  for (int v = 0; v < options.variables; ++v) {
    fill(expected, step, v);
    if (values[static_cast<size_t>(v)] != expected)
      throw std::runtime_error("step " + std::to_string(step) + " is not what was written");
  }
}

nlohmann::json measure_all(const Options& options) {
  std::vector<Values> values(static_cast<size_t>(options.variables),
                             Values(options.bytes / sizeof(float)));
  std::vector<double> waits;
  const bool one_file = options.layout != Layout::kFiles;
  hid_t file = one_file ? open_or_create(options, 0) : H5I_INVALID_HID;
  for (const int step : order_of(options)) {
    if (options.write) {
      for (int v = 0; v < options.variables; ++v) fill(values[static_cast<size_t>(v)], step, v);
    }
    const double begin = now_us();
    if (!one_file) file = open_or_create(options, step);
    do_step(options, file, step, values);
    if (!one_file) ok(H5Fclose(file), "H5Fclose");
    waits.push_back(now_us() - begin);
    if (!options.write) check(options, step, values);
    if (options.compute_us > 0 && compute(options.compute_us) < 0) return {};
  }
  const double begin = now_us();
  if (one_file) ok(H5Fclose(file), "H5Fclose");
  ok(H5close(), "H5close");
  return {{"waits_us", waits}, {"end_us", now_us() - begin}};
}

int run(int argc, char** argv) {
  Options options;
  std::string json;
  const std::map<std::string, Layout> layouts{
      {"groups", Layout::kGroups}, {"files", Layout::kFiles}, {"datasets", Layout::kDatasets}};
  CLI::App app{"A time series, read step by step, with a computation after each."};
  app.add_option("--folder", options.folder)->capture_default_str();
  app.add_option("--layout", options.layout, "groups, files or datasets")
      ->transform(CLI::CheckedTransformer(layouts));
  app.add_flag("--write", options.write, "write what runs with the same options read");
  app.add_flag("--random", options.random, "as many steps, each time any of them");
  app.add_option("--steps", options.steps)->capture_default_str();
  app.add_option("--variables", options.variables)->capture_default_str();
  app.add_option("--bytes", options.bytes, "of a variable in a step")->capture_default_str();
  app.add_option("--compute-us", options.compute_us, "after each step")->capture_default_str();
  app.add_option("--json", json, "write the result there instead of to standard output");
  CLI11_PARSE(app, argc, argv);
  return measure::report("series", json, [&] { return measure_all(options); });
}

}  // namespace
}  // namespace tidelane::series

int main(int argc, char** argv) { return tidelane::series::run(argc, argv); }
