// Reads into GPU memory that go on after their calls: files to read, and event sets to wait for.
//
// Thread safety: none.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "conformance/event_set.h"
#include "conformance/read_later.h"
#include "conformance/read_watch.h"
#include "gpu/gpu_fixture.h"

namespace tidelane::testing {

inline constexpr size_t kLaterSize = size_t{6} << 20;
inline constexpr const char* kLayouts[] = {"line", "chunks", "gzip"};

class GpuLater : public GpuTest {
 public:
  // Datasets of bytes, one of each layout, each a pattern of its own.
  void make_layouts(size_t size = kLaterSize) {
    run_natively([&] {
      const Hid opened = create(file());
      unsigned seed = 1;
      for (const std::string name : kLayouts) {
        const Hid creation(H5Pcreate(H5P_DATASET_CREATE));
        const hsize_t chunk = size / 6;
        if (name != "line") H5Pset_chunk(creation, 1, &chunk);
        if (name == "gzip") H5Pset_deflate(creation, 1);
        const Hid dataset(H5Dcreate2(opened, name.c_str(), H5T_NATIVE_UCHAR, simple({size}),
                                     H5P_DEFAULT, creation, H5P_DEFAULT));
        const Bytes bytes = pattern(size, seed++);
        ASSERT_GE(H5Dwrite(dataset, H5T_NATIVE_UCHAR, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()),
                  0);
      }
    });
  }
  static Bytes contents_of(const std::string& layout, size_t size = kLaterSize) {
    return pattern(size, layout == "line" ? 1 : layout == "chunks" ? 2 : 3);
  }
  static Hid dataset_in(hid_t location, const std::string& name) {
    Hid dataset(H5Dopen2(location, name.c_str(), H5P_DEFAULT));
    EXPECT_TRUE(dataset.valid()) << error_text();
    return dataset;
  }
  static herr_t read_async(hid_t dataset, const Memory& memory, hid_t set,
                           hid_t list = H5P_DEFAULT) {
    return H5Dread_async(dataset, H5T_NATIVE_UCHAR, H5S_ALL, H5S_ALL, list, memory.get(), set);
  }
  // Waits for a set that must fail, and say so.
  static void expect_told(hid_t set, const std::string& dataset, const std::string& cause) {
    expect_words(LateReads::wait_failing(set), dataset, cause);
  }
  static void expect_words(const LateReads::Failure& failure, const std::string& dataset,
                           const std::string& cause) {
    EXPECT_EQ(failure.call, "H5Dread_async");
    EXPECT_NE(failure.errors.find(dataset), std::string::npos) << failure.errors;
    EXPECT_NE(failure.errors.find(cause), std::string::npos) << failure.errors;
  }
};

}  // namespace tidelane::testing
