// Files with some variables for each time step, and tests of what is read ahead of them.
//
// Thread safety: none.
#pragma once

#include <chrono>
#include <string>
#include <thread>

#include "conformance/fixture.h"
#include "conformance/read_watch.h"

namespace tidelane::testing {

inline constexpr size_t kCount = 64 * 1024;               // elements of a dataset
inline constexpr uint64_t kBytes = kCount * sizeof(int);  // 256 KiB
inline constexpr int kVariables = 4;

inline std::string variable(int step, int number) {
  return "/Step#" + std::to_string(step) + "/v" + std::to_string(number);
}
inline int seed_of(int step, int number) { return step * 100 + number; }

// Of a file that was changed a moment ago nothing is kept: it may be changed again without another time.
inline void let_file_settle() { std::this_thread::sleep_for(std::chrono::milliseconds(30)); }

inline void create_steps(const std::string& path, int steps) {
  {
    const Hid opened = create(path);
    for (int step = 0; step < steps; ++step) {
      const std::string group = "Step#" + std::to_string(step);
      const Hid made(H5Gcreate2(opened, group.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
      for (int v = 0; v < kVariables; ++v) put(opened, variable(step, v), seed_of(step, v), kCount);
    }
  }
  let_file_settle();
}

inline void expect_step(hid_t opened, int step) {
  for (int v = 0; v < kVariables; ++v)
    expect_dataset(opened, variable(step, v), seed_of(step, v), kCount);
}

class ReadAhead : public Conformance {
 public:
  Environment reading_ahead(const std::string& read_ahead = "on") const {
    Environment given = environment();
    if (plugged()) given["TIDELANE_READAHEAD"] = read_ahead;
    return given;
  }
  using Conformance::run;
  Summary run(const std::function<void()>& scenario) { return run(scenario, reading_ahead()); }
  // Reads the first step, which natively fetches nothing else; under the plugin, the second one comes by itself.
  void read_first_step(hid_t opened, const Watch& watch) const {
    expect_step(opened, 0);
    if (plugged()) {
      ASSERT_TRUE(watch.wait_for_lanes(kVariables * kBytes)) << watch.by_lanes();
    }
  }
};

}  // namespace tidelane::testing
