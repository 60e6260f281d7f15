// What the conformance tests share: the ways of working, a folder per test, datasets with known contents.
//
// A test is a scenario run in a child process (child.h) under each way of working that it makes sense for.
//
// Thread safety: none; tests are single-threaded unless they say otherwise.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "conformance/child.h"
#include "conformance/storage_gate.h"
#include "support/hid.h"

namespace tidelane::testing {

struct Way {
  const char* name;
  const char* connector;  // "" runs natively
  const char* close;
  const char* flush;
  // Storage is as quick as memory here, and a gate makes it slow when a test wants that: what is deferred must not
  // depend on how quick it was so far.
  const char* mode = "async";
  const char* publish = "inplace";

  bool native() const { return *connector == '\0'; }
  bool close_deferred() const { return std::string(close) == "deferred"; }
  bool flush_deferred() const { return std::string(flush) == "deferred"; }
  bool automatic() const { return std::string(mode) == "auto"; }
};

inline constexpr Way kNative{"native", "", "", ""};
inline constexpr Way kImplicit{"implicit", "tidelane", "wait", "wait"};
inline constexpr Way kDeferredClose{"deferred_close", "tidelane", "deferred", "wait"};
inline constexpr Way kDeferredAll{"deferred_all", "tidelane", "deferred", "deferred"};
inline constexpr Way kAuto{"auto", "tidelane", "wait", "wait", "auto"};
inline constexpr Way kAutoDeferred{"auto_deferred", "tidelane", "deferred", "deferred", "auto"};
inline constexpr Way kAtomic{"atomic", "tidelane", "wait", "wait", "async", "atomic"};
inline constexpr Way kAtomicDeferred{"atomic_deferred", "tidelane", "deferred",
                                     "deferred",        "async",    "atomic"};
inline constexpr Way kAsyncName{"async_name", "async under_vol=0;under_info={}", "wait", "wait"};

using Contents = std::map<std::string, int>;  // dataset name to seed

// Scenarios in child processes, in a folder that goes with the test.
class Scenarios : public ::testing::Test {
 public:
  void SetUp() override;
  void TearDown() override;

  std::string in_folder(const std::string& name) const { return folder_ + "/" + name; }
  const std::string& file() const { return file_; }
  std::string summaries() const { return in_folder("summary.%p"); }

  // What a child runs under; bytes linger, so that small writes stay pending until somebody wants them stored.
  Environment environment(const Way& way) const;
  // Runs the scenario to its end and gives its summary (empty natively).
  Summary run(const std::function<void()>& scenario, const Environment& environment);
  void run_natively(const std::function<void()>& scenario);
  // Runs the scenario in a process that is killed where it waits after ringing; it does not ring by itself when an expectation failed.
  void kill_when_rung(const Environment& environment,
                      const std::function<void(const Gong&)>& scenario);
  // Another process, without the plugin, sees a whole file with these datasets.
  void expect_natively(const std::string& path, const Contents& contents);

 private:
  std::string folder_;
  std::string file_;
};

class Conformance : public Scenarios, public ::testing::WithParamInterface<Way> {
 public:
  bool plugged() const { return !GetParam().native(); }

  // In this test's way.
  Environment environment() const { return environment(GetParam()); }
  using Scenarios::environment;
  Summary run(const std::function<void()>& scenario) { return run(scenario, environment()); }
  using Scenarios::run;
  // As run(), but the plugin must have deferred something.
  Summary run_deferring(const std::function<void()>& scenario);
};

std::string way_name(const ::testing::TestParamInfo<Way>& info);
void PrintTo(const Way& way, std::ostream* out);

// The elements of a dataset; different seeds differ everywhere.
std::vector<int> elements(int seed, size_t count);
inline constexpr size_t kElements = 16 * 1024;  // 64 KiB: too few to be stored before they lingered

Hid create(const std::string& path, hid_t fapl = H5P_DEFAULT);
Hid open(const std::string& path, unsigned flags = H5F_ACC_RDWR, hid_t fapl = H5P_DEFAULT);
// Creates a contiguous dataset and writes it.
void put(hid_t location, const std::string& name, int seed, size_t count = kElements);
void overwrite(hid_t location, const std::string& name, int seed, size_t count = kElements);
void expect_dataset(hid_t location, const std::string& name, int seed, size_t count = kElements);
void expect_contents(hid_t location, const Contents& contents);

// All texts of an error stack, a line each.
std::string error_text(hid_t stack = H5E_DEFAULT);
// The file as the system has it now, whatever the library thinks.
off_t size_on_storage(const std::string& path);
std::string bytes_on_storage(const std::string& path);

#define CONFORMANCE_WAYS(suite, ...) \
  INSTANTIATE_TEST_SUITE_P(ways, suite, ::testing::Values(__VA_ARGS__), way_name)

}  // namespace tidelane::testing
