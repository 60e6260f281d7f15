// corners: workloads where a connector can take far more processor time or memory than HDF5 alone.
//
// Prints as JSON what the process took for the workload, from the first HDF5 call to the end of the library, and the most memory that
// it had. What the workloads have in common: there is little to hide, and much that could be spent on hiding it.
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <hdf5.h>
#include <nlohmann/json.hpp>

#include "common/measure.h"
#include "common/options.h"

namespace tidelane::corners {
namespace {

using measure::now_us;
using measure::ok;
using measure::Phase;

struct Options {
  std::string workload;
  std::string folder = ".";
  int count = 100;
};

// Numbers of 8 bytes.
constexpr hsize_t kRow = 128;
constexpr hsize_t kState = 8 * 1024;   // HDF5's sieve buffer holds as many
constexpr hsize_t kChunk = 2 * 1024;   // of light filters
constexpr hsize_t kBlock = 125 * 125;  // of an array that is written block by block
constexpr int kRowsOfAFile = 200;
constexpr hsize_t kRowsInTurn = 390;
constexpr int kTimesAState = 15;  // it is written between two rows of a log

std::vector<uint64_t> numbers(hsize_t size) {
  std::vector<uint64_t> values(size);
  for (hsize_t i = 0; i < size; ++i) values[i] = i * 7 + i / 251;
  return values;
}

hid_t create(const Options& options, const std::string& name) {
  const std::string path = options.folder + "/" + name;
  return ok(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), "H5Fcreate");
}

// Rows of numbers; `dcpl` may have chunks and filters.
class Rows {
 public:
  Rows(hid_t file, const char* name, hsize_t rows, hsize_t size, hid_t dcpl = H5P_DEFAULT)
      : size_(size) {
    const hsize_t extent[2] = {rows, size};
    space_ = ok(H5Screate_simple(2, extent, nullptr), "H5Screate_simple");
    memory_ = ok(H5Screate_simple(1, &size, nullptr), "H5Screate_simple");
    dataset_ = ok(H5Dcreate2(file, name, H5T_NATIVE_UINT64, space_, H5P_DEFAULT, dcpl, H5P_DEFAULT),
                  "H5Dcreate2");
  }
  // Of a dataset that is there.
  Rows(hid_t file, const char* name, hsize_t size) : size_(size) {
    dataset_ = ok(H5Dopen2(file, name, H5P_DEFAULT), "H5Dopen2");
    space_ = ok(H5Dget_space(dataset_), "H5Dget_space");
    memory_ = ok(H5Screate_simple(1, &size, nullptr), "H5Screate_simple");
  }
  void write(hsize_t row, const uint64_t* values) const {
    const hsize_t start[2] = {row, 0}, count[2] = {1, size_};
    ok(H5Sselect_hyperslab(space_, H5S_SELECT_SET, start, nullptr, count, nullptr),
       "H5Sselect_hyperslab");
    ok(H5Dwrite(dataset_, H5T_NATIVE_UINT64, memory_, space_, H5P_DEFAULT, values), "H5Dwrite");
  }
  void read(hsize_t row, uint64_t* values) const {
    const hsize_t start[2] = {row, 0}, count[2] = {1, size_};
    ok(H5Sselect_hyperslab(space_, H5S_SELECT_SET, start, nullptr, count, nullptr),
       "H5Sselect_hyperslab");
    ok(H5Dread(dataset_, H5T_NATIVE_UINT64, memory_, space_, H5P_DEFAULT, values), "H5Dread");
  }
  void close() const {
    ok(H5Dclose(dataset_), "H5Dclose");
    ok(H5Sclose(memory_), "H5Sclose");
    ok(H5Sclose(space_), "H5Sclose");
  }

 private:
  hsize_t size_;
  hid_t space_, memory_, dataset_;
};

// So many files are open at once; rows go to each of them in turn.
void open_files(const Options& options) {
  rlimit descriptors{};
  getrlimit(RLIMIT_NOFILE, &descriptors);
  descriptors.rlim_cur = descriptors.rlim_max;  // a usual soft limit is 1024
  setrlimit(RLIMIT_NOFILE, &descriptors);
  const auto row = numbers(kRow);
  std::vector<hid_t> files;
  std::vector<Rows> rows;
  for (int i = 0; i < options.count; ++i) {
    files.push_back(create(options, "file" + std::to_string(i) + ".h5"));
    rows.emplace_back(files.back(), "rows", kRowsOfAFile, kRow);
  }
  for (hsize_t at = 0; at < kRowsOfAFile; ++at) {
    for (const Rows& of_one : rows) of_one.write(at, row.data());
  }
  for (int i = 0; i < options.count; ++i) {
    rows[static_cast<size_t>(i)].close();
    ok(H5Fclose(files[static_cast<size_t>(i)]), "H5Fclose");
  }
}

// Rows go to each of so many datasets in turn; then, when nobody has changed the file for a moment, they are read in the same order.
void datasets_in_turn(const Options& options) {
  auto row = numbers(kRow);
  const auto close = [](const std::vector<Rows>& datasets, hid_t file) {
    for (const Rows& dataset : datasets) dataset.close();
    ok(H5Fclose(file), "H5Fclose");
  };
  hid_t file = create(options, "datasets.h5");
  std::vector<Rows> datasets;
  for (int i = 0; i < options.count; ++i)
    datasets.emplace_back(file, ("d" + std::to_string(i)).c_str(), kRowsInTurn, kRow);
  for (hsize_t at = 0; at < kRowsInTurn; ++at) {
    for (const Rows& dataset : datasets) dataset.write(at, row.data());
  }
  close(datasets, file);
  datasets.clear();
  usleep(50'000);
  const std::string path = options.folder + "/datasets.h5";
  file = ok(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), "H5Fopen");
  for (int i = 0; i < options.count; ++i)
    datasets.emplace_back(file, ("d" + std::to_string(i)).c_str(), kRow);
  for (hsize_t at = 0; at < kRowsInTurn; ++at) {
    for (const Rows& dataset : datasets) dataset.read(at, row.data());
  }
  close(datasets, file);
}

// A state is written again and again in its place, and now and then a row to a log.
void overwritten(const Options& options) {
  const auto state = numbers(kState);
  const hid_t file = create(options, "state.h5");
  const Rows log(file, "log", static_cast<hsize_t>(options.count), kRow);
  const Rows place(file, "state", 1, kState);
  for (int step = 0; step < options.count; ++step) {
    for (int i = 0; i < kTimesAState; ++i) place.write(0, state.data());
    log.write(static_cast<hsize_t>(step), state.data());
  }
  place.close();
  log.close();
  ok(H5Fclose(file), "H5Fclose");
}

// Whole chunks of so many numbers, one after the other.
void write_chunks(const Options& options, hsize_t size, const std::function<void(hid_t)>& filter,
                  const std::function<void(int)>& before) {
  const auto chunk = numbers(size);
  const hid_t file = create(options, "chunks.h5");
  const hid_t dcpl = ok(H5Pcreate(H5P_DATASET_CREATE), "H5Pcreate");
  const hsize_t extent[2] = {1, size};
  ok(H5Pset_chunk(dcpl, 2, extent), "H5Pset_chunk");
  filter(dcpl);
  const Rows chunks(file, "chunks", static_cast<hsize_t>(options.count), size, dcpl);
  for (int i = 0; i < options.count; ++i) {
    before(i);
    chunks.write(static_cast<hsize_t>(i), chunk.data());
  }
  chunks.close();
  ok(H5Pclose(dcpl), "H5Pclose");
  ok(H5Fclose(file), "H5Fclose");
}

// A filter that takes no longer than a copy.
void shuffle(const Options& options) {
  write_chunks(
      options, kChunk, [](hid_t dcpl) { ok(H5Pset_shuffle(dcpl), "H5Pset_shuffle"); }, [](int) {});
}

void fletcher32(const Options& options) {
  write_chunks(
      options, kChunk, [](hid_t dcpl) { ok(H5Pset_fletcher32(dcpl), "H5Pset_fletcher32"); },
      [](int) {});
}

// Pauses now and then that are too short to store what came before.
void short_pauses(const Options& options) {
  constexpr int kBurst = 200;
  constexpr double kPauseUs = 2000;
  write_chunks(
      options, kBlock, [](hid_t) {},
      [](int i) {
        for (const double until = now_us() + kPauseUs; i % kBurst == 0 && now_us() < until;) {
        }
      });
}

const std::map<std::string, std::function<void(const Options&)>> kWorkloads = {
    {"open-files", open_files},     {"overwritten", overwritten},
    {"shuffle", shuffle},           {"fletcher32", fletcher32},
    {"short-pauses", short_pauses}, {"datasets-in-turn", datasets_in_turn},
};

nlohmann::json measure_one(const Options& options) {
  const Phase phase;
  kWorkloads.at(options.workload)(options);
  ok(H5close(), "H5close");
  return {{"total", phase.end()}, {"peak_memory", measure::peak_memory()}};
}

int run(int argc, char** argv) {
  Options options;
  std::string json;
  std::vector<std::string> names;
  for (const auto& [name, workload] : kWorkloads) names.push_back(name);
  measure::CommandLine line("What a workload takes of the processor and of memory.");
  line.option("workload", options.workload).required().one_of(names);
  line.option("--folder", options.folder, "for its files").shows_default();
  line.option("--count", options.count, "of files, steps or chunks").positive().shows_default();
  line.option("--json", json, "write the result there instead of to standard output");
  if (const auto status = line.parse(argc, argv)) return *status;
  return measure::report("corners", json, [&] { return measure_one(options); });
}

}  // namespace
}  // namespace tidelane::corners

int main(int argc, char** argv) { return tidelane::corners::run(argc, argv); }
