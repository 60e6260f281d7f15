// Programs that have the plugin in HDF5's plugin path and never chose it: when a file cannot be opened, HDF5 loads every
// plugin there, starts its connector and asks it about that file. Nothing may come of that: not another error, not another
// byte, not a word.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "conformance/fixture.h"

namespace tidelane::testing {
namespace {

class NeverAsked : public Scenarios {
 public:
  // As in a shell where the path is set for filters, or was left behind.
  Environment environment() const {
    Environment changed = Scenarios::environment(kAuto);
    changed["HDF5_VOL_CONNECTOR"] = "";
    return changed;
  }
  // Without the plugin, and then with it in the path: what `look` gives must be the same.
  void expect_as_natively(const std::function<std::string()>& look) {
    const std::string natively = told_by(look, Scenarios::environment(kNative));
    ASSERT_FALSE(natively.empty());
    EXPECT_EQ(told_by(look, environment()), natively);
    for (const auto& entry : std::filesystem::directory_iterator(in_folder("")))
      EXPECT_FALSE(entry.path().filename().string().starts_with("summary.")) << entry.path();
  }

 private:
  std::string told_by(const std::function<std::string()>& look, const Environment& with) {
    const std::string told = in_folder("told");
    run([&] { std::ofstream(told) << look(); }, with);
    return bytes_on_storage(told);
  }
};

std::string failed_open(const std::string& path) {
  EXPECT_LT(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), 0);
  return error_text();
}

// A chunk that libdeflate makes other bytes of than zlib.
std::string deflated_chunk(const std::string& path) {
  const hsize_t count = 1 << 14;
  std::vector<int> data(count);
  for (size_t i = 0; i < count; ++i)
    data[i] = static_cast<int>(static_cast<unsigned>(i) * 2654435761U >> 20);
  const Hid file = create(path);
  const Hid list(H5Pcreate(H5P_DATASET_CREATE));
  EXPECT_GE(H5Pset_chunk(list, 1, &count), 0);
  EXPECT_GE(H5Pset_deflate(list, 6), 0);
  const Hid space(H5Screate_simple(1, &count, nullptr));
  const Hid dataset(H5Dcreate2(file, "x", H5T_NATIVE_INT, space, H5P_DEFAULT, list, H5P_DEFAULT));
  EXPECT_GE(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, data.data()), 0);
  const hsize_t start = 0;
  hsize_t size = 0;
  uint32_t mask = 0;
  EXPECT_GE(H5Dget_chunk_storage_size(dataset, &start, &size), 0);
  std::string bytes(size, '\0');
  EXPECT_GE(H5Dread_chunk(dataset, H5P_DEFAULT, &start, &mask, bytes.data()), 0);
  return bytes;
}

TEST_F(NeverAsked, ErrorsOfAFileThatIsMissing) {
  // Twice: HDF5 has loaded the plugin by then.
  expect_as_natively([&] { return failed_open(file()) + failed_open(file()); });
}

TEST_F(NeverAsked, ErrorsOfAFileThatIsNotHdf5) {
  std::ofstream(file()) << std::string(5'000, 'x');
  expect_as_natively([&] { return failed_open(file()) + failed_open(file()); });
}

// Whether such a file is an HDF5 file can be told without its lock, and by the time it is opened the lock may be gone.
TEST_F(NeverAsked, ErrorsOfAFileThatIsLocked) {
  run_natively([&] { put(create(file()), "a", 1); });
  expect_as_natively([&] {
    const int other = ::open(file().c_str(), O_RDONLY);
    EXPECT_EQ(flock(other, LOCK_EX), 0);
    const std::string text = failed_open(file()) + failed_open(file());
    close(other);
    return text;
  });
}

TEST_F(NeverAsked, WhatIsDeflatedLater) {
  expect_as_natively([&] {
    failed_open(in_folder("missing.h5"));
    return deflated_chunk(file());
  });
}

TEST_F(NeverAsked, WhatIsDeflatedWhenTheConnectorIsClosedAgain) {
  expect_as_natively([&] {
    if (std::getenv("HDF5_PLUGIN_PATH") != nullptr) {
      const Hid connector(H5VLregister_connector_by_name("tidelane", H5P_DEFAULT));
      const Hid access(H5Pcreate(H5P_FILE_ACCESS));
      EXPECT_GE(H5Pset_vol(access, connector, nullptr), 0);
      unsetenv("TIDELANE_SUMMARY");
      put(create(in_folder("ours.h5"), access), "a", 1);
    }
    return deflated_chunk(file());
  });
}

// A program's own question, the first thing it asks of us.
TEST_F(NeverAsked, WhoAsksIsAnswered) {
  run_natively([&] { put(create(file()), "a", 1); });
  run(
      [&] {
        const Hid connector(H5VLregister_connector_by_name("tidelane", H5P_DEFAULT));
        const Hid access(H5Pcreate(H5P_FILE_ACCESS));
        EXPECT_GE(H5Pset_vol(access, connector, nullptr), 0);
        EXPECT_GT(H5Fis_accessible(file().c_str(), access), 0);
        EXPECT_EQ(H5Fis_accessible("/dev/null", access), 0);
        EXPECT_LT(H5Fis_accessible(in_folder("missing.h5").c_str(), access), 0);
        EXPECT_GT(H5Fis_accessible(file().c_str(), access), 0);
      },
      environment());
}

// Ids that we keep are void then.
TEST_F(NeverAsked, TheLibraryMayBeClosedAndOpenedAgain) {
  run(
      [&] {
        for (int round = 0; round < 3; ++round) {
          {
            const Hid connector(H5VLregister_connector_by_name("tidelane", H5P_DEFAULT));
            const Hid access(H5Pcreate(H5P_FILE_ACCESS));
            EXPECT_GE(H5Pset_vol(access, connector, nullptr), 0);
            EXPECT_LT(H5Fis_accessible(in_folder("missing.h5").c_str(), access), 0);
            if (round == 1) put(create(file(), access), "a", round);
          }
          EXPECT_GE(H5close(), 0);
        }
        expect_contents(open(file(), H5F_ACC_RDONLY), {{"a", 1}});
      },
      environment());
}

}  // namespace
}  // namespace tidelane::testing
