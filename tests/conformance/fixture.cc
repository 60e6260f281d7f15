#include "conformance/fixture.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace tidelane::testing {

std::string way_name(const ::testing::TestParamInfo<Way>& info) { return info.param.name; }

void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }

void Scenarios::SetUp() {
  std::string folder = std::filesystem::current_path() / "conformance-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  folder_ = folder;
  file_ = in_folder("test.h5");
}

void Scenarios::TearDown() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

Environment Scenarios::environment(const Way& way) const {
  const char* given = std::getenv("TIDELANE_TEST_PLUGIN_DIR");
  const char* plugins = given != nullptr ? given : TIDELANE_DRIVER_PLUGINS;
  // With a plugin path, native HDF5 asks every plugin about files that it cannot open (never_asked_test.cc).
  return {{"HDF5_PLUGIN_PATH", way.native() ? "" : plugins},
          {"HDF5_VOL_CONNECTOR", way.connector},
          {"TIDELANE_CLOSE", way.close},
          {"TIDELANE_FLUSH", way.flush},
          {"TIDELANE_PUBLISH", way.native() ? "" : way.publish},
          {"TIDELANE_MODE", way.native() ? "" : way.mode},
          // Scenarios run in forked processes, as if these were programs of their own.
          {"TIDELANE_FORKED", way.native() ? "" : "deferred"},
          {"TIDELANE_LINGER", way.native() ? "" : "10s"},
          {"TIDELANE_SUMMARY", way.native() ? "" : summaries()}};
}

Summary Scenarios::run(const std::function<void()>& scenario, const Environment& environment) {
  Child child(environment, scenario);
  child.expect_success();
  const bool plugin = !environment.at("HDF5_VOL_CONNECTOR").empty();
  return plugin ? child.summary(summaries()) : Summary();
}

Summary Conformance::run_deferring(const std::function<void()>& scenario) {
  Summary summary = run(scenario);
  if (plugged()) {
    EXPECT_GT(summary.counter("bytes_deferred"), 0);
    EXPECT_EQ(summary.counter("errors"), 0);
  }
  return summary;
}

void Scenarios::kill_when_rung(const Environment& environment,
                               const std::function<void(const Gong&)>& scenario) {
  const Gong gong;
  Child child(environment, [&] {
    scenario(gong);
    if (!::testing::Test::HasFailure()) gong.ring();
    pause();
  });
  ASSERT_TRUE(gong.wait());
  child.kill();
  EXPECT_EQ(WTERMSIG(child.wait()), SIGKILL);
}

void Scenarios::run_natively(const std::function<void()>& scenario) {
  run(scenario, environment(kNative));
}

void Scenarios::expect_natively(const std::string& path, const Contents& contents) {
  SCOPED_TRACE("natively");
  run_natively([&] {
    const Hid opened = open(path, H5F_ACC_RDONLY);
    if (opened.valid()) expect_contents(opened, contents);
  });
}

std::vector<int> elements(int seed, size_t count) {
  std::vector<int> values(count);
  const unsigned first = static_cast<unsigned>(seed) * 1'000'003;
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<int>(first + static_cast<unsigned>(i));
  return values;
}

Hid create(const std::string& path, hid_t fapl) {
  Hid file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, fapl));
  EXPECT_TRUE(file.valid()) << path << "\n" << error_text();
  return file;
}

Hid open(const std::string& path, unsigned flags, hid_t fapl) {
  Hid file(H5Fopen(path.c_str(), flags, fapl));
  EXPECT_TRUE(file.valid()) << path << "\n" << error_text();
  return file;
}

void put(hid_t location, const std::string& name, int seed, size_t count) {
  const hsize_t extent = count;
  const Hid space(H5Screate_simple(1, &extent, nullptr));
  const Hid dataset(H5Dcreate2(location, name.c_str(), H5T_NATIVE_INT, space, H5P_DEFAULT,
                               H5P_DEFAULT, H5P_DEFAULT));
  ASSERT_TRUE(dataset.valid()) << name << "\n" << error_text();
  const std::vector<int> values = elements(seed, count);
  ASSERT_GE(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0)
      << error_text();
}

void overwrite(hid_t location, const std::string& name, int seed, size_t count) {
  const Hid dataset(H5Dopen2(location, name.c_str(), H5P_DEFAULT));
  ASSERT_TRUE(dataset.valid()) << name << "\n" << error_text();
  const std::vector<int> values = elements(seed, count);
  ASSERT_GE(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0)
      << error_text();
}

void expect_dataset(hid_t location, const std::string& name, int seed, size_t count) {
  const Hid dataset(H5Dopen2(location, name.c_str(), H5P_DEFAULT));
  ASSERT_TRUE(dataset.valid()) << name << "\n" << error_text();
  const Hid space(H5Dget_space(dataset));
  ASSERT_EQ(H5Sget_simple_extent_npoints(space), static_cast<hssize_t>(count)) << name;
  std::vector<int> values(count, -1);
  ASSERT_GE(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0)
      << error_text();
  EXPECT_TRUE(values == elements(seed, count)) << name << " has other elements than it should";
}

void expect_contents(hid_t location, const Contents& contents) {
  for (const auto& [name, seed] : contents) expect_dataset(location, name, seed);
}

std::string error_text(hid_t stack) {
  std::string text;
  H5Ewalk2(
      stack, H5E_WALK_UPWARD,
      [](unsigned, const H5E_error2_t* error, void* data) -> herr_t {
        static_cast<std::string*>(data)->append(error->desc).append("\n");
        return 0;
      },
      &text);
  return text;
}

off_t size_on_storage(const std::string& path) {
  struct stat found{};
  return stat(path.c_str(), &found) == 0 ? found.st_size : -1;
}

std::string bytes_on_storage(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace tidelane::testing
