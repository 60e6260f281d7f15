// filters: a compressed dataset a step, written or read, and what it costs the program.
//
// Prints as JSON the time and the processor time of the calls, of closing, and of the computation in between (one
// thread that computes for a given time), the share of all time in which HDF5's lock is held, and the size that the file
// came to. (HDF5 takes its lock when a call begins and lets go of it when the call returns, whatever the call waits for, so
// that it is held for as long as this thread is inside HDF5. No other thread calls HDF5: lanes never do.) The field is smooth with some noise,
// so that shuffle and deflate find about as much as in a simulation's output.
#include <sys/stat.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <hdf5.h>
#include <nlohmann/json.hpp>

#include "common/measure.h"
#include "common/options.h"

namespace tidelane::filters {
namespace {

using measure::now_us;
using measure::ok;
using measure::Phase;

struct Options {
  std::string file = "filters.h5";
  uint64_t bytes = 64u << 20;  // of each step's dataset
  uint64_t chunk = 1u << 20;   // bytes
  int steps = 1;
  unsigned level = 4;
  bool shuffle = true;
  bool read = false;
  double compute_us = 0;  // after each step
};

class Numbers {
 public:
  explicit Numbers(uint64_t seed) : state_(seed * 2 + 1) {}
  double next() {  // in [0, 1)
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state_ >> 40) / static_cast<double>(1u << 24);
  }

 private:
  uint64_t state_;
};

std::vector<float> field(uint64_t count, int step) {
  Numbers noise(static_cast<uint64_t>(step) + 7);
  std::vector<float> values(count);
  for (uint64_t i = 0; i < count; ++i) {
    const auto x = static_cast<double>(i) * 1e-3 + step;
    values[i] = static_cast<float>(std::sin(x) + 0.2 * std::sin(17 * x) + 2e-4 * noise.next());
  }
  return values;
}

// Works for so long, on this thread, as a simulation would.
double compute(double us) {
  double sum = 0;
  for (const double end = now_us() + us; now_us() < end;) {
    for (int i = 1; i < 2000; ++i) sum += 1.0 / (sum + i);
  }
  return sum;
}

std::string name_of(int step) { return "step" + std::to_string(step); }

void write_step(hid_t file, const Options& options, int step, const std::vector<float>& values) {
  const hsize_t extent = values.size();
  const hsize_t chunk = options.chunk / sizeof(float);
  const hid_t space = ok(H5Screate_simple(1, &extent, nullptr), "H5Screate_simple");
  const hid_t dcpl = ok(H5Pcreate(H5P_DATASET_CREATE), "H5Pcreate");
  ok(H5Pset_chunk(dcpl, 1, &chunk), "H5Pset_chunk");
  if (options.shuffle) ok(H5Pset_shuffle(dcpl), "H5Pset_shuffle");
  ok(H5Pset_deflate(dcpl, options.level), "H5Pset_deflate");
  const hid_t dataset = ok(H5Dcreate2(file, name_of(step).c_str(), H5T_NATIVE_FLOAT, space,
                                      H5P_DEFAULT, dcpl, H5P_DEFAULT),
                           "H5Dcreate2");
  ok(H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), "H5Dwrite");
  ok(H5Dclose(dataset), "H5Dclose");
  ok(H5Pclose(dcpl), "H5Pclose");
  ok(H5Sclose(space), "H5Sclose");
}

void read_step(hid_t file, int step, std::vector<float>& values) {
  const hid_t dataset = ok(H5Dopen2(file, name_of(step).c_str(), H5P_DEFAULT), "H5Dopen2");
  ok(H5Dread(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), "H5Dread");
  ok(H5Dclose(dataset), "H5Dclose");
}

double file_bytes(const std::string& path) {
  struct stat status{};
  return stat(path.c_str(), &status) == 0 ? static_cast<double>(status.st_size) : 0;
}

nlohmann::json measure_all(const Options& options) {
  std::vector<std::vector<float>> steps;
  for (int step = 0; step < options.steps; ++step)
    steps.push_back(field(options.bytes / sizeof(float), step));
  std::vector<float> found(options.bytes / sizeof(float));
  double waits_us = 0;
  bool equal = true;
  const Phase total;
  const double begin = now_us();
  const hid_t file =
      options.read ? ok(H5Fopen(options.file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), "H5Fopen")
                   : ok(H5Fcreate(options.file.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT),
                        "H5Fcreate");
  waits_us += now_us() - begin;
  for (int step = 0; step < options.steps; ++step) {
    const std::vector<float>& values = steps[static_cast<size_t>(step)];
    const double call = now_us();
    options.read ? read_step(file, step, found) : write_step(file, options, step, values);
    waits_us += now_us() - call;
    if (options.read) equal = equal && found == values;
    if (options.compute_us > 0 && compute(options.compute_us) < 0) return {};
  }
  const double close = now_us();
  ok(H5Fclose(file), "H5Fclose");
  ok(H5close(), "H5close");
  const double close_us = now_us() - close;
  const double total_us = now_us() - begin;
  if (!equal) throw std::runtime_error("what was read is not what was written");
  return {{"total", total.end()},
          {"waits_us", waits_us + close_us},
          {"close_us", close_us},
          {"lock_share", (waits_us + close_us) / total_us},
          {"bytes", static_cast<double>(options.bytes) * options.steps},
          {"file_bytes", file_bytes(options.file)}};
}

int run(int argc, char** argv) {
  Options options;
  std::string json;
  measure::CommandLine line("A compressed dataset a step, written or read, and what it costs.");
  line.option("--file", options.file).shows_default();
  line.option("--bytes", options.bytes, "of each step's dataset").shows_default();
  line.option("--chunk", options.chunk, "bytes of a chunk").shows_default();
  line.option("--steps", options.steps).shows_default();
  line.option("--level", options.level, "of deflate").shows_default();
  line.flag("--shuffle,!--no-shuffle", options.shuffle);
  line.flag("--read", options.read, "read what a run with the same options wrote, and compare");
  line.option("--compute-us", options.compute_us, "after each step").shows_default();
  line.option("--json", json, "write the result there instead of to standard output");
  if (const auto status = line.parse(argc, argv)) return *status;
  return measure::report("filters", json, [&] { return measure_all(options); });
}

}  // namespace
}  // namespace tidelane::filters

int main(int argc, char** argv) { return tidelane::filters::run(argc, argv); }
