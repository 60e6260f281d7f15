// epochs: writes and computes by a list of steps, to see how a mode does with one pattern or another.
//
//   epochs --file=run.h5 --step-kib 16384 --step-us 20000 --step-kib 2048 --step-us 0 --repeat=10 [--flush-each=2]
//
// A step is so many KiB, in datasets of at most 4 MiB each, and then so many microseconds of computation: a fixed amount
// of work, so that a lane that takes the processor away shows. The total ends after H5close(), so that nothing a close
// deferred can hide behind the program's end. Plain HDF5, nothing of Tidelane.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include <hdf5.h>
#include <nlohmann/json.hpp>

#include "common/measure.h"
#include "common/options.h"

namespace {

using tidelane::measure::now_us;
using tidelane::measure::ok;

constexpr size_t kMostInts = (4u << 20) / sizeof(int32_t);

struct Options {
  std::string file = "epochs.h5";
  std::vector<size_t> kib;
  std::vector<double> us;
  int repeat = 1;
  int flush_each = 0;  // after each so many steps; 0: never
  double work_per_us = 100;
};

// One unit is a step of a generator: the same work on any machine, and nothing that a compiler could leave out.
uint64_t Compute(double units, uint64_t seed) {
  for (auto left = static_cast<uint64_t>(units); left != 0; --left)
    seed = seed * 6364136223846793005u + 1442695040888963407u;
  return seed;
}

// Units a microsecond, the best of some tries.
double Calibrate() {
  double best_us = 1e30;
  constexpr double kUnits = 5e6;
  volatile uint64_t seen = 1;
  for (int i = 0; i < 9; ++i) {
    const double begin = now_us();
    seen = Compute(kUnits, seen);
    best_us = std::min(best_us, now_us() - begin);
  }
  return kUnits / best_us;
}

void WriteStep(hid_t file, int step, size_t kib, const std::vector<int32_t>& values) {
  size_t left = kib * 1024 / sizeof(int32_t);
  for (int part = 0; left != 0; ++part) {
    const hsize_t count = std::min(left, kMostInts);
    const hid_t space = ok(H5Screate_simple(1, &count, nullptr), "H5Screate_simple");
    const std::string name = "step" + std::to_string(step) + "-" + std::to_string(part);
    const hid_t set = ok(H5Dcreate(file, name.c_str(), H5T_NATIVE_INT32, space, H5P_DEFAULT,
                                   H5P_DEFAULT, H5P_DEFAULT),
                         "H5Dcreate");
    ok(H5Dwrite(set, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), "H5Dwrite");
    ok(H5Dclose(set), "H5Dclose");
    ok(H5Sclose(space), "H5Sclose");
    left -= count;
  }
}

nlohmann::json Run(const Options& options) {
  std::vector<int32_t> values(kMostInts);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int32_t>(i * 2654435761u);
  const tidelane::measure::Phase total;
  const double begin = now_us();
  ok(H5open(), "H5open");
  const hid_t file =
      ok(H5Fcreate(options.file.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), "H5Fcreate");
  double compute_us = 0, bytes = 0;
  volatile uint64_t seen = 1;
  const int steps = options.repeat * static_cast<int>(options.kib.size());
  for (int step = 0; step < steps; ++step) {
    const size_t kind = static_cast<size_t>(step) % options.kib.size();
    values[static_cast<size_t>(step) % values.size()] = step;
    WriteStep(file, step, options.kib[kind], values);
    bytes += static_cast<double>(options.kib[kind]) * 1024;
    if (options.flush_each != 0 && step % options.flush_each == 0)
      ok(H5Fflush(file, H5F_SCOPE_LOCAL), "H5Fflush");
    const double compute_begin = now_us();
    seen = Compute(options.us[kind] * options.work_per_us, seen);
    compute_us += now_us() - compute_begin;
  }
  ok(H5Fclose(file), "H5Fclose");
  ok(H5close(), "H5close");
  return {{"total_us", now_us() - begin},
          {"compute_us", compute_us},
          {"cpu_us", total.end()["process_cpu_us"]},
          {"bytes", bytes},
          {"steps", steps}};
}

}  // namespace

int main(int argc, char** argv) {
  tidelane::measure::CommandLine line("Writes and computes by a list of steps.");
  Options options;
  std::string json_path;
  bool calibrate = false;
  line.option("--file", options.file).shows_default();
  line.option("--step-kib", options.kib, "what a step writes; once for each kind of step");
  line.option("--step-us", options.us, "what it then computes").not_negative();
  line.option("--repeat", options.repeat, "how often all kinds of steps come in turn").positive();
  line.option("--flush-each", options.flush_each, "H5Fflush after each so many steps")
      .not_negative();
  line.option("--work-per-us", options.work_per_us, "units of computation; see --calibrate")
      .positive();
  line.option("--json", json_path, "write the result there instead of to standard output");
  line.flag("--calibrate", calibrate, "only print how many units a microsecond takes");
  if (const auto status = line.parse(argc, argv)) return *status;
  if (calibrate) {
    std::printf("%.3f\n", Calibrate());
    return 0;
  }
  if (options.kib.empty() || options.kib.size() != options.us.size()) {
    std::fprintf(stderr, "epochs: as many --step-kib as --step-us are needed, and one at least\n");
    return 1;
  }
  return tidelane::measure::report("epochs", json_path, [&] { return Run(options); });
}
