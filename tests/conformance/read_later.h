// Asynchronous reads of a dataset "d" of some MiB.
//
// Thread safety: none.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "conformance/event_set.h"
#include "conformance/fixture.h"
#include "conformance/read_watch.h"

namespace tidelane::testing {

inline constexpr size_t kLargeCount = 1 << 20;
inline constexpr uint64_t kLargeBytes = kLargeCount * sizeof(int);

class LateReads : public Conformance {
 public:
  struct Failure {
    std::string call;
    std::string errors;
  };
  // Waits for a set that must fail, and gives what it tells of the first operation that did.
  static Failure wait_failing(hid_t set) {
    size_t in_progress = 0;
    hbool_t failed = false;
    EXPECT_GE(H5ESwait(set, H5ES_WAIT_FOREVER, &in_progress, &failed), 0) << error_text();
    EXPECT_TRUE(failed);
    return failure_of(set);
  }
  // The same of a set that has said that something failed.
  static Failure failure_of(hid_t set) {
    H5ES_err_info_t info{};
    size_t cleared = 0;
    if (H5ESget_err_info(set, 1, &info, &cleared) < 0 || cleared != 1) {
      ADD_FAILURE() << "no failure is told: " << error_text();
      return {};
    }
    Failure failure{info.api_name, error_text(info.err_stack_id)};
    H5free_memory(info.api_name);
    H5free_memory(info.api_args);
    H5free_memory(info.app_file_name);
    H5free_memory(info.app_func_name);
    EXPECT_GE(H5Eclose_stack(info.err_stack_id), 0);
    return failure;
  }

  static Hid put_large(hid_t location, int seed) {
    put(location, "d", seed, kLargeCount);
    return dataset_in(location);
  }
  static Hid dataset_in(hid_t location) {
    Hid dataset(H5Dopen2(location, "d", H5P_DEFAULT));
    EXPECT_TRUE(dataset.valid()) << error_text();
    return dataset;
  }
  static void read_async(hid_t dataset, std::vector<int>& values, hid_t set) {
    EXPECT_GE(
        H5Dread_async(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data(), set),
        0)
        << error_text();
  }
  static void rewrite(hid_t dataset, int seed) {
    const std::vector<int> values = elements(seed, kLargeCount);
    EXPECT_GE(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0)
        << error_text();
  }
  static void rewrite_part(hid_t dataset, int seed, hsize_t first, hsize_t size) {
    const Hid space(H5Dget_space(dataset));
    H5Sselect_hyperslab(space, H5S_SELECT_SET, &first, nullptr, &size, nullptr);
    const std::vector<int> values = elements(seed, size);
    EXPECT_GE(H5Dwrite(dataset, H5T_NATIVE_INT, Hid(H5Screate_simple(1, &size, nullptr)), space,
                       H5P_DEFAULT, values.data()),
              0)
        << error_text();
  }
};

}  // namespace tidelane::testing
