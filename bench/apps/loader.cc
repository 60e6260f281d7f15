// loader: reads small samples of one large dataset in batches, as the loader of a training does (CosmoFlow).
//
// Every epoch reads every sample once: in a new random order, or in the order in which they lie there. After each batch it
// computes, as a training step would. Ranks share an epoch's samples, each with the file open for itself, as the workers of
// a loader have it. With --events the next batch is asked for before the computation on this one, and waited for after it.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "apps/app.h"

namespace tidelane::apps {
namespace {

struct Loader {
  std::string file = "samples.h5";
  bool write = false;
  bool shuffle = true;
  bool chunked = false;  // a chunk for each sample
  int epochs = 3;
  hsize_t samples = 512;
  hsize_t batch = 16;
  uint64_t bytes = 64u << 10;  // of a sample
};

using Sample = std::vector<int16_t>;
using Batch = std::vector<Sample>;

void fill(Sample& sample, hsize_t number) {
  for (size_t i = 0; i < sample.size(); ++i)
    sample[i] = static_cast<int16_t>(number * 131 + i % 251);
}

struct Samples {
  hid_t dataset;
  hid_t space;
  hid_t memory;
};

void transfer(Run& run, const Samples& all, hsize_t number, bool write, Sample& sample) {
  const hsize_t start[2] = {number, 0};
  const hsize_t count[2] = {1, sample.size()};
  ok(H5Sselect_hyperslab(all.space, H5S_SELECT_SET, start, nullptr, count, nullptr),
     "H5Sselect_hyperslab");
  if (write) {
    ok(H5Dwrite_async(all.dataset, H5T_NATIVE_INT16, all.memory, all.space, H5P_DEFAULT,
                      sample.data(), run.events()),
       "H5Dwrite");
  } else {
    ok(H5Dread_async(all.dataset, H5T_NATIVE_INT16, all.memory, all.space, H5P_DEFAULT,
                     sample.data(), run.events()),
       "H5Dread");
  }
  run.Moved(sample.size(), sizeof(int16_t));
}

hid_t dataset_of(const Run& run, const Loader& loader, hid_t file, hid_t space) {
  if (!loader.write)
    return ok(H5Dopen_async(file, "samples", H5P_DEFAULT, run.events()), "H5Dopen");
  const hid_t list = ok(H5Pcreate(H5P_DATASET_CREATE), "H5Pcreate");
  const hsize_t chunk[2] = {1, loader.bytes / sizeof(int16_t)};
  if (loader.chunked) ok(H5Pset_chunk(list, 2, chunk), "H5Pset_chunk");
  const hid_t dataset = ok(H5Dcreate_async(file, "samples", H5T_NATIVE_INT16, space, H5P_DEFAULT,
                                           list, H5P_DEFAULT, run.events()),
                           "H5Dcreate");
  ok(H5Pclose(list), "H5Pclose");
  return dataset;
}

// The numbers of this rank's samples, a batch after the other.
using Order = std::vector<std::vector<hsize_t>>;

Order order_of(const Run& run, const Loader& loader, std::mt19937& random) {
  std::vector<hsize_t> all(loader.samples);
  std::iota(all.begin(), all.end(), hsize_t{0});
  if (!loader.write && loader.shuffle) std::shuffle(all.begin(), all.end(), random);
  Order order;
  for (hsize_t i = run.rank(); i < all.size(); i += run.ranks()) {
    if (order.empty() || order.back().size() == loader.batch) order.emplace_back();
    order.back().push_back(all[i]);
  }
  return order;
}

void move_batch(Run& run, const Loader& loader, const Samples& all,
                const std::vector<hsize_t>& numbers, Batch& batch) {
  for (size_t i = 0; loader.write && i < numbers.size(); ++i) fill(batch[i], numbers[i]);
  run.Io([&] {
    for (size_t i = 0; i < numbers.size(); ++i)
      transfer(run, all, numbers[i], loader.write, batch[i]);
  });
}

void check(const std::vector<hsize_t>& numbers, const Batch& batch) {
  Sample expected(batch.front().size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    fill(expected, numbers[i]);
    if (batch[i] != expected) throw std::runtime_error("a sample is not what was written");
  }
}

// Without an event set a batch is read when it is needed.
void epoch(Run& run, const Loader& loader, const Samples& all, const Order& order) {
  const bool ahead = run.events() != H5ES_NONE;
  Batch now(loader.batch, Sample(loader.bytes / sizeof(int16_t))), next = now;
  for (size_t i = 0; i < order.size(); ++i) {
    if (!ahead || i == 0) move_batch(run, loader, all, order[i], now);
    run.Wait();
    if (!loader.write) check(order[i], now);
    if (ahead && i + 1 < order.size()) move_batch(run, loader, all, order[i + 1], next);
    run.Compute(i + 1 == order.size());
    if (ahead) std::swap(now, next);
  }
}

hid_t open_file(const Run& run, const Loader& loader) {
  return loader.write
             ? ok(H5Fcreate_async(loader.file.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT,
                                  run.events()),
                  "H5Fcreate")
             : ok(H5Fopen_async(loader.file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT, run.events()),
                  "H5Fopen");
}

nlohmann::json body(Run& run, const Loader& loader) {
  if (loader.write && run.ranks() > 1) throw std::invalid_argument("one rank writes the samples");
  const hsize_t extent[2] = {loader.samples, loader.bytes / sizeof(int16_t)};
  Samples all{};
  hid_t file = H5I_INVALID_HID;
  run.Io([&] {
    file = open_file(run, loader);
    all.space = ok(H5Screate_simple(2, extent, nullptr), "H5Screate_simple");
    const hsize_t one[2] = {1, extent[1]};
    all.memory = ok(H5Screate_simple(2, one, nullptr), "H5Screate_simple");
    all.dataset = dataset_of(run, loader, file, all.space);
  });
  std::mt19937 random(11);
  std::vector<double> epochs;
  for (int i = 0; i < (loader.write ? 1 : loader.epochs); ++i) {
    const size_t before = run.steps().size();
    epoch(run, loader, all, order_of(run, loader, random));
    epochs.push_back(std::accumulate(run.steps().begin() + static_cast<ptrdiff_t>(before),
                                     run.steps().end(), 0.0));
  }
  run.Io([&] {
    CloseSpace(all.memory);
    CloseSpace(all.space);
    CloseDataset(run, all.dataset);
    CloseFile(run, file);
  });
  return {{"epochs_us", epochs}};
}

}  // namespace
}  // namespace tidelane::apps

int main(int argc, char** argv) {
  using namespace tidelane::apps;
  Loader loader;
  const auto add = [&](CommandLine& line) {
    line.option("--file", loader.file).shows_default();
    line.flag("--write", loader.write, "write what runs with the same options read");
    line.flag("--shuffle,!--no-shuffle", loader.shuffle, "each epoch in another order");
    line.flag("--chunked", loader.chunked, "a chunk for each sample");
    line.option("--epochs", loader.epochs).shows_default();
    line.option("--samples", loader.samples).shows_default();
    line.option("--batch", loader.batch, "samples").positive();
    line.option("--bytes", loader.bytes, "of a sample").shows_default();
  };
  return Main(argc, argv, "loader", "Small samples of a large dataset, read in batches.", add,
              [&](Run& run) { return body(run, loader); });
}
