/// \file
/// Filtered datasets of integers that are written and read under the plugin and natively.
///
/// Thread safety: none.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "conformance/fixture.h"
#include "tidelane.h"

namespace tidelane::testing {

inline constexpr hsize_t kRows = 64;
inline constexpr hsize_t kColumns = 128;  // a chunk of 32 KiB
inline constexpr hsize_t kChunk = kRows * kColumns;

class FilteredData : public Conformance {
 public:
  // Filtered by us, each chunk counted once.
  static int64_t filtered(const Summary& summary) {
    return summary.counter("chunks_filtered_by_lanes") +
           summary.counter("chunks_filtered_by_caller");
  }
  static hsize_t size_of(hid_t dataset) {
    const Hid space(H5Dget_space(dataset));
    return static_cast<hsize_t>(H5Sget_simple_extent_npoints(space));
  }
  static void write(hid_t dataset, int seed) {
    const std::vector<int> values = elements(seed, size_of(dataset));
    EXPECT_GE(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0)
        << error_text();
  }
  static std::vector<int> read(hid_t dataset) {
    std::vector<int> values(size_of(dataset), -1);
    EXPECT_GE(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0)
        << error_text();
    return values;
  }
  static std::vector<int> read(hid_t location, const std::string& name) {
    const Hid dataset(H5Dopen2(location, name.c_str(), H5P_DEFAULT));
    EXPECT_TRUE(dataset.valid()) << name << "\n" << error_text();
    return dataset.valid() ? read(dataset) : std::vector<int>();
  }
  // Under the plugin at least so many chunks are filtered by us; the files hold, for stock HDF5, the same datasets as natively.
  Summary expect_as_natively(const std::function<void(const std::string& path)>& scenario,
                             const std::vector<std::string>& datasets, int64_t chunks,
                             const Environment& environment) {
    Summary summary = run_filtering(chunks, [&] { scenario(file()); }, environment);
    const std::string native = in_folder("native.h5");
    run_natively([&] {
      scenario(native);
      const Hid ours = open(file(), H5F_ACC_RDONLY), theirs = open(native, H5F_ACC_RDONLY);
      for (const std::string& name : datasets) {
        EXPECT_TRUE(read(ours, name) == read(theirs, name)) << name;
      }
    });
    return summary;
  }
  // A run in which lanes or waiting threads filtered at least so many chunks.
  Summary run_filtering(int64_t chunks, const std::function<void()>& scenario,
                        const Environment& environment) {
    Summary summary = run(scenario, environment);
    if (plugged()) {
      EXPECT_GE(filtered(summary), chunks);
      EXPECT_EQ(summary.counter("errors"), 0);
      EXPECT_GT(summary.counter("filter_bytes_in"), 0);
      EXPECT_GT(summary.counter("filter_bytes_out"), 0);
    }
    return summary;
  }
};

// A gate before storage keeps the only lane busy, so that "while chunks are on their way" is a fact.
class Filtered : public FilteredData {
 public:
  Environment one_lane(Environment environment) const {
    if (!plugged()) return environment;
    environment["TIDELANE_LANES"] = "1";
    environment["TIDELANE_LINGER"] = "0";
    return environment;
  }
  Environment one_lane() const { return one_lane(environment()); }

  Summary run_filtering(int64_t chunks, const std::function<void()>& scenario) {
    return FilteredData::run_filtering(chunks, scenario, one_lane());
  }
  Summary expect_as_natively(const std::function<void(const std::string& path)>& scenario,
                             const std::vector<std::string>& datasets, int64_t chunks = 1) {
    return FilteredData::expect_as_natively(scenario, datasets, chunks, one_lane());
  }
  // Until everything is filtered and stored, while nobody waits for it: so long as lanes take on a busy machine.
  static void await_stored(hid_t opened) {
    int stored = 0;
    for (int i = 0; i < 2000 && stored == 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      EXPECT_GE(H5Ftest(opened, &stored), 0) << error_text();
    }
    EXPECT_EQ(stored, 1);
  }
  // While this lives, the lane stands before storage, and chunks stay on their way.
  struct BusyLane {
    explicit BusyLane(hid_t opened) {
      const char* mode = std::getenv("TIDELANE_MODE");
      if (mode == nullptr || std::string(mode) != "async")
        return;  // storage is the program's own work
      storage::hold();
      put(opened, "keeps the lane busy " + std::to_string(next++), 9, 4 << 20);
      EXPECT_TRUE(storage::wait_held());
    }
    ~BusyLane() { storage::release(); }
    inline static int next = 0;
  };

  // Of a chunk: lanes take those without a filter that compresses only where they are large.
  static hsize_t rows_of(const std::string& filters) {
    return filters.find('d') == std::string::npos ? 8 * kRows : kRows;
  }
  static Hid plan(const std::string& filters) {
    Hid dcpl(H5Pcreate(H5P_DATASET_CREATE));
    const hsize_t chunk[] = {rows_of(filters), kColumns};
    H5Pset_chunk(dcpl, 2, chunk);
    for (const char filter : filters) {
      if (filter == 's') H5Pset_shuffle(dcpl);
      if (filter == 'd') H5Pset_deflate(dcpl, 4);
      if (filter == 'f') H5Pset_fletcher32(dcpl);
    }
    const int fill = -7;
    H5Pset_fill_value(dcpl, H5T_NATIVE_INT, &fill);
    return dcpl;
  }
  static Hid make(hid_t opened, const char* name, hsize_t rows, hsize_t columns,
                  const std::string& filters = "sd") {
    const hsize_t extent[] = {rows, columns};
    const hsize_t most[] = {H5S_UNLIMITED, H5S_UNLIMITED};
    const Hid space(H5Screate_simple(2, extent, most));
    Hid dataset(
        H5Dcreate2(opened, name, H5T_NATIVE_INT, space, H5P_DEFAULT, plan(filters), H5P_DEFAULT));
    EXPECT_TRUE(dataset.valid()) << error_text();
    return dataset;
  }
  static Hid part(hid_t dataset, hsize_t row, hsize_t column, hsize_t rows, hsize_t columns) {
    Hid space(H5Dget_space(dataset));
    const hsize_t start[] = {row, column};
    const hsize_t count[] = {rows, columns};
    EXPECT_GE(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, nullptr, count, nullptr), 0);
    return space;
  }
  static void write_part(hid_t dataset, int value, hsize_t row, hsize_t column, hsize_t rows,
                         hsize_t columns) {
    const std::vector<int> values(rows * columns, value);
    const hsize_t extent = rows * columns;
    const Hid memory(H5Screate_simple(1, &extent, nullptr));
    EXPECT_GE(H5Dwrite(dataset, H5T_NATIVE_INT, memory, part(dataset, row, column, rows, columns),
                       H5P_DEFAULT, values.data()),
              0)
        << error_text();
  }
};

}  // namespace tidelane::testing
