// What the measuring programs share: checked HDF5 calls, phases with their time, their JSON.
//
// Thread safety: none; each object belongs to one thread.
#pragma once

#include <sys/resource.h>

#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>

#include <nlohmann/json.hpp>

#include "common/clock.h"

namespace tidelane::measure {

// Every HDF5 result passes here: a program that ignores errors proves nothing.
template <class T>
T ok(T result, const char* call) {
  if (result < 0) throw std::runtime_error(std::string(call) + " failed");
  return result;
}

// One phase of a run: wall-clock time, and processor time of the calling thread and of the whole
// process (the difference is what lanes add).
class Phase {
 public:
  nlohmann::json end() const {
    return {{"wall_us", now_us() - wall_},
            {"thread_cpu_us", clock_us(CLOCK_THREAD_CPUTIME_ID) - thread_},
            {"process_cpu_us", clock_us(CLOCK_PROCESS_CPUTIME_ID) - process_}};
  }

 private:
  double wall_ = now_us();
  double thread_ = clock_us(CLOCK_THREAD_CPUTIME_ID);
  double process_ = clock_us(CLOCK_PROCESS_CPUTIME_ID);
};

// The most memory this process ever had, in bytes (VmHWM).
inline double peak_memory() {
  rusage u;
  ::getrusage(RUSAGE_SELF, &u);
  return static_cast<double>(u.ru_maxrss) * 1024;
}

// Runs `f`, which returns the report, and writes it to `path` (standard output where it is empty).
// Returns the program's exit status.
template <class F>
int report(const char* program, const std::string& path, F&& f) {
  try {
    const nlohmann::json result = f();
    if (path.empty()) {
      std::printf("%s\n", result.dump(1).c_str());
    } else if (!(std::ofstream(path) << result << "\n")) {
      throw std::runtime_error("cannot write " + path);
    }
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", program, e.what());
    return 1;
  }
}

}  // namespace tidelane::measure
