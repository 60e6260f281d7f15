// HDF5's own deflate runs on the library of the setting `deflate`: the counters prove it, native HDF5 reads
// the files, and what is damaged fails as it does natively.
#include <algorithm>
#include <fstream>
#include <functional>
#include <random>

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

std::vector<size_t> buffers;  // the sizes that filters were told, one by one

size_t note_buffer(unsigned, size_t, const unsigned[], size_t bytes, size_t* size, void**) {
  buffers.push_back(*size);
  return bytes;
}

// Deflate between two filters that see what it says of its buffer.
void between_filters(const std::string& path, const std::string& told, bool write) {
  buffers.clear();
  for (const H5Z_filter_t id : {300, 301}) {
    const H5Z_class2_t filter{H5Z_CLASS_T_VERS, id, 1, 1, "note", nullptr, nullptr, note_buffer};
    EXPECT_GE(H5Zregister(&filter), 0);
  }
  const Hid file = write ? create(path) : open(path, H5F_ACC_RDONLY);
  std::mt19937 random(1);
  for (const unsigned noise : {0xffU, 0x0fU, 0x00U}) {
    for (const hsize_t count : {1, 3, 100, 5000, 70000, 200}) {
      const std::string name = std::to_string(noise) + "_" + std::to_string(count);
      std::vector<unsigned char> data(count);
      for (unsigned char& byte : data) byte = static_cast<unsigned char>(random() & noise);
      const Hid list(H5Pcreate(H5P_DATASET_CREATE)), space(H5Screate_simple(1, &count, nullptr));
      H5Pset_chunk(list, 1, &count);
      H5Pset_filter(list, 300, H5Z_FLAG_MANDATORY, 0, nullptr);
      H5Pset_deflate(list, 6);
      H5Pset_filter(list, 301, H5Z_FLAG_MANDATORY, 0, nullptr);
      const Hid dataset(write ? H5Dcreate2(file, name.c_str(), H5T_NATIVE_UCHAR, space, H5P_DEFAULT,
                                           list, H5P_DEFAULT)
                              : H5Dopen2(file, name.c_str(), H5P_DEFAULT));
      void* to = data.data();
      EXPECT_GE(write ? H5Dwrite(dataset, H5T_NATIVE_UCHAR, H5S_ALL, H5S_ALL, H5P_DEFAULT, to)
                      : H5Dread(dataset, H5T_NATIVE_UCHAR, H5S_ALL, H5S_ALL, H5P_DEFAULT, to),
                0)
          << error_text();
    }
  }
  H5Fflush(file, H5F_SCOPE_GLOBAL);
  std::ofstream out(told);
  for (const size_t size : buffers) out << size << "\n";
}

// HDF5 makes other buffers as large as filters say that theirs are, or clears as much of them.
TEST_P(Deflate, TheSizeOfABufferIsNatives) {
  const std::string natively = in_folder("natively"), told = in_folder("told");
  run_natively([&] { between_filters(native_file(), natively, true); });
  const std::string when_written = bytes_on_storage(natively);
  run_natively([&] { between_filters(native_file(), natively, false); });
  const std::string when_read = bytes_on_storage(natively);
  for (const char* library : {"libdeflate", "zlib"}) {
    Environment with_hdf5s_pipeline = with(library);
    with_hdf5s_pipeline["TIDELANE_PARALLEL_READS"] = "off";
    run([&] { between_filters(file(), told, true); }, with_hdf5s_pipeline);
    EXPECT_EQ(bytes_on_storage(told), when_written) << library;
    run([&] { between_filters(native_file(), told, false); }, with_hdf5s_pipeline);
    EXPECT_EQ(bytes_on_storage(told), when_read) << library;
  }
}

// H5Ocopy decodes such chunks, converts them twice, and encodes them again, in one buffer with others beside it.
TEST_P(Deflate, VariableLengthDataIsCopied) {
  constexpr size_t kCount = 3000;
  run([&] {
    std::vector<std::vector<int>> values(kCount);
    std::vector<hvl_t> data(kCount);
    for (size_t i = 0; i < kCount; ++i) {
      values[i].assign(i % 5 + 1, static_cast<int>(i));
      data[i] = {values[i].size(), values[i].data()};
    }
    const Hid vlen(H5Tvlen_create(H5T_NATIVE_INT));
    const hsize_t count = kCount, chunk = 37;
    {
      const Hid from = create(native_file());
      const Hid list(H5Pcreate(H5P_DATASET_CREATE)), space(H5Screate_simple(1, &count, nullptr));
      H5Pset_chunk(list, 1, &chunk);
      H5Pset_deflate(list, 9);
      const Hid dataset(H5Dcreate2(from, "a", vlen, space, H5P_DEFAULT, list, H5P_DEFAULT));
      EXPECT_GE(H5Dwrite(dataset, vlen, H5S_ALL, H5S_ALL, H5P_DEFAULT, data.data()), 0);
    }
    const Hid from = open(native_file(), H5F_ACC_RDONLY), to = create(file());
    EXPECT_GE(H5Ocopy(from, "a", to, "b", H5P_DEFAULT, H5P_DEFAULT), 0) << error_text();
    const Hid copy(H5Dopen2(to, "b", H5P_DEFAULT)), space(H5Dget_space(copy));
    std::vector<hvl_t> read(kCount);
    ASSERT_GE(H5Dread(copy, vlen, H5S_ALL, H5S_ALL, H5P_DEFAULT, read.data()), 0) << error_text();
    for (size_t i = 0; i < kCount; ++i) {
      const int* const ints = static_cast<const int*>(read[i].p);
      EXPECT_EQ(std::vector<int>(ints, ints + read[i].len), values[i]) << i;
    }
    EXPECT_GE(H5Treclaim(vlen, space, H5P_DEFAULT, read.data()), 0);
  });
}

CONFORMANCE_WAYS(Deflate, kImplicit, kDeferredAll);

}  // namespace
}  // namespace tidelane::testing
