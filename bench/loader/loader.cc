// loader: reads small samples of one large dataset in batches, as the loader of a training does.
//
// Prints as JSON what each epoch's reads took. Every epoch reads every sample once: in a new random order, or in the
// order in which they lie there. After each batch it computes, as a training step would.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <hdf5.h>
#include <nlohmann/json.hpp>

#include "common/measure.h"

namespace tidelane::loader {
namespace {

using measure::now_us;
using measure::ok;

struct Options {
  std::string file = "samples.h5";
  bool write = false;
  bool shuffle = true;
  bool chunked = false;  // a chunk for each sample
  int epochs = 3;
  hsize_t samples = 512;
  hsize_t batch = 16;
  uint64_t bytes = 64u << 10;  // of a sample
  double compute_us = 0;       // after each batch
};

using Sample = std::vector<int16_t>;

void fill(Sample& sample, hsize_t number) {
  for (size_t i = 0; i < sample.size(); ++i)
    sample[i] = static_cast<int16_t>(number * 131 + i % 251);
}

double compute(double us) {
  double sum = 0;
  for (const double end = now_us() + us; now_us() < end;) {
    for (int i = 1; i < 2000; ++i) sum += 1.0 / (sum + i);
  }
  return sum;
}

struct Samples {
  hid_t dataset;
  hid_t space;
  hid_t memory;
};

void transfer(const Samples& all, hsize_t number, bool write, Sample& sample) {
  const hsize_t start[2] = {number, 0};
  const hsize_t count[2] = {1, sample.size()};
  ok(H5Sselect_hyperslab(all.space, H5S_SELECT_SET, start, nullptr, count, nullptr),
     "H5Sselect_hyperslab");
  if (write) {
    ok(H5Dwrite(all.dataset, H5T_NATIVE_INT16, all.memory, all.space, H5P_DEFAULT, sample.data()),
       "H5Dwrite");
  } else {
    ok(H5Dread(all.dataset, H5T_NATIVE_INT16, all.memory, all.space, H5P_DEFAULT, sample.data()),
       "H5Dread");
  }
}

hid_t dataset_of(const Options& options, hid_t file, hid_t space) {
  if (!options.write) return ok(H5Dopen2(file, "samples", H5P_DEFAULT), "H5Dopen2");
  const hid_t list = ok(H5Pcreate(H5P_DATASET_CREATE), "H5Pcreate");
  const hsize_t chunk[2] = {1, options.bytes / sizeof(int16_t)};
  if (options.chunked) ok(H5Pset_chunk(list, 2, chunk), "H5Pset_chunk");
  const hid_t dataset =
      ok(H5Dcreate2(file, "samples", H5T_NATIVE_INT16, space, H5P_DEFAULT, list, H5P_DEFAULT),
         "H5Dcreate2");
  ok(H5Pclose(list), "H5Pclose");
  return dataset;
}

// What the reads of an epoch took.
double epoch(const Options& options, const Samples& all, const std::vector<hsize_t>& order) {
  Sample sample(options.bytes / sizeof(int16_t));
  Sample expected(sample.size());
  double waits_us = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    if (options.write) fill(sample, order[i]);
    const double begin = now_us();
    transfer(all, order[i], options.write, sample);
    waits_us += now_us() - begin;
    if (!options.write) {
      fill(expected, order[i]);
      if (sample != expected) throw std::runtime_error("a sample is not what was written");
    }
    if ((i + 1) % options.batch == 0 && options.compute_us > 0 && compute(options.compute_us) < 0)
      return 0;
  }
  return waits_us;
}

nlohmann::json measure_all(const Options& options) {
  const hsize_t extent[2] = {options.samples, options.bytes / sizeof(int16_t)};
  const hid_t file =
      options.write ? ok(H5Fcreate(options.file.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT),
                         "H5Fcreate")
                    : ok(H5Fopen(options.file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), "H5Fopen");
  Samples all{};
  all.space = ok(H5Screate_simple(2, extent, nullptr), "H5Screate_simple");
  const hsize_t one[2] = {1, extent[1]};
  all.memory = ok(H5Screate_simple(2, one, nullptr), "H5Screate_simple");
  all.dataset = dataset_of(options, file, all.space);
  std::vector<hsize_t> order(options.samples);
  std::iota(order.begin(), order.end(), hsize_t{0});
  std::mt19937 random(11);
  std::vector<double> waits;
  for (int i = 0; i < (options.write ? 1 : options.epochs); ++i) {
    if (!options.write && options.shuffle) std::shuffle(order.begin(), order.end(), random);
    waits.push_back(epoch(options, all, order));
  }
  ok(H5Sclose(all.memory), "H5Sclose");
  ok(H5Sclose(all.space), "H5Sclose");
  ok(H5Dclose(all.dataset), "H5Dclose");
  ok(H5Fclose(file), "H5Fclose");
  ok(H5close(), "H5close");
  return {{"waits_us", waits}};
}

int run(int argc, char** argv) {
  Options options;
  std::string json;
  CLI::App app{"Small samples of a large dataset, read in batches, in several epochs."};
  app.add_option("--file", options.file)->capture_default_str();
  app.add_flag("--write", options.write, "write what runs with the same options read");
  app.add_flag("--shuffle,!--no-shuffle", options.shuffle, "each epoch in another order");
  app.add_flag("--chunked", options.chunked, "a chunk for each sample");
  app.add_option("--epochs", options.epochs)->capture_default_str();
  app.add_option("--samples", options.samples)->capture_default_str();
  app.add_option("--batch", options.batch, "samples")->capture_default_str();
  app.add_option("--bytes", options.bytes, "of a sample")->capture_default_str();
  app.add_option("--compute-us", options.compute_us, "after each batch")->capture_default_str();
  app.add_option("--json", json, "write the result there instead of to standard output");
  CLI11_PARSE(app, argc, argv);
  return measure::report("loader", json, [&] { return measure_all(options); });
}

}  // namespace
}  // namespace tidelane::loader

int main(int argc, char** argv) { return tidelane::loader::run(argc, argv); }
