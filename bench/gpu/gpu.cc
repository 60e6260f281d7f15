// gpu: a program that computes on a GPU writes its state each step, and reads it back at the end.
//
// Prints as JSON what a step stood still for its H5Dwrite, with what copying the same bytes into pinned memory took, measured in turn
// in the same process. `--staged` does what programs do without help: cudaMemcpy into ordinary memory, and H5Dwrite from there.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <hdf5.h>
#include <nlohmann/json.hpp>

#include "common/measure.h"
#include "common/options.h"
#include "gpu/cuda.h"

namespace tidelane::gpu_bench {
namespace {

using measure::ok;

struct Options {
  std::string folder = ".";
  uint64_t kib = 16 * 1024;
  int steps = 9;
  int pause_ms = 100;
  int gzip = 0;
  bool staged = false;
  bool series = false;
};

double now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

// Numbers that compress about as those of a simulation do.
std::vector<float> state(uint64_t count, int step) {
  std::vector<float> values(count);
  uint64_t random = static_cast<uint64_t>(step) * 7919 + 1;
  for (uint64_t i = 0; i < count; ++i) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    values[i] = static_cast<float>((i / 64) % 1000) + static_cast<float>(random >> 60) / 16;
  }
  return values;
}

// A dataset for each step, or one with a row a step.
class States {
 public:
  States(hid_t file, const Options& options, uint64_t count, bool made)
      : file_(file), options_(options), count_(count), made_(made) {
    const hsize_t extent = count;
    memory_ = ok(H5Screate_simple(1, &extent, nullptr), "H5Screate_simple");
    if (options.series) open("series", static_cast<hsize_t>(options.steps));
  }
  ~States() {
    if (dataset_ >= 0) close();
    H5Sclose(memory_);
  }
  States(const States&) = delete;
  States& operator=(const States&) = delete;

  void begin(int step) {
    if (!options_.series) open("step" + std::to_string(step), 1);
    const hsize_t start[2] = {options_.series ? static_cast<hsize_t>(step) : 0, 0};
    const hsize_t size[2] = {1, count_};
    ok(H5Sselect_hyperslab(space_, H5S_SELECT_SET, start, nullptr, size, nullptr),
       "H5Sselect_hyperslab");
  }
  void write(const void* from) const {
    ok(H5Dwrite(dataset_, H5T_NATIVE_FLOAT, memory_, space_, H5P_DEFAULT, from), "H5Dwrite");
  }
  void read(void* to) const {
    ok(H5Dread(dataset_, H5T_NATIVE_FLOAT, memory_, space_, H5P_DEFAULT, to), "H5Dread");
  }
  void read_later(void* to, hid_t set) const {
    ok(H5Dread_async(dataset_, H5T_NATIVE_FLOAT, memory_, space_, H5P_DEFAULT, to, set),
       "H5Dread_async");
  }
  void end() {
    if (!options_.series) close();
  }

 private:
  void open(const std::string& name, hsize_t rows) {
    if (made_) {
      dataset_ = ok(H5Dopen2(file_, name.c_str(), H5P_DEFAULT), "H5Dopen2");
      space_ = ok(H5Dget_space(dataset_), "H5Dget_space");
      return;
    }
    const hsize_t extent[2] = {rows, count_};
    space_ = ok(H5Screate_simple(2, extent, nullptr), "H5Screate_simple");
    const hid_t dcpl = ok(H5Pcreate(H5P_DATASET_CREATE), "H5Pcreate");
    if (options_.gzip != 0) {
      const hsize_t chunk[2] = {1, std::min<hsize_t>(count_, 256 * 1024)};
      ok(H5Pset_chunk(dcpl, 2, chunk), "H5Pset_chunk");
      ok(H5Pset_shuffle(dcpl), "H5Pset_shuffle");
      ok(H5Pset_deflate(dcpl, static_cast<unsigned>(options_.gzip)), "H5Pset_deflate");
    }
    dataset_ = ok(
        H5Dcreate2(file_, name.c_str(), H5T_NATIVE_FLOAT, space_, H5P_DEFAULT, dcpl, H5P_DEFAULT),
        "H5Dcreate2");
    ok(H5Pclose(dcpl), "H5Pclose");
  }
  void close() {
    ok(H5Sclose(space_), "H5Sclose");
    ok(H5Dclose(dataset_), "H5Dclose");
    dataset_ = -1;
  }

  const hid_t file_;
  const Options& options_;
  const hsize_t count_;
  const bool made_;
  hid_t memory_ = -1, space_ = -1, dataset_ = -1;
};

// What a step took.
struct Measured {
  std::vector<double> waits, copies, reads, uploads, late_reads;
};

class Program {
 public:
  explicit Program(const Options& options)
      : options_(options),
        bytes_(options.kib * 1024),
        count_(bytes_ / sizeof(float)),
        device_(cuda_.allocate(bytes_)),
        pinned_(cuda_.allocate_pinned(bytes_)),
        pageable_(bytes_),
        path_(options.folder + "/gpu.h5") {
    cuda_.copy_to_pinned(pinned_, device_, bytes_);
  }

  nlohmann::json run() {
    const double begin = now();
    write();
    const double whole = now() - begin;
    read();
    std::remove(path_.c_str());
    return {{"device", cuda_.device_name()},
            {"bytes", bytes_},
            {"write_seconds", measured_.waits},
            {"pinned_copy_seconds", measured_.copies},
            {"read_seconds", measured_.reads},
            {"pinned_upload_seconds", measured_.uploads},
            {"late_read_seconds", measured_.late_reads},
            {"whole_seconds", whole}};
  }

 private:
  // The copy and the write come each after the GPU's work: what has just used the driver finds it in the processor's caches.
  void write() {
    const hid_t file =
        ok(H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), "H5Fcreate");
    {
      States states(file, options_, count_, false);
      for (int step = 0; step < options_.steps; ++step) {
        const std::vector<float> values = state(count_, step);
        cuda_.upload(device_, values.data(), bytes_);
        cuda_.compute(options_.pause_ms);
        const double ready = now();
        cuda_.copy_to_pinned(pinned_, device_, bytes_);
        measured_.copies.push_back(now() - ready);
        cuda_.compute(options_.pause_ms);
        states.begin(step);
        const double before = now();
        const void* elements = device_;
        if (options_.staged) {
          cuda_.copy_to_pageable(pageable_.data(), device_, bytes_);
          elements = pageable_.data();
        }
        states.write(elements);
        measured_.waits.push_back(now() - before);
        states.end();
      }
    }
    ok(H5Fclose(file), "H5Fclose");
  }

  // Every step is read back to the device, and looked at.
  void read() {
    const hid_t file = ok(H5Fopen(path_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), "H5Fopen");
    {
      States states(file, options_, count_, true);
      for (int step = 0; step < options_.steps; ++step) {
        states.begin(step);
        cuda_.compute(options_.pause_ms);
        const double before = now();
        if (options_.staged) {
          states.read(pageable_.data());
          cuda_.upload(device_, pageable_.data(), bytes_);
        } else {
          states.read(device_);
        }
        measured_.reads.push_back(now() - before);
        check(step);
        if (!options_.staged) read_later(states, step);
        cuda_.compute(options_.pause_ms);
        const double ready = now();
        cuda_.copy_from_pinned(device_, pinned_, bytes_);
        measured_.uploads.push_back(now() - ready);
        states.end();
      }
    }
    ok(H5Fclose(file), "H5Fclose");
  }

  // What the call and the wait take, with the GPU's work between them.
  void read_later(const States& states, int step) {
    const hid_t set = ok(H5EScreate(), "H5EScreate");
    const std::vector<float> other(count_, -1);
    cuda_.upload(device_, other.data(), bytes_);
    cuda_.compute(options_.pause_ms);
    double begin = now();
    states.read_later(device_, set);
    double stood = now() - begin;
    cuda_.compute(options_.pause_ms);
    size_t left = 0;
    hbool_t failed = false;
    begin = now();
    ok(H5ESwait(set, H5ES_WAIT_FOREVER, &left, &failed), "H5ESwait");
    stood += now() - begin;
    measured_.late_reads.push_back(stood);
    check(step);
    ok(H5ESclose(set), "H5ESclose");
  }

  void check(int step) {
    const std::vector<float> values = state(count_, step);
    cuda_.copy_to_pageable(pageable_.data(), device_, bytes_);
    if (std::memcmp(pageable_.data(), values.data(), bytes_) == 0) return;
    std::fprintf(stderr, "gpu: step %d is not what was written\n", step);
    std::exit(1);
  }

  const Options& options_;
  const uint64_t bytes_;
  const uint64_t count_;
  Cuda cuda_;
  void* const device_;
  void* const pinned_;
  std::vector<std::byte> pageable_;
  const std::string path_;
  Measured measured_;
};

}  // namespace
}  // namespace tidelane::gpu_bench

int main(int argc, char** argv) {
  using namespace tidelane;
  gpu_bench::Options options;
  measure::CommandLine line("Writes the state of a GPU, step by step.");
  line.option("--folder", options.folder, "where the file is made").shows_default();
  line.option("--kib", options.kib, "of the state").positive().shows_default();
  line.option("--steps", options.steps, "").positive().shows_default();
  line.option("--pause-ms", options.pause_ms, "between steps").not_negative().shows_default();
  line.option("--gzip", options.gzip, "level; 0: no filters").between(0, 9).shows_default();
  line.flag("--series", options.series, "one dataset with a row a step instead of one for each");
  line.flag("--staged", options.staged, "cudaMemcpy into ordinary memory first");
  if (const auto status = line.parse(argc, argv)) return *status;
  std::printf("%s\n", gpu_bench::Program(options).run().dump().c_str());
  return 0;
}
