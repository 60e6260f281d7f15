// writes: many small writes of one pattern (patterns.h), and what they cost (the benchmark of the paper on merging).
//
// Its report has also the time and the processor time of creating, writing and closing. Processor time is given for the
// calling thread and for the whole process: the difference is what lanes add. Ranks each write a slab of their own, along
// the first dimension.
#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "apps/app.h"
#include "apps/patterns.h"

namespace tidelane::apps {
namespace {

using measure::Phase;

struct Writes {
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

std::array<hsize_t, kMaxRank> dims_of(const Run& run, const Pattern& pattern) {
  auto dims = hsize(pattern.dims());
  dims[0] *= run.slots();
  return dims;
}

hid_t create_file(const Run& run, const Writes& options) {
  if (options.sieve < 0) return CreateFile(run, options.file);
  const hid_t access = run.access() == H5P_DEFAULT ? ok(H5Pcreate(H5P_FILE_ACCESS), "H5Pcreate")
                                                   : ok(H5Pcopy(run.access()), "H5Pcopy");
  ok(H5Pset_sieve_buf_size(access, static_cast<size_t>(options.sieve)), "H5Pset_sieve_buf_size");
  const hid_t file =
      ok(H5Fcreate(run.Path(options.file).c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access), "H5F");
  ok(H5Pclose(access), "H5Pclose");
  return file;
}

Hdf5File create(const Run& run, const Writes& options, const Pattern& pattern) {
  Hdf5File out;
  out.file = create_file(run, options);
  const hid_t dcpl = ok(H5Pcreate(H5P_DATASET_CREATE), "H5Pcreate");
  const auto chunk = hsize(pattern.chunk);
  if (pattern.chunked) ok(H5Pset_chunk(dcpl, pattern.rank, chunk.data()), "H5Pset_chunk");
  auto dims = dims_of(run, pattern), max = dims;
  if (pattern.grows) {
    dims[0] = 0;
    max[0] = H5S_UNLIMITED;
  }
  const hid_t space = ok(H5Screate_simple(pattern.rank, dims.data(), max.data()), "H5Screate");
  for (int i = 0; i < pattern.datasets; ++i) {
    const std::string name = "data" + std::to_string(i);
    out.datasets.push_back(ok(H5Dcreate_async(out.file, name.c_str(), H5T_NATIVE_UCHAR, space,
                                              H5P_DEFAULT, dcpl, H5P_DEFAULT, run.events()),
                              "H5Dcreate"));
  }
  CloseSpace(space);
  H5Pclose(dcpl);
  return out;
}

std::vector<uint64_t> order_of(const Writes& options, const Pattern& pattern) {
  std::vector<uint64_t> order(pattern.blocks());
  std::iota(order.begin(), order.end(), uint64_t{0});
  if (options.shuffled && !pattern.grows) {
    std::mt19937_64 random(42);
    std::shuffle(order.begin(), order.end(), random);
  }
  return order;
}

void write_block(Run& run, const Pattern& pattern, const Hdf5File& file, hid_t memory, hid_t fixed,
                 uint64_t number, const std::vector<unsigned char>& buffer) {
  const auto block = hsize(pattern.block);
  const Position at = pattern.position(number);
  const hid_t dataset = file.datasets[static_cast<size_t>(at.dataset)];
  auto offset = hsize(at.offset);
  offset[0] += run.slot() * pattern.dims()[0];
  hid_t space = fixed;
  if (pattern.grows) {
    const hsize_t grown[1] = {offset[0] + block[0]};
    ok(H5Dset_extent_async(dataset, grown, run.events()), "H5Dset_extent");
    space = ok(H5Dget_space(dataset), "H5Dget_space");
  }
  ok(H5Sselect_hyperslab(space, H5S_SELECT_SET, offset.data(), nullptr, block.data(), nullptr),
     "H5Sselect_hyperslab");
  ok(H5Dwrite_async(dataset, H5T_NATIVE_UCHAR, memory, space, run.transfer(), buffer.data(),
                    run.events()),
     "H5Dwrite");
  if (space != fixed) CloseSpace(space);
  run.Moved(buffer.size(), 1);
}

// With an event set every write needs a buffer of its own until the end.
void write_all(Run& run, const Hdf5File& file, const Writes& options, const Pattern& pattern,
               std::vector<std::vector<unsigned char>>& buffers) {
  const auto block = hsize(pattern.block);
  const auto dims = dims_of(run, pattern);
  const hid_t memory = ok(H5Screate_simple(pattern.rank, block.data(), nullptr), "H5Screate");
  const hid_t fixed = ok(H5Screate_simple(pattern.rank, dims.data(), nullptr), "H5Screate");
  for (const uint64_t number : order_of(options, pattern)) {
    if (buffers.empty() || run.events() != H5ES_NONE) buffers.emplace_back(pattern.block_bytes());
    std::vector<unsigned char>& buffer = buffers.back();
    std::memset(buffer.data(), static_cast<int>((number + run.rank()) % 251 + 1), buffer.size());
    write_block(run, pattern, file, memory, fixed, number, buffer);
  }
  CloseSpace(fixed);
  CloseSpace(memory);
}

nlohmann::json body(Run& run, const Writes& options) {
  const Pattern pattern = make_pattern(options.pattern, options.bytes, options.writes);
  if (pattern.grows && run.shared()) throw std::invalid_argument("append is for one rank");
  nlohmann::json out = {{"pattern", options.pattern},
                        {"write_bytes", options.bytes},
                        {"writes", pattern.blocks()},
                        {"shuffled", options.shuffled},
                        {"run_bytes", pattern.block[static_cast<size_t>(pattern.rank - 1)]}};
  std::vector<std::vector<unsigned char>> buffers;
  run.Io([&] {
    const Phase creating;
    const Hdf5File file = create(run, options, pattern);
    out["create"] = creating.end();
    const Phase writing;
    write_all(run, file, options, pattern, buffers);
    out["write"] = writing.end();
    const Phase closing;
    for (const hid_t dataset : file.datasets) CloseDataset(run, dataset);
    CloseFile(run, file.file);
    out["close"] = closing.end();
  });
  const Phase ending;
  run.End();
  // What a close left to the library's end is a part of it.
  for (auto& [clock, us] : out["close"].items())
    us = us.get<double>() + ending.end()[clock].get<double>();
  out["peak_bytes"] = measure::peak_memory();
  return out;
}

}  // namespace
}  // namespace tidelane::apps

int main(int argc, char** argv) {
  using namespace tidelane::apps;
  Writes writes;
  const auto add = [&](CommandLine& line) {
    line.option("--file", writes.file).shows_default();
    line.option("--pattern", writes.pattern).one_of(pattern_names()).shows_default();
    line.option("--bytes", writes.bytes, "of each write").shows_default();
    line.option("--writes", writes.writes, "how many").shows_default();
    line.flag("--shuffled", writes.shuffled, "in random order (the same in every run)");
    line.option("--sieve", writes.sieve, "size of HDF5's sieve buffer; 0: none; -1: its default");
  };
  return Main(argc, argv, "writes", "Many small writes to an HDF5 file, and what they cost.", add,
              [&](Run& run) { return body(run, writes); });
}
