// Files that get their name when they are whole (publish=atomic): what others find under the name, what the program itself finds, and
// which files are written in place all the same. Ends by a signal are in tests/faults.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "conformance/fixture.h"
#include "support/sanitizer.h"
#include "tidelane.h"

namespace tidelane::testing {
namespace {

namespace fs = std::filesystem;

ino_t inode_of(const std::string& path) {
  struct stat found{};
  return stat(path.c_str(), &found) == 0 ? found.st_ino : 0;
}

class Publish : public Conformance {
 public:
  void SetUp() override {
    Conformance::SetUp();
    folder_ = in_folder("out");
    fs::create_directory(folder_);
    name_ = folder_ + "/x.h5";
  }
  std::string hidden() const { return folder_ + "/.x.h5.unpublished"; }
  std::string kept() const { return folder_ + "/x.h5.unpublished"; }
  const std::string& name() const { return name_; }
  // An old file of that name.
  void make_old() {
    run_natively([&] { put(create(name_), "old", 9); });
    old_ = bytes_on_storage(name_);
    old_inode_ = inode_of(name_);
  }
  void expect_old() const {
    EXPECT_EQ(inode_of(name_), old_inode_);
    EXPECT_TRUE(bytes_on_storage(name_) == old_) << "the old file was changed";
  }
  void expect_new() const { EXPECT_NE(inode_of(name_), old_inode_); }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_))
      found.push_back(entry.path().filename().string());
    std::ranges::sort(found);
    return found;
  }
  using Names = std::vector<std::string>;
  // Written in place, and for that reason.
  void expect_in_place(const Summary& summary, const char* reason) const {
    EXPECT_EQ(summary.fallback(reason), 1) << reason;
    EXPECT_EQ(summary.counter("files_published"), 0);
  }

 private:
  std::string folder_;
  std::string name_;
  std::string old_;
  ino_t old_inode_ = 0;
};

TEST_P(Publish, TheNameShowsTheOldFileUntilTheNewOneIsClosed) {
  make_old();
  const Summary summary = run_deferring([&] {
    Hid opened = create(name());
    put(opened, "a", 1);
    expect_old();
    EXPECT_GE(H5Fflush(opened, H5F_SCOPE_GLOBAL), 0);
    expect_old();
    EXPECT_GE(H5Fclose(opened.release()), 0);
    if (!GetParam().close_deferred()) expect_new();
  });
  EXPECT_EQ(summary.counter("files_published"), 1);
  EXPECT_GT(summary.counter("lane_busy_ns"), 0);
  EXPECT_EQ(names(), Names{"x.h5"});
  expect_natively(name(), {{"a", 1}});
}

TEST_P(Publish, AFileThatWasNotThereIsNotThereUntilItIsClosed) {
  run_deferring([&] {
    for (const unsigned flags : {H5F_ACC_TRUNC, H5F_ACC_EXCL}) {
      const std::string path = name() + (flags == H5F_ACC_EXCL ? "excl" : "");
      Hid opened(H5Fcreate(path.c_str(), flags, H5P_DEFAULT, H5P_DEFAULT));
      ASSERT_TRUE(opened.valid()) << error_text();
      put(opened, "a", 1);
      EXPECT_FALSE(fs::exists(path));
      EXPECT_GE(H5Fclose(opened.release()), 0);
      expect_dataset(open(path, H5F_ACC_RDONLY), "a", 1);
      EXPECT_TRUE(fs::exists(path) || GetParam().close_deferred());
    }
  });
  EXPECT_EQ(names(), (Names{"x.h5", "x.h5excl"}));
  expect_natively(name(), {{"a", 1}});
  expect_natively(name() + "excl", {{"a", 1}});
}

TEST_P(Publish, ADeferredCloseIsPublishedWhenItIsStored) {
  if (!GetParam().close_deferred()) GTEST_SKIP() << "its close waits";
  make_old();
  run_deferring([&] {
    Hid opened = create(name());
    storage::hold();
    put(opened, "a", 1);
    EXPECT_GE(H5Fclose(opened.release()), 0);
    ASSERT_TRUE(storage::wait_held());
    expect_old();
    EXPECT_TRUE(fs::exists(hidden()));
    storage::release();
  });
  expect_new();
  expect_natively(name(), {{"a", 1}});
}

TEST_P(Publish, AnEventSetIsDoneWhenItsCloseIsPublished) {
  make_old();
  run_deferring([&] {
    const hid_t set = H5EScreate();
    Hid opened = create(name());
    storage::hold();
    put(opened, "a", 1);
    EXPECT_GE(H5Fclose_async(opened.release(), set), 0);
    size_t left = 0;
    hbool_t failed = true;
    EXPECT_GE(H5ESwait(set, 0, &left, &failed), 0);
    EXPECT_EQ(left, 1u);
    expect_old();
    storage::release();
    EXPECT_GE(H5ESwait(set, H5ES_WAIT_FOREVER, &left, &failed), 0);
    EXPECT_EQ(left, 0u);
    EXPECT_FALSE(failed);
    expect_new();
    EXPECT_GE(H5ESclose(set), 0);
  });
  expect_natively(name(), {{"a", 1}});
}

TEST_P(Publish, TheLastHandlePublishes) {
  make_old();
  run_deferring([&] {
    Hid opened = create(name());
    put(opened, "a", 1);
    Hid dataset(H5Dopen2(opened, "a", H5P_DEFAULT));
    Hid again = open(name());
    EXPECT_GE(H5Fclose(opened.release()), 0);
    expect_old();
    put(again, "b", 2);
    EXPECT_GE(H5Fclose(again.release()), 0);  // weakly: the dataset keeps it open
    expect_old();
    EXPECT_GE(H5Dclose(dataset.release()), 0);
    if (!GetParam().close_deferred()) expect_new();
  });
  expect_natively(name(), {{"a", 1}, {"b", 2}});
}

TEST_P(Publish, TheProgramFindsTheNewFileByItsName) {
  make_old();
  fs::create_symlink("x.h5", fs::path(name()).replace_filename("link.h5"));
  run_deferring([&] {
    Hid opened = create(name());
    put(opened, "a", 1);
    const std::string link = fs::path(name()).replace_filename("link.h5").string();
    const std::string folder = fs::path(name()).parent_path().string();
    for (const std::string& path : {name(), link, folder + "/../out/x.h5"}) {
      expect_dataset(open(path, H5F_ACC_RDONLY), "a", 1);
      EXPECT_GT(H5Fis_accessible(path.c_str(), H5P_DEFAULT), 0) << path;
      EXPECT_LT(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), 0) << path;
      EXPECT_LT(H5Fcreate(path.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT), 0) << path;
    }
    char given[PATH_MAX] = "";
    EXPECT_GT(H5Fget_name(opened, given, sizeof given), 0);
    EXPECT_EQ(name(), given);
    Hid other = create(folder + "/other.h5");
    EXPECT_GE(H5Lcreate_external("x.h5", "/a", other, "to", H5P_DEFAULT, H5P_DEFAULT), 0);
    expect_dataset(other, "to", 1);
    const Hid source(H5Pcreate(H5P_DATASET_CREATE));
    const hsize_t extent = kElements;
    const Hid space(H5Screate_simple(1, &extent, nullptr));
    EXPECT_GE(H5Pset_virtual(source, space, name().c_str(), "a", space), 0);
    const Hid made(
        H5Dcreate2(other, "virtual", H5T_NATIVE_INT, space, H5P_DEFAULT, source, H5P_DEFAULT));
    expect_dataset(other, "virtual", 1);
    expect_old();
  });
  EXPECT_EQ(names(), (Names{"link.h5", "other.h5", "x.h5"}));
  expect_natively(name(), {{"a", 1}});
}

TEST_P(Publish, AFileThatIsDeletedIsNotPublished) {
  make_old();
  const Summary summary = run([&] {
    Hid opened = create(name());
    put(opened, "a", 1);
    EXPECT_GE(H5Fdelete(name().c_str(), H5P_DEFAULT), 0) << error_text();
    EXPECT_TRUE(names().empty());
    expect_dataset(opened, "a", 1);
    EXPECT_GE(H5Fclose(opened.release()), 0) << error_text();
  });
  EXPECT_TRUE(names().empty());
  EXPECT_EQ(summary.counter("files_published"), 0);
}

// Whoever creates the name meets the lock as natively, but nothing is cut short.
TEST_P(Publish, ASecondProgramIsRefused) {
  make_old();
  const Gong made, tried;
  Child first(environment(), [&] {
    Hid opened = create(name());
    put(opened, "a", 1);
    made.ring();
    ASSERT_TRUE(tried.wait());
    EXPECT_GE(H5Fclose(opened.release()), 0);
  });
  ASSERT_TRUE(made.wait());
  Environment second = environment();
  second.erase("TIDELANE_SUMMARY");
  second.emplace("TIDELANE_SUMMARY", in_folder("second.%p"));
  Child child(second, [&] {
    for (const unsigned flags : {H5F_ACC_TRUNC, H5F_ACC_EXCL}) {
      if (flags == H5F_ACC_EXCL) fs::rename(name(), in_folder("away"));
      EXPECT_LT(H5Fcreate(name().c_str(), flags, H5P_DEFAULT, H5P_DEFAULT), 0);
      EXPECT_NE(error_text().find("unable to lock file, errno = 11"), std::string::npos)
          << error_text();
    }
    fs::rename(in_folder("away"), name());
    EXPECT_LT(H5Fcreate(hidden().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), 0);
    expect_old();
  });
  child.expect_success();
  tried.ring();
  first.expect_success();
  expect_natively(name(), {{"a", 1}});
  EXPECT_EQ(names(), Names{"x.h5"});
}

// Natively it would be cut short before its lock is looked at.
TEST_P(Publish, AFileThatAnotherProgramWritesIsLeftAlone) {
  make_old();
  const int writer = ::open(name().c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(flock(writer, LOCK_EX), 0);
  run([&] {
    ::close(writer);  // the lock is the test's
    EXPECT_LT(H5Fcreate(name().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), 0);
    EXPECT_NE(error_text().find("unable to lock file"), std::string::npos) << error_text();
  });
  expect_old();
  EXPECT_EQ(names(), Names{"x.h5"});
  // Who reads it does not stand in the way.
  ASSERT_EQ(flock(writer, LOCK_SH), 0);
  run([&] { put(create(name()), "a", 1); });
  expect_new();
  ::close(writer);
}

TEST_P(Publish, AnExclusiveCreateReplacesNothing) {
  run([&] {
    Hid opened(H5Fcreate(name().c_str(), H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT));
    put(opened, "a", 1);
    std::ofstream(name()) << "mine";
    const bool closed = H5Fclose(opened.release()) >= 0;
    // Told on stderr; but lanes may have stored all of it before the close.
    if (closed && GetParam().close_deferred()) return;
    EXPECT_FALSE(closed);
    EXPECT_NE(error_text().find("x.h5.unpublished"), std::string::npos) << error_text();
    EXPECT_NE(error_text().find("File exists"), std::string::npos) << error_text();
  });
  EXPECT_EQ(bytes_on_storage(name()), "mine");
  EXPECT_EQ(names(), (Names{"x.h5", "x.h5.unpublished"}));
  expect_natively(kept(), {{"a", 1}});
}

TEST_P(Publish, WhatTheOldFileHadIsKept) {
  make_old();
  ASSERT_EQ(chmod(name().c_str(), 0604), 0);
  const bool attributes = setxattr(name().c_str(), "user.note", "kept", 4, 0) == 0;
  run([&] {
    Hid opened = create(name());
    put(opened, "a", 1);
    EXPECT_EQ(chmod(name().c_str(), 0640), 0);  // meanwhile
    EXPECT_GE(H5Fclose(opened.release()), 0);
  });
  expect_new();
  struct stat found{};
  ASSERT_EQ(stat(name().c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0640u);
  if (!attributes) return;
  char note[8] = "";
  EXPECT_EQ(getxattr(name().c_str(), "user.note", note, sizeof note), 4);
  EXPECT_STREQ(note, "kept");
}

TEST_P(Publish, WhereItCannotBeReplacedAFileIsWrittenInPlace) {
  make_old();
  const auto rewrite = [&] { put(create(name()), "a", 1); };
  fs::create_hard_link(name(), in_folder("second name"));
  expect_in_place(run(rewrite), "publish_linked");
  EXPECT_EQ(inode_of(name()), inode_of(in_folder("second name")));
  fs::remove(in_folder("second name"));
  const std::string folder = fs::path(name()).parent_path().string();
  ASSERT_EQ(chmod(folder.c_str(), 01777), 0);
  expect_in_place(run(rewrite), "publish_folder");
  ASSERT_EQ(chmod(folder.c_str(), 0755), 0);
  ASSERT_EQ(mkdir(hidden().c_str(), 0755), 0);  // somebody else's
  expect_in_place(run(rewrite), "publish_folder");
  ASSERT_EQ(rmdir(hidden().c_str()), 0);
  if (geteuid() == 0) {
    ASSERT_EQ(chown(name().c_str(), 1, static_cast<gid_t>(-1)), 0);
    expect_in_place(run(rewrite), "publish_owner");
    ASSERT_EQ(chown(name().c_str(), 0, static_cast<gid_t>(-1)), 0);
  }
  expect_natively(name(), {{"a", 1}});
  EXPECT_EQ(run(rewrite).counter("files_published"), 1);
}

TEST_P(Publish, AReaderThatIsToFollowFindsTheFileWhenItMay) {
  run([&] {
    const Hid access(H5Pcreate(H5P_FILE_ACCESS));
    H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    Hid opened = create(name(), access);
    put(opened, "a", 1);
    EXPECT_FALSE(fs::exists(name()));
    EXPECT_GE(H5Fstart_swmr_write(opened), 0) << error_text();
    EXPECT_TRUE(fs::exists(name()));
    overwrite(opened, "a", 2);
  });
  expect_natively(name(), {{"a", 2}});
  EXPECT_EQ(names(), Names{"x.h5"});
  const Summary summary = run([&] {
    const Hid access(H5Pcreate(H5P_FILE_ACCESS));
    H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    const Hid opened(
        H5Fcreate(name().c_str(), H5F_ACC_TRUNC | H5F_ACC_SWMR_WRITE, H5P_DEFAULT, access));
    ASSERT_TRUE(opened.valid()) << error_text();
    put(opened, "b", 1);
  });
  expect_in_place(summary, "publish_swmr");
}

TEST_P(Publish, WhatHdf5CannotCreateLeavesNothing) {
  make_old();
  run([&] {
    const Hid access(H5Pcreate(H5P_FILE_ACCESS));
    const Hid creation(H5Pcreate(H5P_FILE_CREATE));
    H5Pset_libver_bounds(access, H5F_LIBVER_EARLIEST, H5F_LIBVER_V18);
    H5Pset_file_space_strategy(creation, H5F_FSPACE_STRATEGY_PAGE, true, 1);
    EXPECT_LT(H5Fcreate(name().c_str(), H5F_ACC_TRUNC, creation, access), 0);
    const std::string longest(NAME_MAX + 1, 'x');
    EXPECT_LT(H5Fcreate((name() + longest).c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), 0);
  });
  expect_old();
  EXPECT_EQ(names(), Names{"x.h5"});
}

TEST_P(Publish, NamesMayBeAsLongAsNamesMayBe) {
  const std::string folder = fs::path(name()).parent_path().string() + "/";
  const std::string longest(NAME_MAX, 'x');
  std::string another = longest;
  another.back() = 'y';
  run_deferring([&] {
    const Hid one = create(folder + longest), two = create(folder + another);
    put(one, "a", 1);
    put(two, "a", 2);
  });
  EXPECT_EQ(names(), (Names{longest, another}));
  expect_natively(folder + longest, {{"a", 1}});
  expect_natively(folder + another, {{"a", 2}});
}

// The program has heard that a write failed, and goes on: HDF5 cuts off what it could not write, and its flush succeeds.
TEST_P(Publish, AFileThatLacksWhatStorageRefusedStaysHidden) {
  make_old();
  run([&] {
    signal(SIGXFSZ, SIG_IGN);
    Hid opened = create(name());
    put(opened, "a", 1);
    EXPECT_GE(H5Fflush(opened, H5F_SCOPE_GLOBAL), 0);
    const Hid access(H5Pcreate(H5P_DATASET_XFER));
    EXPECT_GE(H5Pset_dxpl_disable_async_implicit(access, true), 0);
    const hsize_t extent = kElements;
    const Hid space(H5Screate_simple(1, &extent, nullptr));
    Hid dataset(
        H5Dcreate2(opened, "b", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    rlimit limit{};
    getrlimit(RLIMIT_FSIZE, &limit);
    const rlimit small{kElements * sizeof(int) + 10'000, limit.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    const std::vector<int> values = elements(2, kElements);
    EXPECT_LT(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, access, values.data()), 0);
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    EXPECT_GE(H5Dclose(dataset.release()), 0);
    EXPECT_GE(H5Ldelete(opened, "b", H5P_DEFAULT), 0);
    const herr_t closed = H5Fclose(opened.release());
    if (GetParam().close_deferred()) return;  // then it is told on stderr
    EXPECT_LT(closed, 0);
    EXPECT_NE(error_text().find(".x.h5.unpublished"), std::string::npos) << error_text();
  });
  expect_old();
  run([&] { put(create(name()), "c", 3); });  // and sweeps
  EXPECT_EQ(names(), Names{"x.h5"});
  expect_natively(name(), {{"c", 3}});
}

TEST_P(Publish, AFileHasASettingOfItsOwn) {
  make_old();
  Environment in_place = environment();
  in_place["TIDELANE_PUBLISH"] = "inplace";
  run(
      [&] {
        const Hid access(H5Pcreate(H5P_FILE_ACCESS));
        tidelane_publish_t how = TIDELANE_PUBLISH_ATOMIC;
        EXPECT_GE(tidelane_get_fapl_publish(access, &how), 0);
        EXPECT_EQ(how, TIDELANE_PUBLISH_AS_CONFIGURED);
        EXPECT_LT(tidelane_set_fapl_publish(access, static_cast<tidelane_publish_t>(3)), 0);
        EXPECT_GE(tidelane_set_fapl_publish(access, TIDELANE_PUBLISH_ATOMIC), 0);
        EXPECT_GE(tidelane_get_fapl_publish(access, &how), 0);
        EXPECT_EQ(how, TIDELANE_PUBLISH_ATOMIC);
        const Hid opened = create(name(), access);
        put(opened, "a", 1);
        expect_old();
        const std::string other = in_folder("other.h5");
        put(create(other), "a", 1);
        EXPECT_TRUE(fs::exists(other));
      },
      in_place);
  expect_new();
}

// HDF5 opens a file before it creates it, to compare it with others: one that is closed, and still on its way, is not to suffer from that.
TEST_P(Publish, AFileOnItsWaySurvivesWhoeverOnlyLooksAtIt) {
  if (!GetParam().close_deferred()) GTEST_SKIP() << "its close waits";
  run_deferring([&] {
    Hid opened = create(name());
    storage::hold();
    put(opened, "a", 1);
    EXPECT_GE(H5Fclose(opened.release()), 0);
    ASSERT_TRUE(storage::wait_held());
    storage::release_after(std::chrono::milliseconds(20));
    EXPECT_LT(H5Fcreate(name().c_str(), H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT), 0);
    const Hid access(H5Pcreate(H5P_FILE_ACCESS));
    const Hid creation(H5Pcreate(H5P_FILE_CREATE));
    H5Pset_libver_bounds(access, H5F_LIBVER_EARLIEST, H5F_LIBVER_V18);
    H5Pset_file_space_strategy(creation, H5F_FSPACE_STRATEGY_PAGE, true, 1);
    EXPECT_LT(H5Fcreate(name().c_str(), H5F_ACC_TRUNC, creation, access), 0);
  });
  expect_natively(name(), {{"a", 1}});
  EXPECT_EQ(names(), Names{"x.h5"});
}

TEST_P(Publish, WhatHdf5DoesNotGiveToReadersIsNotPublishedForThem) {
  make_old();
  run([&] {
    Hid opened = create(name());  // of a version that knows no such readers
    put(opened, "a", 1);
    EXPECT_LT(H5Fstart_swmr_write(opened), 0);
    expect_old();
    EXPECT_GE(H5Fclose(opened.release()), 0);
  });
  expect_natively(name(), {{"a", 1}});
}

// A filter that fails when the chunk cache is written: neither flush nor close can succeed, and the end of the library goes on all the same.
TEST_P(Publish, WhatHdf5CouldNotWriteIsNotPublished) {
  make_old();
  run([&] {
    static constexpr H5Z_filter_t kFailing = 500;
    const H5Z_class2_t failing{
        H5Z_CLASS_T_VERS,
        kFailing,
        1,
        1,
        "failing",
        nullptr,
        nullptr,
        [](unsigned flags, size_t, const unsigned*, size_t size, size_t*, void**) -> size_t {
          return (flags & H5Z_FLAG_REVERSE) != 0 ? size : 0;
        }};
    ASSERT_GE(H5Zregister(&failing), 0);
    const hid_t opened = create(name()).release();
    const hsize_t extent = 100;
    const Hid space(H5Screate_simple(1, &extent, nullptr));
    const Hid creation(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_chunk(creation, 1, &extent);
    H5Pset_filter(creation, kFailing, 0, 0, nullptr);
    const hid_t dataset =
        H5Dcreate2(opened, "a", H5T_NATIVE_INT, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    const std::vector<int> values = elements(1, 100);
    static_cast<void>(
        H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()));
    EXPECT_LT(H5Fclose(opened), 0);  // the dataset is left open
    expect_old();
  });
  expect_old();
}

// Scarce descriptors are no reason to cut the old file short.
TEST_P(Publish, WithoutDescriptorsAnOpenFails) {
  if (sanitized()) GTEST_SKIP() << "a sanitizer needs descriptors itself";
  make_old();
  run([&] {
    put(create(in_folder("other.h5")), "a", 1);  // what is loaded and opened once
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    const int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::close(next);
    int failed = 0;
    for (int more = 0; more < 12; ++more) {
      const rlimit few{static_cast<rlim_t>(next + more), limit.rlim_max};
      ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
      const hid_t opened = H5Fcreate(name().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
      ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
      expect_old();
      if (opened >= 0) {
        EXPECT_GE(H5Fclose(opened), 0);
        break;
      }
      EXPECT_NE(error_text().find("errno = 24"), std::string::npos) << error_text();
      ++failed;
    }
    EXPECT_GE(failed, 2);
  });
  EXPECT_EQ(names(), Names{"x.h5"});
}

// To a forked child the name is what it is to every other process.
TEST_P(Publish, AForkedChildFindsWhatOthersFind) {
  make_old();
  run([&] {
    Hid opened = create(name());
    put(opened, "a", 1);
    const Gong looked, published;
    const pid_t child = fork();
    if (child == 0) {
      const auto has = [&](const char* dataset) {
        const Hid again(H5Fopen(name().c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
        return again.valid() && H5Lexists(again, dataset, H5P_DEFAULT) > 0;
      };
      const bool old = has("old");
      looked.ring();
      const bool rung = published.wait();
      std::_Exit(old && rung && has("a") ? 0 : 1);
    }
    EXPECT_TRUE(looked.wait());
    EXPECT_GE(H5Fclose(opened.release()), 0);
    for (int i = 0; i < 2000 && fs::exists(hidden()); ++i) usleep(1000);
    published.ring();
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  });
  expect_natively(name(), {{"a", 1}});
}

// Of a link it is the link that is deleted, as natively.
TEST_P(Publish, DeletingALinkLeavesTheFile) {
  make_old();
  const std::string link = in_folder("link.h5");
  fs::create_symlink(name(), link);
  run([&] {
    Hid opened = create(link);
    put(opened, "a", 1);
    EXPECT_GE(H5Fdelete(link.c_str(), H5P_DEFAULT), 0) << error_text();
    EXPECT_FALSE(fs::is_symlink(link));
    expect_old();
  });
  expect_natively(name(), {{"a", 1}});
}

CONFORMANCE_WAYS(Publish, kAtomic, kAtomicDeferred);

}  // namespace
}  // namespace tidelane::testing
