// Selections of GPU memory and of datasets, contiguous and in chunks: what is not selected stays as it is, on both sides.
#include <chrono>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gpu/gpu_fixture.h"

namespace tidelane::testing {
namespace {

using namespace std::chrono_literals;

// A selection of memory and one of as many elements of a dataset.
struct Case {
  const char* name;
  Extent memory;
  std::function<Hid(Hid)> in_memory;
  Extent file;
  std::function<Hid(Hid)> in_file;
};

Hid all(Hid space) { return space; }
Hid none(Hid space) {
  EXPECT_GE(H5Sselect_none(space), 0);
  return space;
}

std::function<Hid(Hid)> box(Extent start, Extent count, Extent stride = {}, Extent block = {}) {
  return [=](Hid space) { return select(std::move(space), start, stride, count, block); };
}

Hid irregular(Hid space) {
  space = select(std::move(space), {1, 2}, {}, {3, 50});
  space = select(std::move(space), {2, 40}, {}, {10, 7}, {}, H5S_SELECT_OR);
  space = select(std::move(space), {20, 0}, {3, 2}, {5, 20}, {}, H5S_SELECT_OR);
  return select(std::move(space), {2, 10}, {}, {1, 5}, {}, H5S_SELECT_NOTB);
}
constexpr hsize_t kIrregular = 3 * 50 + 10 * 7 - (2 * 7) + 5 * 20 - 5;

std::function<Hid(Hid)> points(std::vector<hsize_t> flat, size_t rank) {
  return [=](Hid space) {
    EXPECT_GE(H5Sselect_elements(space, H5S_SELECT_SET, flat.size() / rank, flat.data()), 0);
    return space;
  };
}

const std::vector<Case>& cases() {
  static const auto* const list = new std::vector<Case>{
      {"rows", {64, 128}, box({3, 0}, {50, 128}), {50, 128}, all},
      {"columns", {64, 128}, box({0, 7}, {64, 100}), {64, 100}, all},
      {"box in 3-D", {12, 20, 30}, box({1, 2, 3}, {10, 15, 25}), {10, 15, 25}, all},
      {"slab of 3-D", {12, 20, 30}, box({1, 0, 3}, {10, 20, 25}), {10, 20, 25}, all},
      {"planes of 3-D", {12, 20, 30}, box({2, 0, 0}, {9, 20, 30}), {9 * 20 * 30}, all},
      {"box in 4-D", {5, 6, 7, 8}, box({1, 1, 1, 1}, {3, 4, 5, 6}), {360}, all},
      {"every other element", {1000}, box({1}, {400}, {2}), {400}, all},
      {"every third row, every fifth column",
       {90, 100},
       box({1, 2}, {25, 19}, {3, 5}),
       {25, 19},
       all},
      {"blocks", {90, 100}, box({1, 2}, {10, 9}, {8, 10}, {3, 4}), {30, 36}, all},
      {"blocks in 3-D",
       {20, 24, 28},
       box({1, 1, 1}, {4, 3, 5}, {5, 7, 5}, {2, 3, 4}),
       {8 * 9 * 20},
       all},
      {"irregular", {40, 60}, irregular, {kIrregular}, all},
      {"irregular in both", {40, 60}, irregular, {44, 80}, irregular},
      {"a point", {50, 50}, points({7, 9}, 2), {1}, all},
      {"points out of order", {50, 50}, points({49, 49, 0, 0, 20, 3, 20, 2, 7, 7}, 2), {5}, all},
      {"points to points", {50}, points({4, 3, 2, 40, 11}, 1), {60}, points({50, 3, 9, 1, 8}, 1)},
      {"hyperslab of the file", {40, 30}, all, {64, 64}, box({5, 6}, {40, 30})},
      {"strides in the file", {400}, all, {60, 60}, box({3, 2}, {20, 20}, {2, 2})},
      {"strides in both",
       {60, 60},
       box({3, 2}, {20, 20}, {2, 2}),
       {60, 80},
       box({1, 0}, {20, 20}, {2, 4})},
      {"other shapes", {30, 40}, box({2, 3}, {20, 30}), {25, 50}, box({1, 1}, {24, 25})},
      {"other ranks", {6, 10, 20}, box({1, 1, 1}, {4, 5, 15}), {500}, box({100}, {300})},
      {"nothing", {30, 40}, none, {25, 50}, none},
      {"one element", {30, 40}, box({29, 39}, {1, 1}), {25, 50}, box({0, 0}, {1, 1})},
      {"a large box", {900, 1100}, box({10, 20}, {800, 1000}), {800, 1000}, all},
      {"large planes", {40, 200, 150}, box({0, 10, 5}, {40, 180, 140}), {40, 180, 140}, all},
      {"a large part of the file", {800, 900}, all, {900, 1100}, box({10, 20}, {800, 900})},
  };
  return *list;
}

class GpuSelections : public GpuTest {
 public:
  void every_case(Where where, bool in_chunks) {
    run_and_compare([&](hid_t opened) {
      int number = 0;
      for (const Case& tried : cases()) {
        SCOPED_TRACE(tried.name);
        Extent chunk;
        for (const hsize_t extent : tried.file) chunk.push_back((extent + 2) / 3);
        const Hid creation = in_chunks ? chunked(chunk) : Hid();
        Twin twin(opened, "d" + std::to_string(number++), tried.file,
                  {.creation = in_chunks ? creation.get() : H5P_DEFAULT});
        const Hid memory_space = tried.in_memory(simple(tried.memory));
        const Hid file_space = tried.in_file(simple(tried.file));
        ASSERT_EQ(H5Sget_select_npoints(memory_space), H5Sget_select_npoints(file_space));
        size_t size = sizeof(int);
        for (const hsize_t extent : tried.memory) size *= extent;
        Memory written(where, size, 1);
        ASSERT_GE(twin.write(Memory(where, pattern(twin.bytes(), 7))), 0) << error_text();
        ASSERT_GE(twin.write(written, memory_space, file_space), 0) << error_text();
        written.expect_contents();
        Memory read(where, size, 2);
        ASSERT_GE(twin.read(read, memory_space, file_space), 0) << error_text();
        read.expect_contents();
        Memory whole(where, twin.bytes(), 3);
        ASSERT_GE(twin.read(whole), 0) << error_text();
        whole.expect_contents();
        leave(twin);
      }
    });
  }
};

TEST_P(GpuSelections, EverySelectionOfAContiguousDataset) { every_case(Where::kDevice, false); }
TEST_P(GpuSelections, EverySelectionOfChunks) { every_case(Where::kDevice, true); }
TEST_P(GpuSelections, EverySelectionOfMemoryInTheMiddle) { every_case(Where::kMiddle, false); }
TEST_P(GpuSelections, EverySelectionOfManagedMemory) { every_case(Where::kManaged, false); }

TEST_P(GpuSelections, AFileSelectionAloneCountsInMemoryToo) {
  run_and_compare([&](hid_t opened) {
    Twin twin(opened, "d", {50, 60});
    ASSERT_GE(twin.write(Memory(Where::kDevice, pattern(twin.bytes(), 1))), 0) << error_text();
    const Hid part = select(twin.space(), {5, 6}, {}, {30, 40});
    ASSERT_GE(twin.write(Memory(Where::kDevice, pattern(twin.bytes(), 2)), H5S_ALL, part), 0)
        << error_text();
    Memory read(Where::kDevice, twin.bytes(), 3);
    ASSERT_GE(twin.read(read, H5S_ALL, part), 0) << error_text();
    read.expect_contents();
    leave(twin);
  });
}

TEST_P(GpuSelections, ScalarsAndEmptyDatasets) {
  run_on_gpu([&] {
    const Hid opened = create(file());
    const Memory value(Where::kDevice, 8, 1);
    Memory read(Where::kDevice, 8, 2);
    const Hid scalar(H5Screate(H5S_SCALAR));
    const Hid one(H5Dcreate2(opened, "scalar", H5T_NATIVE_INT64, scalar, H5P_DEFAULT, H5P_DEFAULT,
                             H5P_DEFAULT));
    ASSERT_GE(H5Dwrite(one, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, value.get()), 0)
        << error_text();
    ASSERT_GE(H5Dread(one, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, read.get()), 0)
        << error_text();
    read.contents() = pattern(8, 1);
    read.expect_contents();
    const Hid null(H5Screate(H5S_NULL));
    const Hid empty(
        H5Dcreate2(opened, "null", H5T_NATIVE_INT64, null, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    EXPECT_GE(H5Dwrite(empty, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, value.get()), 0)
        << error_text();
    EXPECT_GE(H5Dread(empty, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, read.get()), 0)
        << error_text();
    const Hid nothing(H5Dcreate2(opened, "zero", H5T_NATIVE_INT64, simple({0}), H5P_DEFAULT,
                                 H5P_DEFAULT, H5P_DEFAULT));
    EXPECT_GE(H5Dwrite(nothing, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, value.get()), 0)
        << error_text();
    EXPECT_GE(H5Dread(nothing, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, read.get()), 0)
        << error_text();
    read.expect_contents();
  });
  run_natively([&] {
    const Hid opened = open(file(), H5F_ACC_RDONLY);
    const Hid one(H5Dopen2(opened, "scalar", H5P_DEFAULT));
    Bytes read(8);
    ASSERT_GE(H5Dread(one, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, read.data()), 0);
    EXPECT_EQ(read, pattern(8, 1));
  });
}

// What natively fails must fail: the number of elements differs, or memory's selection leaves its extent.
TEST_P(GpuSelections, SelectionsThatDoNotFitEachOtherAreErrors) {
  run_on_gpu([&] {
    const Hid opened = create(file());
    Twin twin(opened, "d", {100});
    Memory memory(Where::kDevice, 1000, 1);
    EXPECT_LT(twin.write(memory, simple({99})), 0);
    EXPECT_LT(twin.read(memory, simple({99})), 0);
    EXPECT_LT(twin.write(memory, select(simple({100}), {50}, {}, {60}),
                         select(twin.space(), {0}, {}, {60})),
              0);
    EXPECT_LT(twin.write(memory, H5I_INVALID_HID), 0);
    memory.expect_contents();
    EXPECT_GE(twin.write(memory), 0) << error_text();
  });
}

// The selection says that so much is there, the device knows better.
TEST_P(GpuSelections, MoreThanTheAllocationHoldsIsAnError) {
  if (!plugged()) return;
  run_and_compare([&](hid_t opened) {
    Twin twin(opened, "d", {1000});
    ASSERT_GE(twin.write(Memory(Where::kDevice, pattern(twin.bytes(), 1))), 0) << error_text();
    Memory small(Where::kDevice, 3000, 2);
    expect_refused(twin.write(small), "d");
    expect_refused(twin.read(small), "d");
    ASSERT_GE(twin.write(Memory(Where::kDevice, pattern(twin.bytes(), 3))), 0) << error_text();
    leave(twin);
  });
}

// A kernel of the program's changes elements that the read does not select, while the read is on its way.
TEST_P(GpuSelections, ReadsLeaveAloneWhatTheyDoNotSelect) {
  if (!plugged()) return;
  for (const auto& chosen :
       {box({1, 2}, {25, 19}, {3, 5}), box({3, 7}, {60, 40}), std::function(irregular)}) {
    run_and_compare([&](hid_t opened) {
      const Hid memory_space = chosen(simple({90, 100}));
      const auto count = static_cast<hsize_t>(H5Sget_select_npoints(memory_space));
      Twin twin(opened, "d", {count});
      ASSERT_GE(twin.write(Memory(Where::kDevice, pattern(twin.bytes(), 1))), 0) << error_text();
      Memory read(Where::kDevice, 90 * 100 * sizeof(int), 2);
      // One element after another that is not selected: the row before the selection begins, and what follows it.
      CUstream own = nullptr;
      EXPECT_EQ(gpu().cuStreamCreate(&own, kCudaNonBlocking), kCudaSuccess);
      gpu().StandInDelay(3'000);
      const Bytes changed = pattern(2 * sizeof(int), 9);
      const size_t places[] = {0, (89 * 100 + 97) * sizeof(int)};
      for (const size_t place : places) {
        for (int i = 0; i < 8; ++i) {
          const Bytes last =
              i == 7 ? changed : pattern(changed.size(), 20 + static_cast<unsigned>(i));
          EXPECT_EQ(
              gpu().StandInWriteLater(read.device() + place, last.data(), last.size(), own, 1'000),
              kCudaSuccess);
        }
      }
      ASSERT_GE(twin.read(read, memory_space), 0) << error_text();
      EXPECT_EQ(gpu().cuStreamSynchronize(own), kCudaSuccess);
      for (const size_t place : places) {
        std::copy(changed.begin(), changed.end(),
                  read.contents().begin() + static_cast<ptrdiff_t>(place));
      }
      read.expect_contents();
      leave(twin);
    });
  }
}

// Rows that lie further apart than a driver's copy of a plane allows: 2 GiB.
TEST_P(GpuSelections, RowsThatAreFarApart) {
  if (!plugged()) return;
  constexpr hsize_t kFar = (hsize_t{1} << 31) + 8;
  run_and_compare([&](hid_t opened) {
    CUdeviceptr device = 0;
    ASSERT_EQ(gpu().cuMemAlloc_v2(&device, 2 * kFar + 4096), kCudaSuccess);
    const Hid memory_space = select(simple({3, kFar}), {0, 5}, {}, {2, 3000});
    Twin twin(opened, "d", {2, 3000}, {.type = H5T_NATIVE_UCHAR});
    const Bytes bytes = pattern(6000, 1);
    for (hsize_t row = 0; row < 2; ++row) {
      ASSERT_EQ(gpu().StandInPoke(device + row * kFar + 5, bytes.data() + row * 3000, 3000), 1);
    }
    ASSERT_GE(H5Dwrite(twin.dataset(), H5T_NATIVE_UCHAR, memory_space, H5S_ALL, H5P_DEFAULT,
                       reinterpret_cast<void*>(device)),
              0)
        << error_text();
    twin.model_write(bytes);
    const Bytes zero(3000);
    ASSERT_EQ(gpu().StandInPoke(device + kFar + 5, zero.data(), zero.size()), 1);
    ASSERT_GE(H5Dread(twin.dataset(), H5T_NATIVE_UCHAR, memory_space, H5S_ALL, H5P_DEFAULT,
                      reinterpret_cast<void*>(device)),
              0)
        << error_text();
    Bytes row(3000);
    ASSERT_EQ(gpu().StandInPeek(device + kFar + 5, row.data(), row.size()), 1);
    EXPECT_TRUE(std::equal(row.begin(), row.end(), bytes.begin() + 3000));
    EXPECT_EQ(gpu().cuMemFree_v2(device), kCudaSuccess);
    leave(twin);
  });
}

GPU_WAYS_AND_NATIVE(GpuSelections);

}  // namespace
}  // namespace tidelane::testing
