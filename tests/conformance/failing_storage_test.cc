// Storage that refuses bytes: nothing reports success over lost bytes, and what failed can be tried again.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "conformance/fixture.h"

namespace tidelane::testing {
namespace {

class FailingStorage : public Conformance {
 public:
  // The system refuses every byte beyond `bytes` of any file.
  static void limit_files(rlim_t bytes) {
    signal(SIGXFSZ, SIG_IGN);
    rlimit limit{};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  static void lift_limit() { limit_files(RLIM_INFINITY); }

  void expect_cause(const std::string& text, const char* cause) const {
    EXPECT_NE(text.find(file()), std::string::npos) << text;
    EXPECT_NE(text.find(cause), std::string::npos) << text;
  }
  // What the scenario prints on stderr, HDF5's own words included.
  std::string told(const std::function<void()>& scenario) {
    const std::string log = in_folder("stderr");
    Child child(environment(), [&] {
      ASSERT_NE(std::freopen(log.c_str(), "w", stderr), nullptr);
      scenario();
    });
    child.expect_success();
    EXPECT_GT(child.summary(summaries()).counter("errors"), 0);
    return bytes_on_storage(log);
  }
};

constexpr rlim_t kLittle = 16 * 1024;

class FailingWait : public FailingStorage {};

TEST_P(FailingWait, FlushFailsAndSaysWhichFileAndWhy) {
  const Summary summary = run([&] {
    const Hid opened = create(file());
    put(opened, "a", 1);
    limit_files(kLittle);
    for (int attempt = 0; attempt < 3; ++attempt) {
      EXPECT_LT(H5Fflush(opened, H5F_SCOPE_GLOBAL), 0);
      expect_cause(error_text(), "File too large");
    }
    lift_limit();
    EXPECT_GE(H5Fflush(opened, H5F_SCOPE_GLOBAL), 0) << error_text();
    expect_dataset(opened, "a", 1);
  });
  EXPECT_GT(summary.counter("bytes_deferred"), 0);
  EXPECT_GE(summary.counter("errors"), 3);
  expect_natively(file(), {{"a", 1}});
}

TEST_P(FailingWait, CloseFailsUntilTheBytesAreStored) {
  const Summary summary = run([&] {
    const hid_t opened = create(file()).release();
    put(opened, "a", 1);
    limit_files(kLittle);
    for (int attempt = 0; attempt < 3; ++attempt) {
      EXPECT_LT(H5Fclose(opened), 0);
      expect_cause(error_text(), "File too large");
    }
    lift_limit();
    EXPECT_GE(H5Fclose(opened), 0) << error_text();
    EXPECT_LE(H5Iis_valid(opened), 0);
  });
  EXPECT_GE(summary.counter("errors"), 3);
  expect_natively(file(), {{"a", 1}});
}

// HDF5 writes the last superblock while it closes, when the identifier has little left behind it. The second attempt
// reported success, and the file stayed marked as open for writing.
TEST_P(FailingWait, CloseFailsUntilTheLastSuperblockIsStored) {
  run([&] {
    const Hid access(H5Pcreate(H5P_FILE_ACCESS));
    H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    const hid_t opened = create(file(), access).release();
    put(opened, "a", 1);
    EXPECT_GE(H5Fflush(opened, H5F_SCOPE_GLOBAL), 0) << error_text();
    storage::fail_with(ENOSPC);
    for (int attempt = 0; attempt < 3; ++attempt) {
      EXPECT_LT(H5Fclose(opened), 0);
      expect_cause(error_text(), "No space left on device");
      EXPECT_GT(H5Iis_valid(opened), 0);
    }
    storage::fail_with(0);
    EXPECT_GE(H5Fclose(opened), 0) << error_text();
    EXPECT_LE(H5Iis_valid(opened), 0);
  });
  expect_natively(file(), {{"a", 1}});
}

TEST_P(FailingWait, ReadsSeeTheBytesThatCouldNotBeStored) {
  run([&] {
    const Hid opened = create(file());
    put(opened, "a", 1);
    limit_files(kLittle);
    EXPECT_LT(H5Fflush(opened, H5F_SCOPE_GLOBAL), 0);
    expect_dataset(opened, "a", 1);
    overwrite(opened, "a", 2);
    expect_dataset(opened, "a", 2);
    lift_limit();
  });
  expect_natively(file(), {{"a", 2}});
}

TEST_P(FailingWait, AFullFileSystemIsTriedAgainWhenThereIsRoom) {
  const std::string tiny = in_folder("tiny");
  std::filesystem::create_directory(tiny);
  // A mount of this process's own: it goes when the process goes.
  if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0 ||
      mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("none", tiny.c_str(), "tmpfs", 0, "size=2m") != 0) {
    GTEST_SKIP() << "only root can mount a small file system";
  }
  const std::string path = tiny + "/full.h5";
  const std::string filler = tiny + "/filler";
  constexpr size_t kMany = 300'000;  // 1.2 MB: more than fits beside the filler
  const Summary summary = run([&] {
    std::ofstream(filler) << std::string(1'400'000, 'x');
    const hid_t opened = create(path).release();
    put(opened, "a", 1, kMany);
    EXPECT_LT(H5Fflush(opened, H5F_SCOPE_GLOBAL), 0);
    EXPECT_NE(error_text().find("No space left on device"), std::string::npos) << error_text();
    EXPECT_LT(H5Fclose(opened), 0);
    EXPECT_NE(error_text().find(path), std::string::npos) << error_text();
    ASSERT_EQ(unlink(filler.c_str()), 0);
    EXPECT_GE(H5Fclose(opened), 0) << error_text();
  });
  EXPECT_GE(summary.counter("errors"), 2);
  run_natively([&] { expect_dataset(open(path, H5F_ACC_RDONLY), "a", 1, kMany); });
  umount2(tiny.c_str(), MNT_DETACH);
}

TEST_P(FailingWait, OneFailingFileDoesNotHarmAnother) {
  const std::string other = in_folder("other.h5");
  run([&] {
    const hid_t opened = create(file()).release();
    put(opened, "a", 1);
    const hid_t small = create(other).release();
    put(small, "b", 2, 16);
    limit_files(kLittle);
    EXPECT_LT(H5Fclose(opened), 0);
    EXPECT_GE(H5Fclose(small), 0) << error_text();
    lift_limit();
    EXPECT_GE(H5Fclose(opened), 0) << error_text();
  });
  expect_natively(file(), {{"a", 1}});
  run_natively([&] { expect_dataset(open(other, H5F_ACC_RDONLY), "b", 2, 16); });
}

class FailingDeferred : public FailingStorage {};

TEST_P(FailingDeferred, ExitTriesAgain) {
  const std::string text = told([&] {
    Hid opened = create(file());
    storage::fail_with(ENOSPC);
    put(opened, "a", 1);
    EXPECT_GE(H5Fclose(opened.release()), 0);
    EXPECT_TRUE(storage::wait_failed());
    Hid again = open(file());  // what could not be stored is still the file's content
    expect_dataset(again, "a", 1);
    EXPECT_LT(H5Fclose(again.release()), 0);  // it is known by now
    storage::fail_with(0);
  });
  EXPECT_EQ(text.find("at exit"), std::string::npos) << text;
  expect_natively(file(), {{"a", 1}});
}

TEST_P(FailingDeferred, ExitOverLostBytesSaysSo) {
  const std::string text = told([&] {
    Hid opened = create(file());
    storage::fail_with(ENOSPC);
    put(opened, "a", 1);
    EXPECT_GE(H5Fclose(opened.release()), 0);
  });
  EXPECT_NE(text.find("No space left on device"), std::string::npos) << text;
  EXPECT_NE(text.find(file()), std::string::npos) << text;
}

// A deferred close succeeded although the program would never hear of the failure again.
TEST_P(FailingDeferred, CloseTellsWhatIsKnownToHaveFailedAndMayBeRepeated) {
  run([&] {
    Hid opened = create(file());
    storage::fail_with(ENOSPC);
    put(opened, "a", 1, 1 << 20);  // so much that lanes begin at once
    EXPECT_TRUE(storage::wait_failed());
    const hid_t id = opened.release();
    EXPECT_LT(H5Fclose(id), 0);
    expect_cause(error_text(), "No space left on device");
    storage::fail_with(0);
    EXPECT_GE(H5Fclose(id), 0) << error_text();
  });
  run_natively([&] { expect_dataset(open(file(), H5F_ACC_RDONLY), "a", 1, 1 << 20); });
}

// HDF5 opens the old file for a moment, and failed with what could not be stored of it.
TEST_P(FailingDeferred, CreatingOverItKeepsNothingOfIt) {
  run([&] {
    limit_files(kLittle);
    Hid opened = create(file());
    put(opened, "a", 1);
    EXPECT_GE(H5Fclose(opened.release()), 0);
    opened = create(file());
    ASSERT_GE(opened, 0) << error_text();
    put(opened, "b", 2, 16);
    EXPECT_GE(H5Fclose(opened.release()), 0) << error_text();
  });
  run_natively([&] { expect_dataset(open(file(), H5F_ACC_RDONLY), "b", 2, 16); });
}

// A close that fails leaves its identifier, which kept the program from making the file anew.
TEST_P(FailingWait, CreatingOverAFileWhoseCloseWasRefusedWorks) {
  run([&] {
    limit_files(kLittle);
    const hid_t refused = create(file()).release();
    put(refused, "a", 1);
    EXPECT_LT(H5Fclose(refused), 0);
    Hid opened = create(file());
    ASSERT_GE(opened, 0) << error_text();
    put(opened, "b", 2, 16);
    EXPECT_GE(H5Fclose(opened.release()), 0) << error_text();
  });
  run_natively([&] { expect_dataset(open(file(), H5F_ACC_RDONLY), "b", 2, 16); });
}

// What was on storage stays there for those who have the file open.
TEST_P(FailingWait, AFileThatIsGivenUpIsNotCutShort) {
  run([&] {
    const hid_t one = create(file()).release();
    put(one, "a", 1);
    ASSERT_GE(H5Fflush(one, H5F_SCOPE_GLOBAL), 0);
    const Hid two = open(file());
    const int other = ::open(file().c_str(), O_RDONLY);
    struct stat before, after;
    ASSERT_EQ(fstat(other, &before), 0);
    limit_files(kLittle);
    put(one, "b", 2);
    EXPECT_LT(H5Fclose(one), 0);
    std::filesystem::remove(file());
    const Hid next = create(in_folder("next.h5"));
    ASSERT_EQ(fstat(other, &after), 0);
    EXPECT_GE(after.st_size, before.st_size);
    expect_dataset(two, "a", 1);
    close(other);
    lift_limit();
  });
}

// HDF5 came to such a file again after it had ended the connector, and crashed.
TEST_P(FailingStorage, ExitOverAFileThatIsOpenTwiceSaysSo) {
  const std::string text = told([&] {
    const hid_t one = create(file()).release();
    ASSERT_GE(open(file()).release(), 0);
    put(one, "a", 1);
    storage::fail_with(ENOSPC);
  });
  expect_cause(text, "No space left on device");
}

// Of several files only the first was named.
TEST_P(FailingStorage, ExitNamesEveryFileThatCouldNotBeStored) {
  const std::string text = told([&] {
    storage::fail_with(ENOSPC);
    for (const char* name : {"one.h5", "two.h5", "three.h5"}) {
      put(create(in_folder(name)).release(), "a", 1);
    }
  });
  for (const char* name : {"one.h5", "two.h5", "three.h5"}) {
    EXPECT_NE(text.find(in_folder(name)), std::string::npos) << name << "\n" << text;
  }
}

// HDF5 closes what a program left open and looks at no result.
TEST_P(FailingStorage, ExitOverAFailingCloseSaysSo) {
  const std::string text = told([&] {
    put(create(file()).release(), "a", 1);
    storage::follow([this](const storage::Call& call) {
      storage::Fault fault;
      if (call.kind == storage::Kind::kClose && call.path == file()) fault.error = EIO;
      return fault;
    });
  });
  expect_cause(text, "Input/output error");
}

// Event sets say it with the call that failed, in every way of working.
TEST_P(FailingStorage, EventSetNamesTheFailedCall) {
  const Summary summary = run([&] {
    const Hid opened = create(file());
    const hsize_t extent = kElements;
    const Hid space(H5Screate_simple(1, &extent, nullptr));
    const Hid dataset(
        H5Dcreate2(opened, "a", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    const Hid set(H5EScreate());
    limit_files(kLittle);
    const std::vector<int> values = elements(1, kElements);
    const unsigned before = __LINE__;
    EXPECT_GE(
        H5Dwrite_async(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data(), set),
        0);
    const unsigned after = __LINE__;
    hbool_t status = true;
    EXPECT_GE(H5ESget_err_status(set, &status), 0);
    EXPECT_FALSE(status);
    size_t in_progress = 0;
    hbool_t failed = false;
    EXPECT_GE(H5ESwait(set, H5ES_WAIT_FOREVER, &in_progress, &failed), 0);
    EXPECT_TRUE(failed);
    EXPECT_GE(H5ESget_err_status(set, &status), 0);
    EXPECT_TRUE(status);
    size_t errors = 0;
    EXPECT_GE(H5ESget_err_count(set, &errors), 0);
    ASSERT_EQ(errors, 1u);
    H5ES_err_info_t info{};
    size_t cleared = 0;
    ASSERT_GE(H5ESget_err_info(set, 1, &info, &cleared), 0);
    ASSERT_EQ(cleared, 1u);
    EXPECT_STREQ(info.api_name, "H5Dwrite_async");
    EXPECT_NE(std::string(info.api_args).find("H5T_NATIVE_INT"), std::string::npos)
        << info.api_args;
    EXPECT_NE(std::string(info.app_file_name).find("failing_storage_test.cc"), std::string::npos);
    EXPECT_TRUE(before < info.app_line_num && info.app_line_num < after) << info.app_line_num;
    EXPECT_EQ(info.op_ins_count, 0u);
    expect_cause(error_text(info.err_stack_id), "File too large");
    EXPECT_GE(H5ESfree_err_info(1, &info), 0);
    lift_limit();
    EXPECT_GE(H5Fflush(opened, H5F_SCOPE_GLOBAL), 0)
        << error_text();  // the bytes are kept for the next flush
  });
  EXPECT_GE(summary.counter("errors"), 1);
  expect_natively(file(), {{"a", 1}});
}

// Somebody else has cut it short: the native close fails when most of the file is gone. netCDF then asks for the names of what is open.
TEST_P(FailingWait, WhatACloseHasLeftOfAFileIsRefused) {
  run([&] {
    const hid_t opened = create(file()).release();
    put(opened, "a", 1);
    EXPECT_GE(H5Fflush(opened, H5F_SCOPE_GLOBAL), 0);
    ASSERT_EQ(truncate(file().c_str(), 100), 0);
    EXPECT_LT(H5Fclose(opened), 0);
    EXPECT_NE(error_text().find("cut the file short"), std::string::npos) << error_text();
    char name[64];
    hsize_t size = 0;
    EXPECT_LE(H5Iget_name(opened, name, sizeof name), 0);
    EXPECT_LE(H5Fget_name(opened, name, sizeof name), 0);
    EXPECT_LT(H5Fget_filesize(opened, &size), 0);
    EXPECT_LT(H5Gcreate2(opened, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), 0);
    EXPECT_LT(H5Dopen2(opened, "a", H5P_DEFAULT), 0);
    EXPECT_LE(H5Lexists(opened, "a", H5P_DEFAULT), 0);
    EXPECT_LT(H5Fflush(opened, H5F_SCOPE_GLOBAL), 0);
    EXPECT_LT(
        H5Acreate2(opened, "x", H5T_NATIVE_INT, H5Screate(H5S_SCALAR), H5P_DEFAULT, H5P_DEFAULT),
        0);
    EXPECT_GE(H5Fclose(opened), 0) << error_text();
  });
}

CONFORMANCE_WAYS(FailingWait, kImplicit, kAsyncName);
CONFORMANCE_WAYS(FailingDeferred, kDeferredClose, kDeferredAll);
CONFORMANCE_WAYS(FailingStorage, kImplicit, kDeferredClose, kDeferredAll, kAsyncName);

}  // namespace
}  // namespace tidelane::testing
