// Programs with compressed datasets, with all settings at their defaults: every index of chunks, several datasets in one
// call, files that are mounted, closed in any order, flushed, followed by readers, copied. What is in the files is what
// native HDF5 leaves there, and what native refuses is refused by the same call.
#include <algorithm>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "conformance/event_set.h"
#include "conformance/filtered_fixture.h"

namespace tidelane::testing {
namespace {

class Everyday : public FilteredData {
 public:
  static Hid make(hid_t location, const std::string& name, std::vector<hsize_t> extent,
                  std::vector<hsize_t> most = {}, int alloc_time = H5D_ALLOC_TIME_DEFAULT) {
    const Hid plan(H5Pcreate(H5P_DATASET_CREATE));
    const hsize_t chunk[] = {kRows, kColumns};
    H5Pset_chunk(plan, 2, chunk);
    H5Pset_shuffle(plan);
    H5Pset_deflate(plan, 1);
    const int fill = -7;
    H5Pset_fill_value(plan, H5T_NATIVE_INT, &fill);
    H5Pset_alloc_time(plan, static_cast<H5D_alloc_time_t>(alloc_time));
    const Hid space(H5Screate_simple(2, extent.data(), most.empty() ? nullptr : most.data()));
    Hid dataset(
        H5Dcreate2(location, name.c_str(), H5T_NATIVE_INT, space, H5P_DEFAULT, plan, H5P_DEFAULT));
    EXPECT_TRUE(dataset.valid()) << name << "\n" << error_text();
    return dataset;
  }
  void expect_as_natively(const std::function<void(const std::string& path)>& scenario,
                          const std::vector<std::string>& datasets, int64_t chunks) {
    FilteredData::expect_as_natively(scenario, datasets, chunks, environment());
  }
};

Hid access_list(int version) {
  Hid fapl(H5Pcreate(H5P_FILE_ACCESS));
  if (version == 1) H5Pset_libver_bounds(fapl, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
  return fapl;
}

// B-trees of both versions, fixed and extensible arrays, single chunks; allocated early, late, one by one.
TEST_P(Everyday, EveryIndexHasTheChunks) {
  const struct {
    const char* name;
    std::vector<hsize_t> extent, most;
  } shapes[] = {
      {"single", {kRows, kColumns}, {}},
      {"fixed", {3 * kRows + 5, 2 * kColumns + 9}, {}},
      {"one_open", {3 * kRows, 2 * kColumns + 9}, {H5S_UNLIMITED, 2 * kColumns + 9}},
      {"both_open", {3 * kRows + 5, 2 * kColumns}, {H5S_UNLIMITED, H5S_UNLIMITED}},
  };
  std::vector<std::string> names;
  for (const auto& shape : shapes) {
    for (int time = 0; time <= 3; ++time) names.push_back(shape.name + std::to_string(time));
  }
  for (const int version : {0, 1}) {
    expect_as_natively(
        [&](const std::string& path) {
          const Hid opened = create(path, access_list(version));
          for (const auto& shape : shapes) {
            for (int time = 0; time <= 3; ++time) {
              const std::string name = shape.name + std::to_string(time);
              Hid dataset = make(opened, name, shape.extent, shape.most, time);
              write(dataset, 1);
              EXPECT_GE(H5Dflush(dataset), 0);
              write(dataset, 2);  // other sizes: chunks move
              if (shape.most.empty()) continue;
              const hsize_t larger[] = {shape.extent[0] + kRows, shape.extent[1]};
              EXPECT_GE(H5Dset_extent(dataset, larger), 0);
              write(dataset, 3);
            }
          }
        },
        names, 100);
  }
}

TEST_P(Everyday, SeveralDatasetsInOneCall) {
  expect_as_natively(
      [&](const std::string& path) {
        const Hid opened = create(path);
        const Hid first = make(opened, "first", {2 * kRows, kColumns});
        const Hid second = make(opened, "second", {kRows + 3, kColumns});
        put(opened, "plain", 1);
        const Hid plain(H5Dopen2(opened, "plain", H5P_DEFAULT));
        const Hid part = make(opened, "part", {kRows, 2 * kColumns});
        for (int seed = 2; seed < 4; ++seed) {
          const std::vector<int> a = elements(seed, size_of(first)),
                                 b = elements(seed + 10, size_of(second)),
                                 c = elements(seed + 20, kElements), d = elements(seed + 30, kRows);
          const Hid one_column(H5Dget_space(part)), memory(H5Screate_simple(1, &kRows, nullptr));
          const hsize_t start[] = {0, 5}, count[] = {kRows, 1};
          H5Sselect_hyperslab(one_column, H5S_SELECT_SET, start, nullptr, count, nullptr);
          hid_t datasets[] = {first, plain, part, second};
          hid_t types[] = {H5T_NATIVE_INT, H5T_NATIVE_INT, H5T_NATIVE_INT, H5T_NATIVE_INT};
          hid_t memories[] = {H5S_ALL, H5S_ALL, memory, H5S_ALL};
          hid_t files[] = {H5S_ALL, H5S_ALL, one_column, H5S_ALL};
          const void* buffers[] = {a.data(), c.data(), d.data(), b.data()};
          EXPECT_GE(H5Dwrite_multi(4, datasets, types, memories, files, H5P_DEFAULT, buffers), 0)
              << error_text();
          std::vector<int> x(a.size()), y(b.size());
          hid_t filtered[] = {first, second};
          hid_t all[] = {H5S_ALL, H5S_ALL};
          void* into[] = {x.data(), y.data()};
          EXPECT_GE(H5Dread_multi(2, filtered, types, all, all, H5P_DEFAULT, into), 0)
              << error_text();
          EXPECT_TRUE(x == a && y == b);
        }
      },
      {"first", "second", "plain", "part"}, 8);
}

TEST_P(Everyday, SeveralDatasetsInOneExplicitCall) {
  expect_as_natively(
      [&](const std::string& path) {
        const Hid set(H5EScreate());
        const Hid opened = create(path);
        const Hid first = make(opened, "first", {2 * kRows, kColumns});
        const Hid second = make(opened, "second", {kRows, kColumns});
        std::vector<int> a = elements(1, size_of(first)), b = elements(2, size_of(second));
        hid_t datasets[] = {first, second};
        hid_t types[] = {H5T_NATIVE_INT, H5T_NATIVE_INT};
        hid_t all[] = {H5S_ALL, H5S_ALL};
        const void* buffers[] = {a.data(), b.data()};
        EXPECT_GE(H5Dwrite_multi_async(2, datasets, types, all, all, H5P_DEFAULT, buffers, set), 0)
            << error_text();
        EXPECT_EQ(wait(set, H5ES_WAIT_FOREVER), 0u);
        EXPECT_TRUE(read(first) == a && read(second) == b);
      },
      {"first", "second"}, 3);
}

// A part of a call that HDF5 refuses: nothing of it is written.
TEST_P(Everyday, OneRefusedDatasetFailsTheCall) {
  run([&] {
    const Hid opened = create(file());
    const Hid first = make(opened, "first", {kRows, kColumns});
    const Hid second = make(opened, "second", {kRows, kColumns});
    write(second, 7);
    const std::vector<int> values = elements(1, kChunk);
    const hsize_t too_few = 10;
    const Hid memory(H5Screate_simple(1, &too_few, nullptr));
    hid_t datasets[] = {first, second};
    hid_t types[] = {H5T_NATIVE_INT, H5T_NATIVE_INT};
    hid_t memories[] = {H5S_ALL, memory};
    hid_t files[] = {H5S_ALL, H5S_ALL};
    const void* buffers[] = {values.data(), values.data()};
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    EXPECT_LT(H5Dwrite_multi(2, datasets, types, memories, files, H5P_DEFAULT, buffers), 0);
    EXPECT_TRUE(read(second) == elements(7, kChunk));
    EXPECT_TRUE(read(first) == std::vector<int>(kChunk, -7));
    types[1] = H5T_C_S1;
    memories[1] = H5S_ALL;
    EXPECT_LT(H5Dwrite_multi(2, datasets, types, memories, files, H5P_DEFAULT, buffers), 0);
    EXPECT_TRUE(read(first) == std::vector<int>(kChunk, -7));
  });
}

TEST_P(Everyday, DatasetsThatHdf5DoesNotWriteTogetherAreRefused) {
  run([&] {
    const Hid opened = create(file()), other = create(in_folder("other.h5"));
    const Hid first = make(opened, "first", {kRows, 2 * kColumns});
    const Hid elsewhere = make(other, "first", {kRows, 2 * kColumns});
    const std::vector<int> values = elements(1, 2 * kChunk);
    hid_t types[] = {H5T_NATIVE_INT, H5T_NATIVE_INT};
    hid_t all[] = {H5S_ALL, H5S_ALL};
    const void* buffers[] = {values.data(), values.data()};
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    for (const hid_t second : {first.get(), elsewhere.get()}) {
      hid_t datasets[] = {first, second};
      EXPECT_LT(H5Dwrite_multi(2, datasets, types, all, all, H5P_DEFAULT, buffers), 0);
      EXPECT_TRUE(read(first) == std::vector<int>(2 * kChunk, -7));
    }
    std::vector<int> one(2 * kChunk), two(2 * kChunk);
    hid_t apart[] = {first, elsewhere};
    void* into[] = {one.data(), two.data()};
    EXPECT_LT(H5Dread_multi(2, apart, types, all, all, H5P_DEFAULT, into), 0);
  });
}

// Chunks of a dataset that was closed may still be on their way.
TEST_P(Everyday, ADatasetThatIsOpenedAgainHasItsNewAccessList) {
  run([&] {
    const Hid opened = create(file());
    write(make(opened, "d", {8 * kRows, kColumns}), 1);
    const Hid access(H5Pcreate(H5P_DATASET_ACCESS));
    EXPECT_GE(H5Pset_chunk_cache(access, 12'421, 64 << 20, 1.0), 0);
    const Hid again(H5Dopen2(opened, "d", access));
    const Hid has(H5Dget_access_plist(again));
    size_t slots = 0, bytes = 0;
    double preemption = 0;
    EXPECT_GE(H5Pget_chunk_cache(has, &slots, &bytes, &preemption), 0);
    EXPECT_EQ(slots, 12'421u);
    EXPECT_EQ(bytes, 64u << 20);
    EXPECT_EQ(preemption, 1.0);
    EXPECT_TRUE(read(again) == elements(1, 8 * kChunk));
  });
}

// Native HDF5 refuses another prefix of a dataset that is open, and this one is not.
TEST_P(Everyday, ADatasetThatIsOpenedAgainMayHaveAnotherPrefix) {
  run([&] {
    const Hid opened = create(file());
    write(make(opened, "d", {8 * kRows, kColumns}), 1);
    const Hid access(H5Pcreate(H5P_DATASET_ACCESS));
    EXPECT_GE(H5Pset_efile_prefix(access, "elsewhere"), 0);
    Hid again(H5Dopen2(opened, "d", access));
    EXPECT_TRUE(again.valid()) << error_text();
    write(again, 2);
    EXPECT_GE(again.reset(), 0);
    const Hid object(H5Oopen(opened, "d", H5P_DEFAULT));
    EXPECT_TRUE(object.valid()) << error_text();
    EXPECT_TRUE(read(object) == elements(2, 8 * kChunk));
    const Hid same(H5Dopen2(opened, "d", H5P_DEFAULT));
    EXPECT_TRUE(same.valid());
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    EXPECT_LT(H5Dopen2(opened, "d", access), 0);
  });
}

TEST_P(Everyday, AProgramIsAskedOnceWhereALinkLeads) {
  run([&] {
    const Hid opened = create(file()), main = create(in_folder("main.h5"));
    EXPECT_GE(H5Lcreate_external(file().c_str(), "d", main, "link", H5P_DEFAULT, H5P_DEFAULT), 0);
    EXPECT_GE(H5Lcreate_external(file().c_str(), "no", main, "no", H5P_DEFAULT, H5P_DEFAULT), 0);
    write(make(opened, "d", {8 * kRows, kColumns}), 1);
    int asked = 0;
    const H5L_elink_traverse_t count = [](const char*, const char*, const char*, const char*,
                                          unsigned* flags, hid_t, void* data) -> herr_t {
      *flags = H5F_ACC_RDWR;  // what created the file may have is refused
      ++*static_cast<int*>(data);
      return 0;
    };
    const Hid access(H5Pcreate(H5P_DATASET_ACCESS)), links(H5Pcreate(H5P_LINK_ACCESS));
    H5Pset_elink_cb(access, count, &asked);
    H5Pset_elink_cb(links, count, &asked);
    {
      const Hid again(H5Dopen2(main, "link", access));
      EXPECT_TRUE(again.valid()) << error_text();
      EXPECT_EQ(asked, 1);
      write(again, 2);
    }
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    EXPECT_LT(H5Oopen(main, "no", links), 0);
    EXPECT_EQ(asked, 2);
    write(Hid(H5Dopen2(opened, "d", H5P_DEFAULT)), 3);
    EXPECT_LT(H5Dopen2(main, "no", access), 0);
    EXPECT_EQ(asked, 3);
  });
}

// Growing shows what a chunk had beyond the array. H5Dwrite_chunk may have put something there, which natively a write of all that
// is in the array leaves alone.
TEST_P(Everyday, WhatAProgramPutBeyondTheArrayStays) {
  expect_as_natively(
      [&](const std::string& path) {
        const Hid created = create(path);
        const Hid dataset =
            make(created, "d", {kRows + kRows / 2, kColumns}, {H5S_UNLIMITED, H5S_UNLIMITED});
        std::vector<int> raw(kRows * kColumns);
        std::iota(raw.begin(), raw.end(), 5);
        const hsize_t edge[] = {kRows, 0};
        EXPECT_GE(
            H5Dwrite_chunk(dataset, H5P_DEFAULT, 3, edge, raw.size() * sizeof(int), raw.data()), 0);
        write(dataset, 2);
        const hsize_t grown[] = {2 * kRows, kColumns};
        EXPECT_GE(H5Dset_extent(dataset, grown), 0);
        write(make(created, "whole", {2 * kRows, kColumns}), 3);  // these chunks are still ours
      },
      {"d", "whole"}, 2);
}

TEST_P(Everyday, AMountedFileIsAsAnyOther) {
  const std::string child = in_folder("child.h5");
  run_natively([&] { make(create(child), "d", {kRows, kColumns}); });
  expect_as_natively(
      [&](const std::string& path) {
        Hid parent = create(path), mounted = open(child);
        const Hid group(H5Gcreate2(parent, "m", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
        EXPECT_GE(H5Fmount(parent, "m", mounted, H5P_DEFAULT), 0);
        Hid there(H5Dopen2(parent, "m/d", H5P_DEFAULT));
        write(there, 1);
        write(make(parent, "own", {kRows, kColumns}), 2);
        EXPECT_TRUE(read(parent, "m/d") == elements(1, kChunk));
        write(there, 3);
        EXPECT_GE(H5Fclose(mounted.release()), 0);
        write(there, 4);  // only its mount keeps the file open
        there.reset();
        EXPECT_TRUE(read(parent, "m/d") == elements(4, kChunk));
        EXPECT_GE(H5Funmount(parent, "m"), 0);
      },
      {"own"}, 3);
  run_natively([&] { EXPECT_TRUE(read(open(child), "d") == elements(4, kChunk)); });
}

TEST_P(Everyday, FilesAndDatasetsAreClosedInAnyOrder) {
  int number = 0;
  for (const H5F_close_degree_t degree : {H5F_CLOSE_WEAK, H5F_CLOSE_SEMI, H5F_CLOSE_STRONG}) {
    for (const bool file_first : {false, true}) {
      SCOPED_TRACE(std::to_string(degree) + (file_first ? ", file first" : ""));
      const std::string path = in_folder(std::to_string(number++) + ".h5");
      const bool refused = degree == H5F_CLOSE_SEMI && file_first;
      run([&] {
        H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
        const Hid fapl(H5Pcreate(H5P_FILE_ACCESS));
        H5Pset_fclose_degree(fapl, degree);
        Hid opened = create(path, fapl), again = open(path, H5F_ACC_RDWR, fapl);
        Hid dataset = make(opened, "d", {kRows, kColumns}),
            twice(H5Dopen2(again, "d", H5P_DEFAULT));
        write(dataset, 1);
        write(twice, 2);
        EXPECT_GE(H5Dclose(twice.release()), 0);
        EXPECT_GE(H5Fclose(again.release()), 0) << error_text();
        EXPECT_EQ(H5Fget_obj_count(opened, H5F_OBJ_ALL), 2);
        write(dataset, 3);
        if (file_first) {
          const hid_t id = opened.release();
          EXPECT_EQ(H5Fclose(id) < 0, refused);
          if (refused) opened = Hid(id);
          if (degree == H5F_CLOSE_WEAK) write(dataset, 4);
        }
        if (degree == H5F_CLOSE_STRONG && file_first) {
          EXPECT_EQ(H5Iis_valid(dataset), 0);
          static_cast<void>(dataset.release());
        } else {
          EXPECT_GE(H5Dclose(dataset.release()), 0);
        }
      });
      const int last = file_first && degree == H5F_CLOSE_WEAK ? 4 : 3;
      run_natively([&] { EXPECT_TRUE(read(open(path), "d") == elements(last, kChunk)); });
    }
  }
}

// Natively that costs a copy each time, and one filtering in the end.
TEST_P(Everyday, AProgramThatComesBackToItsChunksHasThemInHdf5sCache) {
  const Summary summary = run([&] {
    const Hid opened = create(file());
    const Hid dataset = make(opened, "d", {2 * kRows, 2 * kColumns});
    write(dataset, 0);
    for (int step = 1; step <= 50; ++step) {
      EXPECT_TRUE(read(dataset) == elements(step - 1, 4 * kChunk));
      write(dataset, step);
    }
  });
  if (plugged()) {
    EXPECT_LE(filtered(summary), 6 * 4);
    EXPECT_GE(summary.fallback("filter_cached"), 40);
    EXPECT_LE(summary.counter("chunks_deflated"), 8);
  }
  run_natively([&] { EXPECT_TRUE(read(open(file()), "d") == elements(50, 4 * kChunk)); });
}

// There the cache would be emptied each time.
TEST_P(Everyday, WhatIsFlushedInBetweenIsOurs) {
  const Summary summary = run([&] {
    const Hid opened = create(file());
    const Hid dataset = make(opened, "d", {2 * kRows, 2 * kColumns});
    for (int step = 1; step <= 20; ++step) {
      write(dataset, step);
      EXPECT_GE(step % 2 == 0 ? H5Fflush(opened, H5F_SCOPE_LOCAL) : H5Dflush(dataset), 0);
    }
  });
  if (plugged()) {
    EXPECT_GE(filtered(summary), 20 * 4);
    EXPECT_EQ(summary.fallback("filter_cached"), 0);
  }
}

TEST_P(Everyday, AReaderMayFollow) {
  expect_as_natively(
      [](const std::string& path) {
        const Hid opened = create(path, access_list(1));
        const Hid dataset = make(opened, "d", {2 * kRows, kColumns}, {H5S_UNLIMITED, kColumns});
        write(dataset, 1);
        EXPECT_GE(H5Fstart_swmr_write(opened), 0) << error_text();
        write(dataset, 2);  // in strict order from here on
        const hsize_t larger[] = {3 * kRows, kColumns};
        EXPECT_GE(H5Dset_extent(dataset, larger), 0);
        write(dataset, 3);
      },
      {"d"}, 2);
}

TEST_P(Everyday, OtherWaysToADatasetSeeWhatWasWritten) {
  const std::string other = in_folder("other.h5");
  run([&] {
    const Hid opened = create(file()), second = create(other);
    const Hid dataset = make(opened, "d", {2 * kRows, kColumns});
    EXPECT_GE(H5Lcreate_external(file().c_str(), "d", second, "link", H5P_DEFAULT, H5P_DEFAULT), 0);
    const Hid virtual_plan(H5Pcreate(H5P_DATASET_CREATE)), space(H5Dget_space(dataset));
    EXPECT_GE(H5Pset_virtual(virtual_plan, space, file().c_str(), "d", space), 0);
    const Hid view(
        H5Dcreate2(second, "view", H5T_NATIVE_INT, space, H5P_DEFAULT, virtual_plan, H5P_DEFAULT));
    write(dataset, 1);
    EXPECT_TRUE(read(second, "link") == elements(1, 2 * kChunk));
    write(dataset, 2);
    EXPECT_TRUE(read(view) == elements(2, 2 * kChunk));
    write(dataset, 3);
    EXPECT_GE(H5Ocopy(opened, "d", second, "copy", H5P_DEFAULT, H5P_DEFAULT), 0) << error_text();
    EXPECT_TRUE(read(second, "copy") == elements(3, 2 * kChunk));
    write(dataset, 4);
    hsize_t origin[2] = {9, 9}, size = 0;
    unsigned mask = 9;
    haddr_t address = HADDR_UNDEF;
    EXPECT_GE(H5Dget_chunk_info(dataset, space, 1, origin, &mask, &address, &size), 0)
        << error_text();
    EXPECT_TRUE(origin[0] == kRows && origin[1] == 0 && mask == 0 && size > 0);
    EXPECT_NE(address, HADDR_UNDEF);
  });
}

TEST_P(Everyday, HdfMayBeClosedAndStartedAgain) {
  expect_as_natively(
      [](const std::string& path) {
        const hid_t left_open = make(create(path), "d", {2 * kRows, kColumns}).release();
        write(left_open, 1);
        EXPECT_GE(H5close(), 0);
        EXPECT_GE(H5open(), 0);
        const Hid opened = open(path);
        EXPECT_TRUE(read(opened, "d") == elements(1, 2 * kChunk));
        write(make(opened, "e", {2 * kRows, kColumns}), 2);
      },
      {"d", "e"}, 2);
}

// By the call itself, with the errors that native HDF5 gives.
TEST_P(Everyday, WhatCannotBeWrittenIsRefusedAtOnce) {
  run_natively([&] { make(create(file()), "d", {2 * kRows, kColumns}); });
  const auto refused = [&] {
    std::string told;
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    const std::vector<int> values = elements(1, 4 * kChunk);
    const auto expect_refused = [&](herr_t result) {
      EXPECT_LT(result, 0);
      // Their last lines: HDF5's own names for what was wrong.
      std::string text = error_text();
      text.resize(text.rfind('\n', text.size() - 2) + 1);
      told += text;
    };
    {
      const Hid opened = open(file());
      const Hid dataset(H5Dopen2(opened, "d", H5P_DEFAULT));
      const hsize_t start[] = {kRows, 0}, count[] = {2 * kRows, kColumns};
      const Hid beyond(H5Dget_space(dataset)), line(H5Screate_simple(1, count, nullptr));
      H5Sselect_hyperslab(beyond, H5S_SELECT_SET, start, nullptr, count, nullptr);
      const auto put = [&](hid_t memory, hid_t space, const void* from) {
        return H5Dwrite(dataset, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, from);
      };
      expect_refused(put(H5S_ALL, H5S_ALL, nullptr));
      expect_refused(put(line, H5S_ALL, values.data()));
      expect_refused(put(H5S_ALL, beyond, values.data()));
      expect_refused(H5Dwrite(dataset, H5T_C_S1, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()));
    }
    const Hid opened = open(file(), H5F_ACC_RDONLY);
    const Hid dataset(H5Dopen2(opened, "d", H5P_DEFAULT));
    expect_refused(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()));
    EXPECT_TRUE(read(dataset) == std::vector<int>(2 * kChunk, -7));
    return told;
  };
  const std::string ours = in_folder("ours");
  run([&] {
    const std::string told = refused();
    std::FILE* out = std::fopen(ours.c_str(), "w");
    std::fputs(told.c_str(), out);
    std::fclose(out);
  });
  run_natively([&] { EXPECT_EQ(bytes_on_storage(ours), refused()); });
}

CONFORMANCE_WAYS(Everyday, kNative, kImplicit, kDeferredAll, kAuto, kAtomic);

}  // namespace
}  // namespace tidelane::testing
