// GPU memory and datasets in chunks: whole chunks, parts of them, filters, datasets that grow, chunks written raw.
#include <functional>
#include <string>
#include <vector>

#include "gpu/gpu_fixture.h"

namespace tidelane::testing {
namespace {

struct Filters {
  const char* name;
  std::function<void(hid_t)> add;
};

const std::vector<Filters>& every_filter() {
  static const auto* const list = new std::vector<Filters>{
      {"none", [](hid_t) {}},
      {"gzip", [](hid_t creation) { H5Pset_deflate(creation, 4); }},
      {"shuffle and gzip",
       [](hid_t creation) {
         H5Pset_shuffle(creation);
         H5Pset_deflate(creation, 1);
       }},
      {"fletcher32", [](hid_t creation) { H5Pset_fletcher32(creation); }},
      {"all three",
       [](hid_t creation) {
         H5Pset_shuffle(creation);
         H5Pset_deflate(creation, 6);
         H5Pset_fletcher32(creation);
       }},
      {"nbit", [](hid_t creation) { H5Pset_nbit(creation); }},
      {"scaleoffset",
       [](hid_t creation) {
         H5Pset_scaleoffset(creation, H5Z_SO_INT, H5Z_SO_INT_MINBITS_DEFAULT);
       }},
  };
  return *list;
}

// Numbers that compress, and not so large that scale-offset has nothing to save: HDF5 cannot read back what it then writes.
Bytes smooth(size_t size, unsigned seed) {
  Bytes bytes(size);
  for (size_t i = 0; i < size; ++i)
    bytes[i] = i % 4 == 3 ? '\0' : static_cast<char>(seed + i / 64 + (i % 4) * 7);
  return bytes;
}

class GpuChunks : public GpuTest {
 public:
  void every_filter_over(const Extent& extent, const Extent& chunk,
                         const std::function<void(Twin&)>& transfers) {
    run_and_compare([&](hid_t opened) {
      int number = 0;
      for (const Filters& filters : every_filter()) {
        SCOPED_TRACE(filters.name);
        const Hid creation = chunked(chunk);
        filters.add(creation);
        Twin twin(opened, "d" + std::to_string(number++), extent, {.creation = creation});
        transfers(twin);
        leave(twin);
      }
    });
  }
  static void write_and_read(Twin& twin, Where where) {
    ASSERT_GE(twin.write(Memory(where, smooth(twin.bytes(), 1))), 0) << error_text();
    Memory read(where, twin.bytes(), 2);
    ASSERT_GE(twin.read(read), 0) << error_text();
    read.expect_contents();
  }
};

TEST_P(GpuChunks, WholeDatasetsThroughEveryFilter) {
  every_filter_over({400, 300}, {100, 75},
                    [](Twin& twin) { write_and_read(twin, Where::kDevice); });
}

TEST_P(GpuChunks, ChunksThatOverlapTheEdge) {
  every_filter_over({401, 299}, {128, 100},
                    [](Twin& twin) { write_and_read(twin, Where::kMiddle); });
}

TEST_P(GpuChunks, LargeChunks) {
  every_filter_over({1024, 1024}, {512, 1024},
                    [](Twin& twin) { write_and_read(twin, Where::kDevice); });
}

TEST_P(GpuChunks, PartsOfChunks) {
  every_filter_over({200, 300}, {64, 64}, [](Twin& twin) {
    unsigned seed = 1;
    for (const hsize_t row : {hsize_t{0}, hsize_t{33}, hsize_t{120}}) {
      const Hid part = select(twin.space(), {row, 11}, {}, {70, 222});
      const Memory written(Where::kDevice, smooth(70 * 222 * sizeof(int), seed++));
      ASSERT_GE(twin.write(written, simple({70, 222}), part), 0) << error_text();
      Memory read(Where::kDevice, 70 * 222 * sizeof(int), 50);
      ASSERT_GE(twin.read(read, simple({70, 222}), part), 0) << error_text();
      read.expect_contents();
    }
    Memory whole(Where::kDevice, twin.bytes(), 51);
    ASSERT_GE(twin.read(whole), 0) << error_text();
    whole.expect_contents();
  });
}

TEST_P(GpuChunks, WholeChunksFromTheMiddleOfMemory) {
  every_filter_over({256, 256}, {64, 64}, [](Twin& twin) {
    const Hid part = select(twin.space(), {64, 128}, {}, {128, 64});
    const Hid memory_space = select(simple({300, 100}), {5, 7}, {}, {128, 64});
    Memory memory(Where::kDevice, smooth(300 * 100 * sizeof(int), 3));
    ASSERT_GE(twin.write(memory, memory_space, part), 0) << error_text();
    memory.put(smooth(300 * 100 * sizeof(int), 4));
    ASSERT_GE(twin.read(memory, memory_space, part), 0) << error_text();
    memory.expect_contents();
  });
}

TEST_P(GpuChunks, ADatasetGrowsStepByStep) {
  const Summary summary = run_and_compare([&](hid_t opened) {
    int number = 0;
    for (const Filters& filters : every_filter()) {
      SCOPED_TRACE(filters.name);
      for (const hsize_t rows_in_chunk : {1, 3}) {
        const Hid creation = chunked({rows_in_chunk, 1000});
        filters.add(creation);
        Twin twin(opened, "d" + std::to_string(number++), {0, 1000},
                  {.limits = {H5S_UNLIMITED, 1000}, .creation = creation});
        for (hsize_t step = 0; step < 10; ++step) {
          twin.resize(step + 1);
          const Hid row = select(twin.space(), {step, 0}, {}, {1, 1000});
          const Memory written(Where::kDevice,
                               smooth(1000 * sizeof(int), static_cast<unsigned>(step)));
          ASSERT_GE(twin.write(written, simple({1000}), row), 0) << error_text();
          Memory read(Where::kDevice, twin.bytes(), 2);
          ASSERT_GE(twin.read(read), 0) << error_text();
          read.expect_contents();
        }
        leave(twin);
      }
    }
  });
  EXPECT_EQ(summary.counter("errors"), 0);
}

TEST_P(GpuChunks, ReopenedAndOverwritten) {
  run_and_compare([&](hid_t opened) {
    const Hid creation = chunked({100, 100});
    H5Pset_deflate(creation, 2);
    Twin twin(opened, "d", {500, 300}, {.creation = creation});
    for (unsigned step = 0; step < 4; ++step) {
      ASSERT_GE(twin.write(Memory(Where::kDevice, smooth(twin.bytes(), step))), 0) << error_text();
      twin.close();
      twin.reopen(opened);
      Memory read(Where::kManaged, twin.bytes(), 2);
      ASSERT_GE(twin.read(read), 0) << error_text();
      read.expect_contents();
    }
    leave(twin);
  });
}

TEST_P(GpuChunks, WhatWasNeverWrittenReadsAsTheFillValue) {
  run_on_gpu([&] {
    const Hid opened = create(file());
    for (const bool in_chunks : {false, true}) {
      const Hid creation = in_chunks ? chunked({100}) : Hid(H5Pcreate(H5P_DATASET_CREATE));
      const int fill = 77;
      ASSERT_GE(H5Pset_fill_value(creation, H5T_NATIVE_INT, &fill), 0);
      const Hid dataset(H5Dcreate2(opened, in_chunks ? "chunks" : "line", H5T_NATIVE_INT,
                                   simple({1000}), H5P_DEFAULT, creation, H5P_DEFAULT));
      Memory read(Where::kDevice, 1000 * sizeof(int), 2);
      ASSERT_GE(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, read.get()), 0)
          << error_text();
      const std::vector<int> values(1000, fill);
      std::memcpy(read.contents().data(), values.data(), read.size());
      read.expect_contents();
    }
  });
}

// A chunk as it lies in the file.
TEST_P(GpuChunks, RawChunksAreRightOrRefused) {
  run_on_gpu([&] {
    const Hid opened = create(file());
    const Hid creation = chunked({1000});
    Twin twin(opened, "d", {4000}, {.creation = creation});
    const Bytes first = pattern(4000, 1);
    const Memory host(Where::kHost, first);
    const hsize_t at[] = {0, 1000, 2000};
    ASSERT_GE(H5Dwrite_chunk(twin.dataset(), H5P_DEFAULT, 0, &at[0], first.size(), host.get()), 0);
    const Memory written(Where::kDevice, 4000, 2);
    const herr_t stored =
        H5Dwrite_chunk(twin.dataset(), H5P_DEFAULT, 0, &at[1], written.size(), written.get());
    if (stored < 0) expect_refused(stored, "d");
    Memory read(Where::kDevice, 4000, 3);
    uint32_t mask = 0;
    const herr_t fetched = H5Dread_chunk(twin.dataset(), H5P_DEFAULT, &at[0], &mask, read.get());
    if (fetched < 0) {
      expect_refused(fetched, "d");
    } else {
      read.contents() = first;
    }
    read.expect_contents();
    ASSERT_GE(H5Dwrite_chunk(twin.dataset(), H5P_DEFAULT, 0, &at[2], first.size(), host.get()), 0)
        << error_text();
    Memory whole(Where::kHost, 16000, 4);
    ASSERT_GE(H5Dread(twin.dataset(), H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, whole.get()),
              0);
    const Bytes found = whole.now();
    const Bytes nothing(4000);
    const Bytes second = stored < 0 ? nothing : pattern(4000, 2);
    EXPECT_TRUE(std::equal(first.begin(), first.end(), found.begin()));
    EXPECT_TRUE(std::equal(second.begin(), second.end(), found.begin() + 4000));
    EXPECT_TRUE(std::equal(first.begin(), first.end(), found.begin() + 8000));
  });
}

GPU_WAYS_AND_NATIVE(GpuChunks);

}  // namespace
}  // namespace tidelane::testing
