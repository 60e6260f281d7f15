// Transfers of GPU memory that are larger than what is pinned for them, and calls whose memory HDF5 describes in its rarer ways.
#include <functional>
#include <string>
#include <vector>

#include "gpu/gpu_fixture.h"

namespace tidelane::testing {
namespace {

class GpuSlices : public GpuTest {
 public:
  // A quarter of what is pinned is 8 MiB with it.
  Environment with_little_memory() const {
    Environment given = environment();
    given["TIDELANE_ARENA"] = "1M";
    return given;
  }
  // Everything, and a part that begins and ends inside of chunks.
  void whole_and_part(const std::function<Hid()>& creation_list) {
    const Extent extent{6000, 1000};
    const Summary summary = run_and_compare(
        [&](hid_t opened) {
          const Hid creation = creation_list();
          Twin twin(opened, "d", extent, {.creation = creation});
          for (const Where where : {Where::kDevice, Where::kPooled}) {
            Memory all(where, twin.bytes(), static_cast<unsigned>(where));
            ASSERT_GE(twin.write(all), 0) << error_text();
            all.put(pattern(all.size(), 99));
            Memory read(where, twin.bytes(), 98);
            ASSERT_GE(twin.read(read), 0) << error_text();
            read.expect_contents();
            const Hid in_file = select(twin.space(), {333, 10}, {}, {5001, 900});
            const Hid in_memory = select(simple({5100, 950}), {77, 5}, {}, {5001, 900});
            Memory part(where, 5100 * 950 * sizeof(int), 3);
            ASSERT_GE(twin.write(part, in_memory, in_file), 0) << error_text();
            ASSERT_GE(twin.read(part, in_memory, in_file), 0) << error_text();
            part.expect_contents();
          }
          leave(twin);
        },
        with_little_memory());
    EXPECT_EQ(summary.fallback("gpu_unpinned"), 0) << "not in slices";
    EXPECT_GT(summary.counter("gpu_bytes_down"), 0);
  }
};

TEST_P(GpuSlices, OfAContiguousDataset) {
  whole_and_part([] { return Hid(H5Pcreate(H5P_DATASET_CREATE)); });
}

TEST_P(GpuSlices, OfChunksThatDoNotDivideThem) {
  whole_and_part([] { return chunked({700, 300}); });
}

TEST_P(GpuSlices, OfFilteredChunksAreWholeChunks) {
  const Summary summary = run_and_compare(
      [&](hid_t opened) {
        const Hid creation = chunked({250, 1000});
        H5Pset_shuffle(creation);
        H5Pset_deflate(creation, 1);
        Twin twin(opened, "d", {6000, 1000}, {.creation = creation});
        ASSERT_GE(twin.write(Memory(Where::kDevice, twin.bytes(), 1)), 0) << error_text();
        leave(twin);
      },
      with_little_memory());
  EXPECT_EQ(summary.fallback("filter_partial"), 0);
}

// A slice that cannot be stored is told with the cause, not only by what HDF5 was doing.
TEST_P(GpuSlices, ThatFailSayWhy) {
  run_on_gpu(
      [&] {
        const Hid opened = create(file());
        Twin twin(opened, "d", {6000, 1000});
        const Memory memory(Where::kDevice, twin.bytes(), 1);
        gpu().StandInFailLater("cuMemcpyDtoHAsync_v2", 3, kCudaLaunchFailed, 0);
        ASSERT_LT(twin.write(memory), 0);
        const std::string errors = error_text();
        EXPECT_NE(errors.find("device memory"), std::string::npos) << errors;
        gpu().StandInFaultsLeft();
        EXPECT_GE(twin.write(memory), 0) << error_text();
      },
      with_little_memory());
}

// H5S_BLOCK is no dataspace: who asks HDF5 about it is told so on stderr, in a call that succeeds.
TEST_P(GpuSlices, MemoryWithoutADataspace) {
  run_and_compare([&](hid_t opened) {
    Twin twin(opened, "d", {300, 200});
    const Memory memory(Where::kDevice, 50 * 60 * sizeof(int), 1);
    const Hid part = select(twin.space(), {20, 30}, {}, {50, 60});
    unsigned told = 0;
    H5Eset_auto2(
        H5E_DEFAULT,
        [](hid_t, void* count) {
          ++*static_cast<unsigned*>(count);
          return herr_t{0};
        },
        &told);
    EXPECT_GE(H5Dwrite(twin.dataset(), H5T_NATIVE_INT, H5S_BLOCK, part, H5P_DEFAULT, memory.get()),
              0);
    twin.model_write(memory.now(), simple({50, 60}), part);
    Memory read(Where::kDevice, memory.size(), 2);
    EXPECT_GE(H5Dread(twin.dataset(), H5T_NATIVE_INT, H5S_BLOCK, part, H5P_DEFAULT, read.get()), 0);
    EXPECT_EQ(read.now(), memory.now());
    EXPECT_EQ(told, 0u);
    leave(twin);
  });
}

// Each dataset has one field of the same elements.
TEST_P(GpuSlices, FieldsOfTheSameElementsFromSeveralDatasets) {
  run_on_gpu([&] {
    struct Both {
      int a, b;
    };
    constexpr hsize_t kCount = 5000;
    const Hid opened = create(file());
    put(opened, "a", 1);
    put(opened, "b", 2);
    const Hid first(H5Dopen2(opened, "a", H5P_DEFAULT));
    const Hid second(H5Dopen2(opened, "b", H5P_DEFAULT));
    const auto field = [](size_t at) {
      Hid type(H5Tcreate(H5T_COMPOUND, sizeof(Both)));
      H5Tinsert(type, "v", at, H5T_NATIVE_INT);
      return type;
    };
    const Hid wrapped = [] {
      Hid type(H5Tcreate(H5T_COMPOUND, sizeof(int)));
      H5Tinsert(type, "v", 0, H5T_NATIVE_INT);
      return type;
    }();
    std::vector<int> values(kCount);
    std::vector<Hid> sources;
    for (const int factor : {3, 5}) {
      for (hsize_t i = 0; i < kCount; ++i) values[i] = static_cast<int>(i) * factor;
      sources.emplace_back(H5Dcreate2(opened, ("f" + std::to_string(factor)).c_str(), wrapped,
                                      simple({kCount}), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
      ASSERT_GE(H5Dwrite(sources.back(), wrapped, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
    }
    Memory read(Where::kDevice, kCount * sizeof(Both), 7);
    hid_t datasets[] = {sources[0], sources[1]};
    const Hid a = field(offsetof(Both, a)), b = field(offsetof(Both, b));
    hid_t types[] = {a, b};
    hid_t all[] = {H5S_ALL, H5S_ALL};
    void* buffers[] = {read.get(), read.get()};
    ASSERT_GE(H5Dread_multi(2, datasets, types, all, all, H5P_DEFAULT, buffers), 0) << error_text();
    const Bytes now = read.now();
    const auto* both = reinterpret_cast<const Both*>(now.data());
    for (hsize_t i = 0; i < kCount; ++i) {
      ASSERT_EQ(both[i].a, static_cast<int>(i) * 3) << i;
      ASSERT_EQ(both[i].b, static_cast<int>(i) * 5) << i;
    }
  });
}

// HDF5 leaves a buffer as it is where nothing was written and nothing says what is there instead.
TEST_P(GpuSlices, WhatWasNeverWrittenLeavesTheBufferAsItIs) {
  run_on_gpu([&] {
    const Hid list(H5Pcreate(H5P_FILE_CREATE));
    H5Pset_userblock(list, 512);
    const Hid opened(H5Fcreate(file().c_str(), H5F_ACC_TRUNC, list, H5P_DEFAULT));
    const Hid creation(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER);
    Twin other(opened, "other", {1000});
    ASSERT_GE(other.write(Memory(Where::kDevice, other.bytes(), 9)), 0) << error_text();
    const Hid unwritten(H5Dcreate2(opened, "unwritten", H5T_NATIVE_INT, simple({1000}), H5P_DEFAULT,
                                   creation, H5P_DEFAULT));
    Memory read(Where::kDevice, 1000 * sizeof(int), 5);
    const Bytes before = read.now();
    ASSERT_GE(H5Dread(unwritten, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, read.get()), 0);
    EXPECT_EQ(read.now(), before);
  });
}

GPU_WAYS(GpuSlices);

}  // namespace
}  // namespace tidelane::testing
