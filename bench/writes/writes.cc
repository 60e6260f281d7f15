// writes: many small writes of one pattern (patterns.h), and what they cost.
//
// Prints as JSON the time and the processor time of creating, writing and closing. Processor time
// is given for the calling thread and for the whole process: the difference is what lanes add.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <hdf5.h>
#include <nlohmann/json.hpp>

#include "common/measure.h"
#include "writes/patterns.h"

namespace tidelane::writes {
namespace {

using measure::ok;
using measure::Phase;

struct Options {
  std::string file = "writes.h5";
  std::string pattern = "contiguous";
  uint64_t bytes = 4096;
  uint64_t writes = 1024;
  bool shuffled = false;
  int64_t sieve = -1;  // -1: HDF5's default
};

struct Hdf5File {
  hid_t file = H5I_INVALID_HID;
  std::vector<hid_t> datasets;
};

std::array<hsize_t, kMaxRank> hsize(const Shape& s) { return {s[0], s[1], s[2]}; }

Hdf5File create(const Options& options, const Pattern& pattern) {
  Hdf5File out;
  const hid_t fapl = ok(H5Pcreate(H5P_FILE_ACCESS), "H5Pcreate");
  if (options.sieve >= 0) {
    ok(H5Pset_sieve_buf_size(fapl, static_cast<size_t>(options.sieve)), "H5Pset_sieve_buf_size");
  }
  out.file = ok(H5Fcreate(options.file.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, fapl), "H5Fcreate");
  H5Pclose(fapl);
  const hid_t dcpl = ok(H5Pcreate(H5P_DATASET_CREATE), "H5Pcreate");
  const auto chunk = hsize(pattern.chunk);
  if (pattern.chunked) ok(H5Pset_chunk(dcpl, pattern.rank, chunk.data()), "H5Pset_chunk");
  auto dims = hsize(pattern.dims());
  auto max = dims;
  if (pattern.grows) {
    dims[0] = 0;
    max[0] = H5S_UNLIMITED;
  }
  const hid_t space = ok(H5Screate_simple(pattern.rank, dims.data(), max.data()), "H5Screate");
  for (int i = 0; i < pattern.datasets; ++i) {
    const std::string name = "data" + std::to_string(i);
    out.datasets.push_back(ok(
        H5Dcreate(out.file, name.c_str(), H5T_NATIVE_UCHAR, space, H5P_DEFAULT, dcpl, H5P_DEFAULT),
        "H5Dcreate"));
  }
  H5Sclose(space);
  H5Pclose(dcpl);
  return out;
}

std::vector<uint64_t> order_of(const Options& options, const Pattern& pattern) {
  std::vector<uint64_t> order(pattern.blocks());
  std::iota(order.begin(), order.end(), uint64_t{0});
  if (options.shuffled && !pattern.grows) {
    std::mt19937_64 random(42);
    std::shuffle(order.begin(), order.end(), random);
  }
  return order;
}

void write_all(const Hdf5File& file, const Options& options, const Pattern& pattern) {
  std::vector<unsigned char> buffer(pattern.block_bytes());
  const auto block = hsize(pattern.block);
  const auto dims = hsize(pattern.dims());
  const hid_t memory = ok(H5Screate_simple(pattern.rank, block.data(), nullptr), "H5Screate");
  const hid_t fixed = ok(H5Screate_simple(pattern.rank, dims.data(), nullptr), "H5Screate");
  for (const uint64_t number : order_of(options, pattern)) {
    std::memset(buffer.data(), static_cast<int>(number % 251 + 1), buffer.size());
    const Position at = pattern.position(number);
    const hid_t dataset = file.datasets[static_cast<size_t>(at.dataset)];
    const auto offset = hsize(at.offset);
    hid_t space = fixed;
    if (pattern.grows) {
      const hsize_t grown[1] = {offset[0] + block[0]};
      ok(H5Dset_extent(dataset, grown), "H5Dset_extent");
      space = ok(H5Dget_space(dataset), "H5Dget_space");
    }
    ok(H5Sselect_hyperslab(space, H5S_SELECT_SET, offset.data(), nullptr, block.data(), nullptr),
       "H5Sselect_hyperslab");
    ok(H5Dwrite(dataset, H5T_NATIVE_UCHAR, memory, space, H5P_DEFAULT, buffer.data()), "H5Dwrite");
    if (space != fixed) H5Sclose(space);
  }
  H5Sclose(fixed);
  H5Sclose(memory);
}

nlohmann::json measure_all(const Options& options) {
  const Pattern pattern = make_pattern(options.pattern, options.bytes, options.writes);
  nlohmann::json out = {{"pattern", options.pattern},
                        {"bytes", options.bytes},
                        {"writes", pattern.blocks()},
                        {"shuffled", options.shuffled},
                        {"run_bytes", pattern.block[static_cast<size_t>(pattern.rank - 1)]}};
  const Phase total;
  const Phase creating;
  ok(H5open(), "H5open");
  const Hdf5File file = create(options, pattern);
  out["create"] = creating.end();
  const Phase writing;
  write_all(file, options, pattern);
  out["write"] = writing.end();
  const Phase closing;
  for (const hid_t dataset : file.datasets) ok(H5Dclose(dataset), "H5Dclose");
  ok(H5Fclose(file.file), "H5Fclose");
  ok(H5close(), "H5close");
  out["close"] = closing.end();
  out["total"] = total.end();
  out["peak_bytes"] = measure::peak_memory();
  return out;
}

}  // namespace
}  // namespace tidelane::writes

int main(int argc, char** argv) {
  using namespace tidelane::writes;
  CLI::App app{"Many small writes to an HDF5 file, and what they cost."};
  Options options;
  std::string json_path;
  app.add_option("--file", options.file)->capture_default_str();
  app.add_option("--pattern", options.pattern)
      ->check(CLI::IsMember(pattern_names()))
      ->capture_default_str();
  app.add_option("--bytes", options.bytes, "of each write")->capture_default_str();
  app.add_option("--writes", options.writes, "how many")->capture_default_str();
  app.add_flag("--shuffled", options.shuffled, "in random order (the same in every run)");
  app.add_option("--sieve", options.sieve, "size of HDF5's sieve buffer; 0: none; -1: its default");
  app.add_option("--json", json_path, "write the result there instead of to standard output");
  CLI11_PARSE(app, argc, argv);
  return tidelane::measure::report("writes", json_path, [&] { return measure_all(options); });
}
