// HDF5's own deflate runs on the library of the setting `deflate`: the counters prove it, native HDF5 reads
// the files, and what is damaged fails as it does natively.
#include <algorithm>

#include "conformance/fixture.h"

namespace tidelane::testing {
namespace {

constexpr hsize_t kChunk = 16 * 1024;  // elements
constexpr hsize_t kChunks = 5;
constexpr unsigned kLevels = 10;

std::string name_of(unsigned level) { return "level" + std::to_string(level); }

// Slowly growing numbers with some noise: a third of their size once shuffled and deflated.
std::vector<int> numbers(unsigned seed) {
  std::vector<int> all(kChunk * kChunks);
  uint32_t noise = seed;
  for (size_t i = 0; i < all.size(); ++i) {
    noise = noise * 1664525 + 1013904223;
    all[i] = static_cast<int>(i * 37 + (noise >> 28));
  }
  return all;
}

Hid deflated_dataset(hid_t file, unsigned level) {
  const Hid list(H5Pcreate(H5P_DATASET_CREATE));
  EXPECT_GE(H5Pset_chunk(list, 1, &kChunk), 0);
  EXPECT_GE(H5Pset_shuffle(list), 0);
  EXPECT_GE(H5Pset_deflate(list, level), 0);
  const hsize_t size = kChunk * kChunks;
  const Hid space(H5Screate_simple(1, &size, nullptr));
  return Hid(H5Dcreate2(file, name_of(level).c_str(), H5T_NATIVE_INT, space, H5P_DEFAULT, list,
                        H5P_DEFAULT));
}

void write_levels(const std::string& path) {
  const Hid file = create(path);
  for (unsigned level = 0; level < kLevels; ++level) {
    const std::vector<int> data = numbers(level);
    EXPECT_GE(H5Dwrite(deflated_dataset(file, level), H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT,
                       data.data()),
              0)
        << error_text();
  }
}

Hid open_level(hid_t file, unsigned level) {
  return Hid(H5Dopen2(file, name_of(level).c_str(), H5P_DEFAULT));
}

void expect_levels(const std::string& path) {
  const Hid file = open(path, H5F_ACC_RDONLY);
  for (unsigned level = 0; level < kLevels; ++level) {
    std::vector<int> data(kChunk * kChunks);
    EXPECT_GE(H5Dread(open_level(file, level), H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT,
                      data.data()),
              0)
        << error_text();
    EXPECT_EQ(data, numbers(level)) << level;
  }
}

std::string first_chunk(hid_t dataset) {
  const hsize_t start = 0;
  hsize_t size = 0;
  uint32_t mask = 0;
  EXPECT_GE(H5Dget_chunk_storage_size(dataset, &start, &size), 0);
  std::string bytes(size, '\0');
  EXPECT_GE(H5Dread_chunk(dataset, H5P_DEFAULT, &start, &mask, bytes.data()), 0);
  return bytes;
}

class Deflate : public Conformance {
 public:
  Environment with(const char* library) const {
    Environment changed = environment();
    changed["TIDELANE_DEFLATE"] = library;
    changed["TIDELANE_PARALLEL_WRITES"] = "off";  // HDF5's own filter is to run
    return changed;
  }
  std::string native_file() const { return in_folder("native.h5"); }
};

TEST_P(Deflate, NativeReadsWhatOursWrote) {
  for (const char* library : {"libdeflate", "zlib", "isal"}) {
    const Summary summary = run([&] { write_levels(file()); }, with(library));
    EXPECT_EQ(summary.counter("chunks_deflated"), kLevels * kChunks);
    run_natively([&] { expect_levels(file()); });
  }
}

TEST_P(Deflate, OursReadsWhatNativeWrote) {
  run_natively([&] { write_levels(file()); });
  for (const char* library : {"libdeflate", "zlib", "isal"}) {
    const Summary summary = run([&] { expect_levels(file()); }, with(library));
    EXPECT_EQ(summary.counter("chunks_inflated"), kLevels * kChunks);
  }
}

TEST_P(Deflate, NativeLeavesItToHdf5) {
  const Summary summary = run(
      [&] {
        write_levels(file());
        expect_levels(file());
      },
      with("native"));
  EXPECT_EQ(summary.counter("chunks_deflated"), 0);
  EXPECT_EQ(summary.counter("chunks_inflated"), 0);
}

TEST_P(Deflate, ZlibIsNativeByteByByte) {
  run_natively([&] { write_levels(native_file()); });
  run([&] { write_levels(file()); }, with("zlib"));
  run_natively([&] {
    const Hid ours = open(file()), theirs = open(native_file());
    for (unsigned level = 0; level < kLevels; ++level) {
      EXPECT_EQ(first_chunk(open_level(ours, level)), first_chunk(open_level(theirs, level)));
    }
  });
}

TEST_P(Deflate, FilesAreAboutAsLarge) {
  run_natively([&] { write_levels(native_file()); });
  run([&] { write_levels(file()); }, with("libdeflate"));
  run_natively([&] {
    const Hid ours = open(file()), theirs = open(native_file());
    for (unsigned level = 0; level < kLevels; ++level) {
      const auto size = static_cast<double>(H5Dget_storage_size(open_level(ours, level)));
      const auto native = static_cast<double>(H5Dget_storage_size(open_level(theirs, level)));
      EXPECT_LE(size, 1.05 * native) << level;
    }
  });
}

TEST_P(Deflate, StaysAfterTheLibraryWasClosed) {
  const Summary summary = run(
      [&] {
        write_levels(file());
        EXPECT_GE(H5close(), 0);
        expect_levels(file());
      },
      with("libdeflate"));
  EXPECT_EQ(summary.counter("chunks_inflated"), kLevels * kChunks);
}

// Ours and native's: a failing call that says why, and the program goes on.
TEST_P(Deflate, ADamagedChunkFails) {
  const auto damage = [&](const std::function<void(std::string&)>& how) {
    run_natively([&] {
      write_levels(file());
      const Hid opened = open(file());
      const Hid dataset = open_level(opened, 6);
      std::string bytes = first_chunk(dataset);
      how(bytes);
      const hsize_t start = 0;
      EXPECT_GE(H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, &start, bytes.size(), bytes.data()), 0);
    });
    const auto read = [&] {
      const Hid opened = open(file(), H5F_ACC_RDONLY);
      const Hid damaged = open_level(opened, 6), whole = open_level(opened, 5);
      std::vector<int> data(kChunk * kChunks);
      void* to = data.data();
      EXPECT_LT(H5Dread(damaged, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, to), 0);
      EXPECT_NE(error_text().find("filter returned failure"), std::string::npos) << error_text();
      EXPECT_GE(H5Dread(whole, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, to), 0);
      EXPECT_EQ(data, numbers(5));
    };
    run_natively(read);
    run(read, with("libdeflate"));
  };
  damage([](std::string& bytes) { bytes.resize(bytes.size() / 2); });
  damage([](std::string& bytes) { bytes[bytes.size() / 2] ^= 0x55; });
  damage([](std::string& bytes) { bytes[0] ^= 0x08; });
  damage([](std::string& bytes) { std::ranges::fill(bytes, '\xff'); });
  damage([](std::string& bytes) { bytes = "x"; });
}

CONFORMANCE_WAYS(Deflate, kImplicit, kDeferredAll);

}  // namespace
}  // namespace tidelane::testing
