// Closes that return while chunks of the file are compressed (close=deferred): whatever happens to the file next finds it closed.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "conformance/filtered_fixture.h"

namespace tidelane::testing {
namespace {

namespace fs = std::filesystem;

class LateClose : public Filtered {
 protected:
  bool may_be_late() const {
    return plugged() && GetParam().close_deferred() && !GetParam().automatic();
  }
  struct Writer {
    Writer(const std::string& where, int with) : Writer(where, with, create(where)) {}
    Writer(std::string where, int with, Hid opened)
        : path(std::move(where)), seed(with), file(std::move(opened)) {
      dataset = make(file, "d", 2 * kRows, 2 * kColumns);
    }
    std::string path;
    int seed;
    Hid file, dataset = Hid();
  };
  // Files that are made, written and closed; where a close need not wait, while the only lane is busy in another file.
  inline static int others = 0;
  void make_closed(std::vector<Writer> writers) {
    const hid_t other = create(in_folder("other" + std::to_string(others++)))
                            .release();  // its close would settle all
    std::optional<BusyLane> busy;
    if (may_be_late()) busy.emplace(other);
    for (Writer& writer : writers) {
      write(writer.dataset, writer.seed);
      writer.dataset = Hid();
      EXPECT_GE(H5Fclose(writer.file.release()), 0) << error_text();
    }
  }
  void make_closed(const std::string& path, int seed = 1) {
    std::vector<Writer> one;
    one.emplace_back(path, seed);
    make_closed(std::move(one));
  }
  static void expect_elements(hid_t location, int seed, const char* name = "d") {
    EXPECT_TRUE(read(location, name) == elements(seed, 4 * kChunk));
  }
  void expect_file(const std::string& path, int seed) {
    run_natively([&] { expect_elements(open(path, H5F_ACC_RDONLY), seed); });
  }
  // `late`: so many closes were, at least: others may find that lanes are done.
  void run_late(const std::function<void()>& scenario, int64_t late) {
    const Summary summary = run_filtering(4, scenario);
    if (!plugged() || GetParam().automatic()) return;
    EXPECT_GE(summary.counter("closes_late"), may_be_late() ? late : 0);
  }
};

TEST_P(LateClose, ManyClosesReturnAndTheEndOfTheProgramWritesAll) {
  run_late(
      [&] {
        std::vector<Writer> writers;
        for (int i = 0; i < 20; ++i) writers.emplace_back(in_folder("step" + std::to_string(i)), i);
        make_closed(std::move(writers));
      },
      20);
  for (int i = 0; i < 20; ++i) expect_file(in_folder("step" + std::to_string(i)), i);
}

TEST_P(LateClose, WhoOpensItAgainByAnyNameFindsItWhole) {
  run_late(
      [&] {
        make_closed(file());
        fs::create_hard_link(file(), in_folder("hard"));
        expect_elements(open(in_folder("hard"), H5F_ACC_RDONLY), 1);
        make_closed(in_folder("second"), 2);
        fs::create_symlink(in_folder("second"), in_folder("soft"));
        {
          const Hid opened = open(in_folder("soft"), H5F_ACC_RDWR);
          expect_elements(opened, 2);
          write(Hid(H5Dopen2(opened, "d", H5P_DEFAULT)), 3);
        }
        make_closed(in_folder("third"), 4);
        fs::rename(in_folder("third"), in_folder("renamed"));
        expect_elements(open(in_folder("renamed"), H5F_ACC_RDONLY), 4);
      },
      3);
  expect_file(file(), 1);
  expect_file(in_folder("second"), 3);
  expect_file(in_folder("renamed"), 4);
}

TEST_P(LateClose, AVirtualDatasetsSourceIsWhole) {
  run_late(
      [&] {
        make_closed(in_folder("source.h5"));
        const hsize_t extent[] = {2 * kRows, 2 * kColumns};
        const Hid space(H5Screate_simple(2, extent, nullptr));
        const Hid dcpl(H5Pcreate(H5P_DATASET_CREATE));
        EXPECT_GE(H5Pset_virtual(dcpl, space, in_folder("source.h5").c_str(), "d", space), 0);
        const Hid opened = create(file());
        const Hid dataset(
            H5Dcreate2(opened, "v", H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT));
        EXPECT_TRUE(read(dataset) == elements(1, 4 * kChunk));
      },
      1);
}

TEST_P(LateClose, AnExternalLinkLeadsToAWholeFile) {
  run_late(
      [&] {
        const Hid linking = create(file());
        EXPECT_GE(H5Lcreate_external("target.h5", "/d", linking, "link", H5P_DEFAULT, H5P_DEFAULT),
                  0);
        make_closed(in_folder("target.h5"));
        expect_elements(linking, 1, "link");
      },
      1);
}

TEST_P(LateClose, AnotherDriverFindsAWholeFile) {
  run_late(
      [&] {
        make_closed(file());
        const Hid fapl(H5Pcreate(H5P_FILE_ACCESS));
        EXPECT_GE(H5Pset_fapl_core(fapl, 1 << 16, false), 0);
        expect_elements(open(file(), H5F_ACC_RDONLY, fapl), 1);
      },
      1);
}

TEST_P(LateClose, ItIsCreatedOverDeletedAndAskedAbout) {
  run_late(
      [&] {
        make_closed(file(), 1);
        make_closed(file(), 2);
        EXPECT_GT(H5Fis_accessible(file().c_str(), H5P_DEFAULT), 0);
        make_closed(in_folder("gone"), 3);
        EXPECT_GE(H5Fdelete(in_folder("gone").c_str(), H5P_DEFAULT), 0) << error_text();
        make_closed(in_folder("only_new"), 4);
        const Hid fapl(H5Pcreate(H5P_FILE_ACCESS));
        H5E_BEGIN_TRY {
          EXPECT_LT(H5Fcreate(in_folder("only_new").c_str(), H5F_ACC_EXCL, H5P_DEFAULT, fapl), 0);
        }
        H5E_END_TRY
      },
      4);
  expect_file(file(), 2);
  expect_file(in_folder("only_new"), 4);
  EXPECT_FALSE(fs::exists(in_folder("gone")));
}

TEST_P(LateClose, NothingOfItIsOpenAndWhatIsOpenKeepsIt) {
  run_late(
      [&] {
        make_closed(in_folder("first"));
        EXPECT_EQ(H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL), 1);  // the other one
        Hid opened = create(file());
        const Hid dataset = make(opened, "d", 2 * kRows, 2 * kColumns);
        write(dataset, 1);
        opened = Hid();  // the dataset keeps it
        EXPECT_TRUE(read(dataset) == elements(1, 4 * kChunk));
        write(dataset, 2);
      },
      1);
  expect_file(in_folder("first"), 1);
  expect_file(file(), 2);
}

TEST_P(LateClose, TheLibraryClosesAndOpensAgain) {
  run_late(
      [&] {
        make_closed(file(), 1);
        EXPECT_GE(H5close(), 0);
        EXPECT_GE(H5open(), 0);
        expect_elements(open(file(), H5F_ACC_RDONLY), 1);
      },
      1);
}

TEST_P(LateClose, AForkFindsItClosed) {
  run_late(
      [&] {
        make_closed(file(), 1);
        const pid_t child = fork();
        if (child == 0) _exit(open(file(), H5F_ACC_RDONLY).valid() ? 0 : 1);
        int status = -1;
        EXPECT_EQ(waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
      },
      1);
  expect_file(file(), 1);
}

// HDF5's cache of external files keeps a file open that no identifier is left of.
TEST_P(LateClose, WhatACacheOfExternalFilesKeepsOpenIsClosedAsNatively) {
  const std::string kept = in_folder("kept.h5");
  run_late(
      [&] {
        {
          const Hid made = make(create(kept), "old", kRows, kColumns);
        }
        const Hid caching(H5Pcreate(H5P_FILE_ACCESS));
        EXPECT_GE(H5Pset_elink_file_cache_size(caching, 2), 0);
        std::vector<Writer> target, linking;
        linking.emplace_back(file(), 1, create(file(), caching));
        EXPECT_GE(H5Lcreate_external("kept.h5", "/old", linking[0].file, "link", H5P_DEFAULT,
                                     H5P_DEFAULT),
                  0);
        {
          const Hid through(H5Dopen2(linking[0].file, "link", H5P_DEFAULT));
        }
        target.emplace_back(kept, 2, open(kept, H5F_ACC_RDWR));
        make_closed(std::move(target));
        expect_elements(open(kept, H5F_ACC_RDWR), 2);
        make_closed(std::move(linking));  // and with it the other one
        const Hid anew(H5Fcreate(kept.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
        EXPECT_TRUE(anew.valid()) << error_text();
      },
      0);
  expect_file(file(), 1);
}

TEST_P(LateClose, AVirtualDatasetsSourceThatIsOpenBesideIsClosedAsNatively) {
  const std::string source = in_folder("source.h5");
  run_late(
      [&] {
        std::vector<Writer> writer;
        writer.emplace_back(source, 1);
        const hsize_t extent[] = {2 * kRows, 2 * kColumns};
        const Hid space(H5Screate_simple(2, extent, nullptr));
        const Hid dcpl(H5Pcreate(H5P_DATASET_CREATE));
        EXPECT_GE(H5Pset_virtual(dcpl, space, source.c_str(), "d", space), 0);
        const Hid opened = create(file());
        const Hid dataset(
            H5Dcreate2(opened, "v", H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT));
        read(dataset);
        make_closed(std::move(writer));
        const Hid again = open(source, H5F_ACC_RDWR);
        EXPECT_TRUE(again.valid()) << error_text();
        expect_elements(again, 1);
        make_closed(in_folder("another"), 2);
      },
      1);
  expect_file(source, 1);
}

TEST_P(LateClose, AMountedFileIsClosedWithTheOneItIsIn) {
  const std::string inner = in_folder("inner.h5");
  run_late(
      [&] {
        std::vector<Writer> outer;
        outer.emplace_back(file(), 1);
        std::optional<Hid> mounted = create(inner);
        {
          const Hid point(
              H5Gcreate2(outer[0].file, "point", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
        }
        EXPECT_GE(H5Fmount(outer[0].file, "point", *mounted, H5P_DEFAULT), 0) << error_text();
        make_closed(std::move(outer));
        mounted.reset();
        const Hid anew(H5Fcreate(inner.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
        EXPECT_TRUE(anew.valid()) << error_text();
      },
      0);
  expect_file(file(), 1);
}

// The dataset is in the other file, and HDF5 has it open until its chunks are there.
TEST_P(LateClose, ChunksOfAMountedFileDoNotKeepTheOneItIsInOpen) {
  const std::string inner = in_folder("inner.h5");
  run_late(
      [&] {
        std::optional<Hid> outer = create(file());
        {
          const Hid point(H5Gcreate2(*outer, "point", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
        }
        {
          const Hid mounted = create(inner);
          const Hid made = make(mounted, "d", 2 * kRows, 2 * kColumns);
          EXPECT_GE(H5Fmount(*outer, "point", mounted, H5P_DEFAULT), 0) << error_text();
        }
        const Hid beside = open(inner, H5F_ACC_RDWR);
        {
          const BusyLane busy(beside);
          write(Hid(H5Dopen2(*outer, "point/d", H5P_DEFAULT)), 2);
          storage::release();
          outer.reset();
        }
        const Hid anew(H5Fcreate(file().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
        EXPECT_TRUE(anew.valid()) << error_text();
        expect_elements(beside, 2);
      },
      0);
  expect_file(inner, 2);
}

INSTANTIATE_TEST_SUITE_P(Ways, LateClose,
                         ::testing::Values(kNative, kImplicit, kDeferredClose, kDeferredAll,
                                           kAutoDeferred),
                         [](const auto& way) { return way.param.name; });

}  // namespace
}  // namespace tidelane::testing
