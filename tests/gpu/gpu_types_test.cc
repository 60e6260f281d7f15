// GPU memory and what HDF5 itself has to look into: conversions, compounds, variable-length elements, layouts that are not
// the plugin's, attributes, transfer lists.
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "gpu/gpu_fixture.h"
#include "gpu/values.h"

namespace tidelane::testing {
namespace {

constexpr hsize_t kCount = 3000;

struct Pair {
  const char* name;
  hid_t file;
  hid_t memory;
};

Hid enumeration(hid_t base, int values) {
  Hid made(H5Tenum_create(base));
  for (int value = 0; value < values; ++value) {
    EXPECT_GE(H5Tenum_insert(made, ("v" + std::to_string(value)).c_str(), &value), 0);
  }
  return made;
}

Hid text(size_t size, H5T_str_t padding) {
  Hid made(H5Tcopy(H5T_C_S1));
  H5Tset_size(made, size);
  H5Tset_strpad(made, padding);
  return made;
}

class GpuTypes : public GpuTest {
 public:
  // Writes elements of one type into a dataset of another, reads them back as a third; contiguous, in chunks, filtered.
  void there_and_back(hid_t opened, const std::string& name, hid_t in_file, hid_t written,
                      hid_t read, Where where = Where::kDevice) {
    SCOPED_TRACE(name);
    for (int layout = 0; layout < 3; ++layout) {
      const Hid creation = chunked({kCount / 4});
      if (layout == 2) H5Pset_deflate(creation, 1);
      Twin twin(opened, name + std::to_string(layout), {kCount},
                {.type = in_file, .creation = layout == 0 ? H5P_DEFAULT : creation.get()});
      const Memory from(where, elements_of(written, kCount, 1));
      ASSERT_GE(twin.write(from, H5S_ALL, H5S_ALL, written), 0) << error_text();
      from.expect_contents();
      Memory to(where, elements_of(read, kCount, 2));
      ASSERT_GE(twin.read(to, H5S_ALL, H5S_ALL, read), 0) << error_text();
      to.expect_contents();
      // Every other element, in memory and in the file.
      const Hid some = select(simple({kCount}), {1}, {2}, {kCount / 3});
      const Memory again(where, elements_of(written, kCount, 3));
      ASSERT_GE(twin.write(again, some, some, written), 0) << error_text();
      Memory part(where, elements_of(read, kCount, 4));
      ASSERT_GE(twin.read(part, some, some, read), 0) << error_text();
      part.expect_contents();
      leave(twin);
    }
  }
};

TEST_P(GpuTypes, NumbersAreConverted) {
  run_and_compare([&](hid_t opened) {
    const std::vector<Pair> pairs{
        {"double from float", H5T_IEEE_F64LE, H5T_NATIVE_FLOAT},
        {"float from double", H5T_IEEE_F32LE, H5T_NATIVE_DOUBLE},
        {"big endian", H5T_STD_I32BE, H5T_NATIVE_INT},
        {"big endian double", H5T_IEEE_F64BE, H5T_NATIVE_DOUBLE},
        {"long from byte", H5T_STD_I64LE, H5T_NATIVE_SCHAR},
        {"byte from long", H5T_STD_I8LE, H5T_NATIVE_LLONG},
        {"unsigned from signed", H5T_STD_U32LE, H5T_NATIVE_INT},
        {"float from int", H5T_IEEE_F32LE, H5T_NATIVE_INT},
        {"int from float", H5T_STD_I32LE, H5T_NATIVE_FLOAT},
        {"same", H5T_STD_I32LE, H5T_NATIVE_INT},
    };
    for (const Pair& pair : pairs) {
      there_and_back(opened, pair.name, pair.file, pair.memory, pair.memory);
      there_and_back(opened, std::string(pair.name) + " managed", pair.file, pair.memory, pair.file,
                     Where::kManaged);
    }
  });
}

TEST_P(GpuTypes, Compounds) {
  run_and_compare([&](hid_t opened) {
    const Hid whole =
        compound({{"a", H5T_NATIVE_INT}, {"b", H5T_NATIVE_SHORT}, {"c", H5T_NATIVE_LLONG}});
    const Hid part = compound({{"b", H5T_NATIVE_SHORT}});
    const Hid wider =
        compound({{"b", H5T_NATIVE_INT}, {"c", H5T_NATIVE_INT}, {"a", H5T_NATIVE_LLONG}});
    const Hid with_holes =
        compound({{"a", H5T_NATIVE_INT}, {"b", H5T_NATIVE_SHORT}, {"c", H5T_NATIVE_LLONG}}, 10);
    const Hid with_more =
        compound({{"other", H5T_NATIVE_INT}, {"b", H5T_NATIVE_SHORT}, {"more", H5T_NATIVE_LLONG}});
    there_and_back(opened, "same", whole, whole, whole);
    there_and_back(opened, "part read", whole, whole, part);
    there_and_back(opened, "part written", whole, part, whole);
    there_and_back(opened, "converted", whole, wider, wider);
    there_and_back(opened, "holes", whole, with_holes, with_holes);
    there_and_back(opened, "holes in the file", with_holes, whole, whole);
    there_and_back(opened, "members that the file lacks", whole, whole, with_more);
  });
}

TEST_P(GpuTypes, ArraysEnumsAndStrings) {
  run_and_compare([&](hid_t opened) {
    const hsize_t shape[] = {3, 2};
    const Hid ints(H5Tarray_create2(H5T_NATIVE_INT, 2, shape));
    const Hid longs(H5Tarray_create2(H5T_STD_I64BE, 2, shape));
    there_and_back(opened, "array", ints, ints, ints);
    there_and_back(opened, "array converted", longs, ints, ints);
    const Hid one = enumeration(H5T_NATIVE_INT, 4);
    const Hid larger = enumeration(H5T_NATIVE_INT, 6);
    there_and_back(opened, "enum", one, one, one);
    there_and_back(opened, "enum converted", larger, one, larger);
    const Hid fixed = text(11, H5T_STR_NULLPAD);
    const Hid shorter = text(5, H5T_STR_NULLPAD);
    const Hid spaces = text(20, H5T_STR_SPACEPAD);
    there_and_back(opened, "text", fixed, fixed, fixed);
    there_and_back(opened, "text cut", shorter, fixed, fixed);
    there_and_back(opened, "text padded", spaces, fixed, spaces);
    const Hid blob(H5Tcreate(H5T_OPAQUE, 13));
    H5Tset_tag(blob, "blob");
    there_and_back(opened, "opaque", blob, blob, blob);
    there_and_back(opened, "bits", H5T_STD_B16LE, H5T_STD_B16LE, H5T_STD_B16LE);
  });
}

TEST_P(GpuTypes, NativelyStoredElementsThatTheProgramReadsConverted) {
  run_natively([&] {
    const Hid opened = create(file());
    put(opened, "d", 1, kElements);
  });
  run_on_gpu([&] {
    const Hid opened = open(file());
    const Hid dataset(H5Dopen2(opened, "d", H5P_DEFAULT));
    const std::vector<int> values = elements(1, kElements);
    Memory read(Where::kDevice, kElements * sizeof(double), 2);
    ASSERT_GE(H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, read.get()), 0)
        << error_text();
    const std::vector<double> expected(values.begin(), values.end());
    std::memcpy(read.contents().data(), expected.data(), read.size());
    read.expect_contents();
  });
}

// Elements that hold pointers into host memory mean nothing on a device.
class Refused : public GpuTypes {
 public:
  void expect_refused_both_ways(const std::string& name, const std::function<Hid()>& type) {
    for (const Where where : {Where::kDevice, Where::kPooled}) {
      for (const bool in_chunks : {false, true}) {
        run_on_gpu([&] {
          const Hid opened = create(file());
          const Hid made = type();
          const Hid creation = chunked({10});
          const Hid dataset(H5Dcreate2(opened, name.c_str(), made, simple({40}), H5P_DEFAULT,
                                       in_chunks ? creation.get() : H5P_DEFAULT, H5P_DEFAULT));
          ASSERT_TRUE(dataset.valid()) << error_text();
          Memory memory(where, Bytes(40 * H5Tget_size(made)));
          expect_refused(H5Dwrite(dataset, made, H5S_ALL, H5S_ALL, H5P_DEFAULT, memory.get()),
                         name);
          memory.expect_contents();
          expect_refused(H5Dread(dataset, made, H5S_ALL, H5S_ALL, H5P_DEFAULT, memory.get()), name);
          memory.expect_contents();
          Bytes host(40 * H5Tget_size(made));
          EXPECT_GE(H5Dread(dataset, made, H5S_ALL, H5S_ALL, H5P_DEFAULT, host.data()), 0)
              << error_text();
          put(opened, "after", 1);
        });
        expect_natively(file(), {{"after", 1}});
      }
    }
  }
};

TEST_P(Refused, StringsOfVariableLength) {
  expect_refused_both_ways("names of rows", [] { return text(H5T_VARIABLE, H5T_STR_NULLTERM); });
}
TEST_P(Refused, SequencesOfVariableLength) {
  expect_refused_both_ways("ragged rows", [] { return Hid(H5Tvlen_create(H5T_NATIVE_INT)); });
}
TEST_P(Refused, CompoundsWithStringsOfVariableLength) {
  expect_refused_both_ways("records", [] {
    return compound({{"a", H5T_NATIVE_INT}, {"b", text(H5T_VARIABLE, H5T_STR_NULLTERM)}});
  });
}
TEST_P(Refused, ArraysOfSequences) {
  expect_refused_both_ways("arrays of rows", [] {
    const hsize_t shape = 2;
    return Hid(H5Tarray_create2(Hid(H5Tvlen_create(H5T_NATIVE_INT)), 1, &shape));
  });
}
TEST_P(Refused, References) {
  expect_refused_both_ways("links", [] { return Hid(H5Tcopy(H5T_STD_REF)); });
}
TEST_P(Refused, ReferencesToRegionsAreRefusedOrRight) {
  for (const bool regions : {true, false}) {
    run_on_gpu([&] {
      const Hid opened = create(file());
      Twin twin(opened, "links", {40}, {.type = regions ? H5T_STD_REF_DSETREG : H5T_STD_REF_OBJ});
      Memory memory(Where::kDevice, Bytes(twin.bytes()));
      const herr_t written = twin.write(memory);
      if (written < 0) expect_refused(written, "links");
      const herr_t read = twin.read(memory);
      if (read < 0) expect_refused(read, "links");
      memory.expect_contents();
      put(opened, "after", 1);
    });
    expect_natively(file(), {{"after", 1}});
  }
}

// Layouts that are HDF5's business alone.
class GpuLayouts : public GpuTypes {
 public:
  void right_or_refused(const std::function<Hid(hid_t opened)>& creation) {
    run_and_compare([&](hid_t opened) {
      const Hid list = creation(opened);
      Twin twin(opened, "strange", {kCount}, {.creation = list});
      for (const Where where :
           {Where::kHost, Where::kDevice, Where::kManaged, Where::kHost, Where::kPooled}) {
        const herr_t written =
            twin.write(Memory(where, twin.bytes(), static_cast<unsigned>(where)));
        if (written < 0) expect_refused(written, "strange");
        Memory memory(where, twin.bytes(), 20);
        const herr_t read = twin.read(memory);
        if (read < 0) expect_refused(read, "strange");
        memory.expect_contents();
        const Hid some = select(simple({kCount}), {1}, {2}, {kCount / 3});
        const herr_t partly = twin.write(Memory(where, twin.bytes(), 21), some, some);
        if (partly < 0) expect_refused(partly, "strange");
      }
      leave(twin);
    });
  }
};

TEST_P(GpuLayouts, Compact) {
  right_or_refused([](hid_t) {
    Hid list(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_layout(list, H5D_COMPACT);
    return list;
  });
}

TEST_P(GpuLayouts, External) {
  const std::string path = in_folder("external.bin");
  right_or_refused([&](hid_t) {
    Hid list(H5Pcreate(H5P_DATASET_CREATE));
    EXPECT_GE(H5Pset_external(list, path.c_str(), 0, kCount * sizeof(int)), 0);
    return list;
  });
}

TEST_P(GpuLayouts, Virtual) {
  right_or_refused([](hid_t opened) {
    Hid list(H5Pcreate(H5P_DATASET_CREATE));
    for (const hsize_t half : {0, 1}) {
      const std::string name = "half" + std::to_string(half);
      const Hid source(H5Dcreate2(opened, name.c_str(), H5T_NATIVE_INT, simple({kCount / 2}),
                                  H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
      const Hid place = select(simple({kCount}), {half * kCount / 2}, {}, {kCount / 2});
      EXPECT_GE(H5Pset_virtual(list, place, ".", name.c_str(), simple({kCount / 2})), 0);
    }
    return list;
  });
}

TEST_P(GpuLayouts, EarlyAllocationAndFillTimes) {
  for (const H5D_fill_time_t time :
       {H5D_FILL_TIME_ALLOC, H5D_FILL_TIME_NEVER, H5D_FILL_TIME_IFSET}) {
    for (const H5D_alloc_time_t when :
         {H5D_ALLOC_TIME_EARLY, H5D_ALLOC_TIME_LATE, H5D_ALLOC_TIME_INCR}) {
      for (const bool in_chunks : {false, true}) {
        if (!in_chunks && when == H5D_ALLOC_TIME_INCR) continue;
        right_or_refused([&](hid_t) {
          Hid list = in_chunks ? chunked({500}) : Hid(H5Pcreate(H5P_DATASET_CREATE));
          H5Pset_fill_time(list, time);
          H5Pset_alloc_time(list, when);
          return list;
        });
      }
    }
  }
}

// Drivers that the plugin leaves to HDF5.
TEST_P(GpuLayouts, OtherDriversAreRightOrRefused) {
  for (const bool core : {true, false}) {
    const std::string path = in_folder(core ? "core.h5" : "family-%d.h5");
    run_on_gpu([&] {
      const Hid access(H5Pcreate(H5P_FILE_ACCESS));
      ASSERT_GE(core ? H5Pset_fapl_core(access, 1 << 20, true)
                     : H5Pset_fapl_family(access, 1 << 20, H5P_DEFAULT),
                0);
      const Hid opened = create(path, access);
      Twin twin(opened, "strange", {kCount});
      const herr_t written = twin.write(Memory(Where::kDevice, twin.bytes(), 1));
      if (written < 0) expect_refused(written, "strange");
      Memory read(Where::kDevice, twin.bytes(), 2);
      const herr_t result = twin.read(read);
      if (result < 0) expect_refused(result, "strange");
      read.expect_contents();
    });
  }
}

TEST_P(GpuLayouts, Attributes) {
  run_on_gpu([&] {
    const Hid opened = create(file());
    const Hid attribute(
        H5Acreate2(opened, "strange", H5T_NATIVE_INT, simple({50}), H5P_DEFAULT, H5P_DEFAULT));
    const Bytes first = pattern(200, 1);
    ASSERT_GE(H5Awrite(attribute, H5T_NATIVE_INT, first.data()), 0);
    for (const Where where : {Where::kDevice, Where::kManaged, Where::kPooled}) {
      const Memory written(where, 200, 2);
      const herr_t stored = H5Awrite(attribute, H5T_NATIVE_INT, written.get());
      if (stored < 0) expect_refused(stored, "strange");
      Memory read(where, 200, 3);
      const herr_t fetched = H5Aread(attribute, H5T_NATIVE_INT, read.get());
      if (fetched < 0) {
        expect_refused(fetched, "strange");
      } else {
        read.contents() = stored < 0 ? first : written.now();
      }
      read.expect_contents();
    }
  });
}

// What is on the transfer list counts for device memory, too.
TEST_P(GpuLayouts, TransformsAndSmallConversionBuffers) {
  run_and_compare([&](hid_t opened) {
    Twin twin(opened, "d", {kCount}, {.type = H5T_IEEE_F64LE});
    const Hid list(H5Pcreate(H5P_DATASET_XFER));
    ASSERT_GE(H5Pset_buffer(list, 64, nullptr, nullptr), 0);
    const Memory written(Where::kDevice, elements_of(H5T_NATIVE_FLOAT, kCount, 1));
    ASSERT_GE(twin.write(written, H5S_ALL, H5S_ALL, H5T_NATIVE_FLOAT, list), 0) << error_text();
    leave(twin);
    const Hid other(H5Pcreate(H5P_DATASET_XFER));
    ASSERT_GE(H5Pset_data_transform(other, "2*x+1"), 0);
    const Hid dataset(H5Dcreate2(opened, "transformed", H5T_NATIVE_DOUBLE, simple({100}),
                                 H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    std::vector<double> values(100);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
    Bytes bytes(800);
    std::memcpy(bytes.data(), values.data(), bytes.size());
    const Memory plain(Where::kDevice, bytes);
    ASSERT_GE(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, other, plain.get()), 0)
        << error_text();
    plain.expect_contents();
    Memory read(Where::kDevice, 800, 3);
    ASSERT_GE(H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, read.get()), 0)
        << error_text();
    for (double& value : values) value = 2 * value + 1;
    std::memcpy(read.contents().data(), values.data(), read.size());
    read.expect_contents();
  });
}

GPU_WAYS_AND_NATIVE(GpuTypes);
GPU_WAYS(Refused);
GPU_WAYS_AND_NATIVE(GpuLayouts);

}  // namespace
}  // namespace tidelane::testing
