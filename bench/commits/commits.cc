// commits: programs that flush, so that what they have written is to be found after any end of theirs.
//
// Prints as JSON what the process took from the first HDF5 call to the end of the library, how long its calls that write, flush and close
// took (its pauses left out), what each flush took, and how many bytes it gave to the system in writes. Whether there is a journal is up to the environment.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <hdf5.h>
#include <nlohmann/json.hpp>

#include "common/measure.h"
#include "common/options.h"

namespace tidelane::commits {
namespace {

using measure::now_us;
using measure::ok;
using measure::Phase;

struct Options {
  std::string workload;
  std::string file = "commits.h5";
  int count = 40;
  int flush_every = 1;
  int pause_ms = 0;
  int open = 1;
  uint64_t bytes = 1 << 20;
  bool fsync = false;
};

// What the calls took that a program waits for.
class Calls {
 public:
  // Returns what it took.
  double wait(const std::function<void()>& call) {
    const double begin = now_us();
    call();
    const double took = now_us() - begin;
    waited_us_ += took;
    return took;
  }
  void flush(hid_t file, bool sync) {
    flushes_us_.push_back(wait([&] {
      ok(H5Fflush(file, H5F_SCOPE_GLOBAL), "H5Fflush");
      if (sync) ok(::fsync(descriptor_of(file)), "fsync");
    }));
  }
  nlohmann::json end() const {
    double flushing = 0;
    for (const double took : flushes_us_) flushing += took;
    auto sorted = flushes_us_;
    std::ranges::sort(sorted);
    return {{"waits_us", waited_us_},
            {"flushing_us", flushing},
            {"flushes", sorted.size()},
            {"flush_us", sorted.empty() ? 0 : sorted[sorted.size() / 2]},
            {"least_flush_us", sorted.empty() ? 0 : sorted.front()}};
  }

 private:
  static int descriptor_of(hid_t file) {
    void* descriptor = nullptr;
    ok(H5Fget_vfd_handle(file, H5P_DEFAULT, &descriptor), "H5Fget_vfd_handle");
    return *static_cast<int*>(descriptor);
  }

  double waited_us_ = 0;
  std::vector<double> flushes_us_;
};

hid_t create(const Options& options) {
  return ok(H5Fcreate(options.file.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), "H5Fcreate");
}

// Each byte of it is another one in another step.
std::vector<uint64_t> numbers(uint64_t bytes, uint64_t step) {
  std::vector<uint64_t> values(bytes / sizeof(uint64_t));
  for (uint64_t i = 0; i < values.size(); ++i) values[i] = (i + step) * 0x9e3779b97f4a7c15;
  return values;
}

hid_t contiguous(hid_t file, const std::string& name, hsize_t size) {
  const hid_t space = ok(H5Screate_simple(1, &size, nullptr), "H5Screate_simple");
  const hid_t dataset = ok(H5Dcreate2(file, name.c_str(), H5T_NATIVE_UINT64, space, H5P_DEFAULT,
                                      H5P_DEFAULT, H5P_DEFAULT),
                           "H5Dcreate2");
  ok(H5Sclose(space), "H5Sclose");
  return dataset;
}

void pause(const Options& options) {
  if (options.pause_ms > 0) ::usleep(static_cast<useconds_t>(options.pause_ms) * 1000);
}

// Rows go to the end of a dataset.
void append(const Options& options, Calls& calls) {
  const hsize_t row = options.bytes / sizeof(uint64_t);
  const auto values = numbers(options.bytes, 1);
  hid_t file = 0, dataset = 0;
  calls.wait([&] {
    file = create(options);
    const hsize_t none[2] = {0, row}, most[2] = {H5S_UNLIMITED, row}, chunk[2] = {1, row};
    const hid_t space = ok(H5Screate_simple(2, none, most), "H5Screate_simple");
    const hid_t dcpl = ok(H5Pcreate(H5P_DATASET_CREATE), "H5Pcreate");
    ok(H5Pset_chunk(dcpl, 2, chunk), "H5Pset_chunk");
    dataset = ok(H5Dcreate2(file, "rows", H5T_NATIVE_UINT64, space, H5P_DEFAULT, dcpl, H5P_DEFAULT),
                 "H5Dcreate2");
    ok(H5Pclose(dcpl), "H5Pclose");
    ok(H5Sclose(space), "H5Sclose");
  });
  const hid_t memory = ok(H5Screate_simple(1, &row, nullptr), "H5Screate_simple");
  for (int i = 0; i < options.count; ++i) {
    calls.wait([&] {
      const auto at = static_cast<hsize_t>(i);
      const hsize_t extent[2] = {at + 1, row}, start[2] = {at, 0}, count[2] = {1, row};
      ok(H5Dset_extent(dataset, extent), "H5Dset_extent");
      const hid_t space = ok(H5Dget_space(dataset), "H5Dget_space");
      ok(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, nullptr, count, nullptr),
         "H5Sselect_hyperslab");
      ok(H5Dwrite(dataset, H5T_NATIVE_UINT64, memory, space, H5P_DEFAULT, values.data()),
         "H5Dwrite");
      ok(H5Sclose(space), "H5Sclose");
    });
    if ((i + 1) % options.flush_every == 0) calls.flush(file, options.fsync);
    pause(options);
  }
  ok(H5Sclose(memory), "H5Sclose");
  calls.wait([&] {
    ok(H5Dclose(dataset), "H5Dclose");
    ok(H5Fclose(file), "H5Fclose");
  });
}

// A state is written again and again in its place; `open` datasets are open meanwhile, itself included.
void overwrite(const Options& options, Calls& calls) {
  std::vector<uint64_t> states[2] = {numbers(options.bytes, 1), numbers(options.bytes, 2)};
  hid_t file = 0;
  std::vector<hid_t> datasets;
  calls.wait([&] {
    file = create(options);
    datasets.push_back(contiguous(file, "state", options.bytes / sizeof(uint64_t)));
    for (int i = 1; i < options.open; ++i)
      datasets.push_back(contiguous(file, "d" + std::to_string(i), 16));
  });
  for (int i = 0; i < options.count; ++i) {
    calls.wait([&] {
      ok(H5Dwrite(datasets[0], H5T_NATIVE_UINT64, H5S_ALL, H5S_ALL, H5P_DEFAULT,
                  states[i % 2].data()),
         "H5Dwrite");
    });
    if ((i + 1) % options.flush_every == 0) calls.flush(file, options.fsync);
    pause(options);
  }
  calls.wait([&] {
    for (const hid_t dataset : datasets) ok(H5Dclose(dataset), "H5Dclose");
    ok(H5Fclose(file), "H5Fclose");
  });
}

const std::map<std::string, std::function<void(const Options&, Calls&)>> kWorkloads = {
    {"append", append},
    {"overwrite", overwrite},
};

// What this process gave to system calls that write, whatever file it was for.
double bytes_written() {
  std::ifstream io("/proc/self/io");
  for (std::string key, value; io >> key >> value;) {
    if (key == "wchar:") return std::stod(value);
  }
  return 0;
}

nlohmann::json measure_one(const Options& options) {
  const double before = bytes_written();
  const Phase phase;
  Calls calls;
  kWorkloads.at(options.workload)(options, calls);
  calls.wait([] { ok(H5close(), "H5close"); });
  nlohmann::json result = calls.end();
  result["total"] = phase.end();
  result["bytes"] = bytes_written() - before;
  return result;
}

int run(int argc, char** argv) {
  Options options;
  std::string json;
  std::vector<std::string> names;
  for (const auto& [name, workload] : kWorkloads) names.push_back(name);
  measure::CommandLine line("What flushes cost a program that wants to come back to them.");
  line.option("workload", options.workload).required().one_of(names);
  line.option("--file", options.file, "to write").shows_default();
  line.option("--count", options.count, "of writes").positive().shows_default();
  line.option("--bytes", options.bytes, "of each").positive().shows_default();
  line.option("--flush-every", options.flush_every, "so many writes").positive().shows_default();
  line.option("--pause-ms", options.pause_ms, "after each write").not_negative().shows_default();
  line.option("--open", options.open, "datasets while one is overwritten")
      .positive()
      .shows_default();
  line.flag("--fsync", options.fsync, "the file after each flush, as a program without a journal");
  line.option("--json", json, "write the result there instead of to standard output");
  if (const auto status = line.parse(argc, argv)) return *status;
  return measure::report("commits", json, [&] { return measure_one(options); });
}

}  // namespace
}  // namespace tidelane::commits

int main(int argc, char** argv) { return tidelane::commits::run(argc, argv); }
