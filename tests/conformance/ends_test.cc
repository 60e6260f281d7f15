// How programs end, and what is then in their files (docs/ends.md): by exit with files open, by _exit, SIGKILL, an
// exception or exec, by fork, by closing the library and opening it again, and with several libraries in one process.
#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "conformance/fixture.h"
#include "support/sanitizer.h"

namespace tidelane::testing {
namespace {

using namespace std::chrono_literals;

Hid latest() {
  Hid access(H5Pcreate(H5P_FILE_ACCESS));
  H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
  return access;
}

class Ends : public Conformance {
 public:
  // Runs the scenario, which ends the process in its own way, and gives its status.
  int status_of(const std::function<void()>& scenario) {
    Child child(environment(), [&] {
      const rlimit no_core{0, 0};
      setrlimit(RLIMIT_CORE, &no_core);
      scenario();
      ADD_FAILURE() << "it did not end";
    });
    return child.wait();
  }
  // A flushed dataset, and one that is pending when the process ends.
  hid_t leave_flushed_and_pending(hid_t access = H5P_DEFAULT) {
    const hid_t opened = create(file(), access).release();
    put(opened, "a", 1);
    EXPECT_GE(H5Fflush(opened, H5F_SCOPE_GLOBAL), 0);
    put(opened, "lost", 2);  // lingers
    return opened;
  }
};

TEST_P(Ends, ExitWithoutCloseKeepsEverything) {
  run_deferring([&] {
    const hid_t opened = create(file()).release();
    put(opened, "a", 1);
    ASSERT_GE(H5Gcreate2(opened, "left open", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), 0);
  });
  expect_natively(file(), {{"a", 1}});
}

TEST_P(Ends, ACloseThatIsRefusedForOpenObjectsChangesNothing) {
  const auto scenario = [&] {
    const Hid access(H5Pcreate(H5P_FILE_ACCESS));
    H5Pset_fclose_degree(access, H5F_CLOSE_SEMI);
    Hid opened = create(file(), access);
    put(opened, "a", 1);
    Hid dataset(H5Dopen2(opened, "a", H5P_DEFAULT));
    for (int i = 0; i < 2; ++i) {
      H5E_BEGIN_TRY { EXPECT_LT(H5Fclose(opened), 0); }
      H5E_END_TRY
      char name[512];
      EXPECT_GT(H5Fget_name(opened, name, sizeof name), 0) << error_text();
      EXPECT_GE(H5Fget_obj_count(opened, H5F_OBJ_ALL), 2) << error_text();
      put(opened, i == 0 ? "b" : "c", 2 + i);
      EXPECT_TRUE(Hid(H5Freopen(opened)).valid()) << error_text();
      EXPECT_GE(H5Fflush(opened, H5F_SCOPE_LOCAL), 0) << error_text();
    }
    overwrite(opened, "a", 4);
    dataset.reset();
    EXPECT_GE(H5Fclose(opened.release()), 0) << error_text();
  };
  run(scenario);
  expect_natively(file(), {{"a", 4}, {"b", 2}, {"c", 3}});
  run_natively(scenario);
}

// HDF5 holds metadata while it iterates, and flushes nothing then: what is iterated keeps the file open.
TEST_P(Ends, ACallbackOfAnIterationClosesTheLastIdentifierOfItsFile) {
  const auto scenario = [&] {
    put(create(file()), "a", 1);
    Hid opened = open(file());
    const Hid group(H5Gopen2(opened, "/", H5P_DEFAULT));
    opened.reset();
    put(group, "more", 4);  // HDF5 has not written what it iterates
    const auto closes = [](hid_t of, const char*, const H5L_info2_t*, void* times) -> herr_t {
      ++*static_cast<int*>(times);
      overwrite(of, "a", 2);
      Hid again(H5Iget_file_id(of));
      EXPECT_GE(H5Fclose(again.release()), 0) << error_text();
      EXPECT_EQ(H5Eget_num(H5E_DEFAULT), 0);
      return 0;
    };
    int times = 0;
    EXPECT_GE(H5Literate2(group, H5_INDEX_NAME, H5_ITER_INC, nullptr, closes, &times), 0)
        << error_text();
    EXPECT_EQ(times, 2);
    put(group, "b", 3);
    EXPECT_GE(H5Fflush(group, H5F_SCOPE_LOCAL), 0) << error_text();
  };
  const Contents contents{{"a", 2}, {"b", 3}, {"more", 4}};
  run_deferring(scenario);
  expect_natively(file(), contents);
  Environment journalled = environment();
  if (plugged()) journalled["TIDELANE_JOURNAL"] = "process";
  run(scenario, journalled);
  expect_natively(file(), contents);
}

// HDF5 refuses to create it there, counts an object that is not there from then on, and never closes the file; nor does it let the connector
// end.
TEST_P(Ends, AFileThatHdf5HasLostCountOfIsWholeWhenItsIdentifiersAreClosed) {
  const auto scenario = [&] {
    Hid opened = create(file());
    put(opened, "a", 1);
    const auto creates = [](hid_t of, const char*, const H5L_info2_t*, void*) -> herr_t {
      const hsize_t size = 4;
      const Hid space(H5Screate_simple(1, &size, nullptr));
      H5E_BEGIN_TRY {
        EXPECT_LT(H5Dcreate2(of, "b", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                  0);
      }
      H5E_END_TRY
      return 0;
    };
    EXPECT_GE(H5Literate2(opened, H5_INDEX_NAME, H5_ITER_INC, nullptr, creates, nullptr), 0)
        << error_text();
    put(opened, "c", 2);
    Hid again(H5Freopen(opened));
    EXPECT_GE(H5Fclose(again.release()), 0) << error_text();
    EXPECT_GE(H5Fclose(opened.release()), 0) << error_text();
    EXPECT_EQ(H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL), 0);
  };
  run_deferring(scenario);
  expect_natively(file(), {{"a", 1}, {"c", 2}});
  if (!plugged()) return;
  for (const char* setting : {"TIDELANE_JOURNAL=process", "TIDELANE_PUBLISH=atomic"}) {
    const std::string words = setting;
    Environment environment = this->environment();
    environment[words.substr(0, words.find('='))] = words.substr(words.find('=') + 1);
    run(scenario, environment);
    expect_natively(file(), {{"a", 1}, {"c", 2}});
  }
}

// Natively this one is refused; and may be tried again.
TEST_P(Ends, ACallbackOfAnIterationClosesOneOfSeveralOpensOfItsFile) {
  const auto scenario = [&] {
    put(create(file()), "a", 1);
    const Hid opened = open(file());
    Hid again = open(file());
    const auto closes = [](hid_t of, const char*, const H5L_info2_t*, void* other) -> herr_t {
      overwrite(of, "a", 2);
      H5E_BEGIN_TRY { EXPECT_LT(H5Fclose(*static_cast<hid_t*>(other)), 0); }
      H5E_END_TRY
      return 0;
    };
    hid_t other = again;
    EXPECT_GE(H5Literate2(opened, H5_INDEX_NAME, H5_ITER_INC, nullptr, closes, &other), 0)
        << error_text();
    put(opened, "b", 3);
    EXPECT_EQ(H5Iget_type(again), H5I_FILE);
    EXPECT_GE(H5Fclose(again.release()), 0) << error_text();
    put(opened, "c", 4);
  };
  run_deferring(scenario);
  expect_natively(file(), {{"a", 2}, {"b", 3}, {"c", 4}});
}

TEST_P(Ends, ExitWithoutWaitingForEventSetsKeepsEverything) {
  static const std::vector<int> values = elements(1, kElements);
  run_deferring([&] {
    const hid_t set = H5EScreate();
    const hid_t opened =
        H5Fcreate_async(file().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT, set);
    const hsize_t extent = kElements;
    const Hid space(H5Screate_simple(1, &extent, nullptr));
    const hid_t dataset = H5Dcreate_async(opened, "a", H5T_NATIVE_INT, space, H5P_DEFAULT,
                                          H5P_DEFAULT, H5P_DEFAULT, set);
    EXPECT_GE(
        H5Dwrite_async(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data(), set),
        0);
    EXPECT_GE(H5Dclose_async(dataset, set), 0);
    EXPECT_GE(H5Fclose_async(opened, set), 0);
  });
  expect_natively(file(), {{"a", 1}});
}

TEST_P(Ends, ExitRightAfterCloseKeepsEverything) {
  run_deferring([&] {
    for (int i = 0; i < 5; ++i) {
      Hid opened = create(in_folder("step" + std::to_string(i) + ".h5"));
      put(opened, "a", i);
      EXPECT_GE(H5Fclose(opened.release()), 0);
    }
  });
  for (int i = 0; i < 5; ++i)
    expect_natively(in_folder("step" + std::to_string(i) + ".h5"), {{"a", i}});
}

TEST_P(Ends, ForkedProcessesGoOnWithFilesOfTheirOwn) {
  const std::string childs = in_folder("child.h5");
  run_deferring([&] {
    const Hid opened = create(file());
    put(opened, "before", 1);
    const pid_t forked = fork();
    if (forked == 0) {
      Hid own = create(childs);
      put(own, "child", 2);
      const herr_t closed = H5Fclose(own.release());
      Hid again = open(childs);  // the child's lanes are new ones
      overwrite(again, "child", 3);
      const herr_t flushed = H5Fflush(again, H5F_SCOPE_GLOBAL);
      // As forked programs should: an exit() would end the parent's files, natively too.
      _exit(closed >= 0 && H5Fclose(again.release()) >= 0 && flushed >= 0 ? 0 : 1);
    }
    put(opened, "after", 4);
    int status = -1;
    ASSERT_EQ(waitpid(forked, &status, 0), forked);
    EXPECT_EQ(status, 0);
    expect_contents(opened, {{"before", 1}, {"after", 4}});
  });
  expect_natively(file(), {{"before", 1}, {"after", 4}});
}

class EndsWaiting : public Ends {};  // where flush and close wait

TEST_P(Ends, ForkedChildsOwnFileIsWholeAfterItsClose) {  // also where closes are deferred
  const std::string childs = in_folder("child.h5");
  run_deferring([&] {
    const Hid opened = create(file());
    put(opened, "before", 1);
    const pid_t forked = fork();
    if (forked == 0) {
      Hid own = create(childs);
      put(own, "child", 2);
      _exit(H5Fclose(own.release()) >= 0 ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(forked, &status, 0), forked);
    EXPECT_EQ(status, 0);
  });
  expect_natively(childs, {{"child", 2}});
  expect_natively(file(), {{"before", 1}});
}

TEST_P(Ends, ForkDuringADrainLeavesTheParentsFileWhole) {
  const Summary summary = run_deferring([&] {
    Hid opened = create(file());
    if (plugged()) storage::hold();
    put(opened, "a", 1);
    storage::release_after(50ms);
    EXPECT_GE(H5Fclose(opened.release()), 0);  // early, where closes are deferred
    const pid_t forked = fork();               // which waits for the drain
    const auto whole = static_cast<off_t>(kElements * sizeof(int));
    if (forked == 0) _exit(size_on_storage(file()) > whole ? 0 : 1);
    int status = -1;
    ASSERT_EQ(waitpid(forked, &status, 0), forked);
    EXPECT_EQ(status, 0) << "the child saw a file that was not whole";
  });
  if (plugged() && GetParam().close_deferred()) {
    EXPECT_EQ(summary.counter("waits_fork"), 1);
    EXPECT_GT(summary.counter("wait_fork_ns"), 0);
  }
  expect_natively(file(), {{"a", 1}});
}

constexpr int kLives = 20;

TEST_P(Ends, LibraryMayBeClosedAndOpenedAgain) {
  const Summary summary = run_deferring([&] {
    for (int life = 0; life < kLives; ++life) {
      Hid opened = life == 0 ? create(file()) : open(file());
      put(opened, "life" + std::to_string(life), life);
      if (life > 0) expect_dataset(opened, "life0", 0);
      if (life % 2 == 1) opened.reset();
      EXPECT_GE(H5close(), 0);
      opened.release();  // gone with its library
      H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    }
  });
  EXPECT_EQ(summary.counter("files_opened"), plugged() ? kLives : 0);
  Contents contents;
  for (int life = 0; life < kLives; ++life) contents["life" + std::to_string(life)] = life;
  expect_natively(file(), contents);
}

TEST_P(Ends, ForkManyTimesWithWritesUnderWay) {
  run_deferring([&] {
    Hid opened = create(file());
    for (int i = 0; i < 20; ++i) {
      put(opened, "d" + std::to_string(i), i, 300'000);  // lanes are at it
      const pid_t forked = fork();
      if (forked == 0) {
        Hid own = create(in_folder("child.h5"));
        put(own, "a", i);
        _exit(H5Fclose(own.release()) >= 0 ? 0 : 1);
      }
      int status = -1;
      ASSERT_EQ(waitpid(forked, &status, 0), forked);
      EXPECT_EQ(status, 0);
    }
    EXPECT_GE(H5Fclose(opened.release()), 0);
  });
  run_natively([&] {
    const Hid opened = open(file(), H5F_ACC_RDONLY);
    for (int i = 0; i < 20; ++i) expect_dataset(opened, "d" + std::to_string(i), i, 300'000);
  });
}

// Another copy of the library, as a Python wheel brings one, with functions and handles of its own.
class OtherLibrary {
 public:
  explicit OtherLibrary(const std::string& copy) {
    Dl_info info{};
    EXPECT_NE(dladdr(reinterpret_cast<void*>(&H5open), &info), 0);
    std::filesystem::copy_file(info.dli_fname, copy);
    handle_ = dlopen(copy.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    EXPECT_NE(handle_, nullptr) << dlerror();
  }
  template <typename Function>
  Function* get(Function&, const char* name) const {
    return reinterpret_cast<Function*>(dlsym(handle_, name));
  }

 private:
  void* handle_ = nullptr;
};

TEST_P(Ends, SeveralLibrariesInOneProcessShareFiles) {
  if (sanitized()) GTEST_SKIP() << "sanitizers do not allow a library with symbols of its own";
  const Summary summary = run_deferring([&] {
    const OtherLibrary other(in_folder("libhdf5-copy.so"));
    Hid opened = create(file());
    put(opened, "a", 1);
    EXPECT_GE(H5Fclose(opened.release()), 0);
    const auto open_there = other.get(H5Fopen, "H5Fopen");
    const auto copy_there = other.get(H5Ocopy, "H5Ocopy");
    const auto close_there = other.get(H5Fclose, "H5Fclose");
    ASSERT_TRUE(open_there != nullptr && copy_there != nullptr && close_there != nullptr);
    ASSERT_NE(open_there, &H5Fopen);
    const hid_t there = open_there(file().c_str(), H5F_ACC_RDWR, 0);
    ASSERT_GE(there, 0);
    EXPECT_GE(copy_there(there, "a", there, "b", 0, 0), 0);
    EXPECT_GE(close_there(there), 0);
    const Hid again = open(file());
    expect_contents(again, {{"a", 1}, {"b", 1}});
    put(again, "c", 3);
  });
  EXPECT_GE(summary.counter("files_opened") + summary.counter("files_adopted"), plugged() ? 3 : 0);
  expect_natively(file(), {{"a", 1}, {"b", 1}, {"c", 3}});
}

// What a flush promises holds against SIGKILL; what came after it may be lost, as from HDF5's own caches.
TEST_P(EndsWaiting, KilledAfterFlushKeepsWhatWasFlushed) {
  kill_when_rung(environment(), [&](const Gong&) { leave_flushed_and_pending(); });
  expect_natively(file(), {{"a", 1}});
}

// The newest format marks a file as open for writing; h5clear, or this property, takes the mark away.
TEST_P(EndsWaiting, KilledAfterFlushInTheNewestFormatKeepsWhatWasFlushed) {
  kill_when_rung(environment(), [&](const Gong&) { leave_flushed_and_pending(latest()); });
  run_natively([&] {
    EXPECT_LT(H5Fopen(file().c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), 0) << "it does not look open";
    const Hid access = latest();
    const hbool_t clear = true;
    ASSERT_GE(H5Pset(access, "clear_status_flags", &clear), 0);
    const Hid opened = open(file(), H5F_ACC_RDWR, access);
    expect_contents(opened, {{"a", 1}});
  });
}

TEST_P(EndsWaiting, UnderscoreExitKeepsWhatWasFlushed) {
  EXPECT_EQ(status_of([&] {
              leave_flushed_and_pending();
              _exit(0);
            }),
            0);
  expect_natively(file(), {{"a", 1}});
}

TEST_P(EndsWaiting, UnderscoreExitAfterCloseKeepsEverything) {
  EXPECT_EQ(status_of([&] {
              const hid_t opened = leave_flushed_and_pending();
              EXPECT_GE(H5Fclose(opened), 0);
              _exit(HasFailure() ? 1 : 0);
            }),
            0);
  expect_natively(file(), {{"a", 1}, {"lost", 2}});
}

// HDF5 opens a virtual dataset's source by itself: the program has nothing of it that it could flush.
TEST_P(EndsWaiting, UnderscoreExitKeepsWhatWasWrittenThroughAVirtualDatasetAndFlushed) {
  static constexpr hsize_t kMany =
      200'000;  // the source's sieve buffer, which HDF5 does not flush, holds fewer
  const std::string source = in_folder("source.h5");
  for (const hsize_t chunk : {hsize_t{0}, hsize_t{1000}}) {
    run([&] {
      const hsize_t extent = kMany;
      const Hid space(H5Screate_simple(1, &extent, nullptr));
      const Hid made = create(source), list(H5Pcreate(H5P_DATASET_CREATE));
      if (chunk != 0) {
        ASSERT_GE(H5Pset_chunk(list, 1, &chunk), 0);
      }
      const Hid dataset(
          H5Dcreate2(made, "a", H5T_NATIVE_INT, space, H5P_DEFAULT, list, H5P_DEFAULT));
      // So that its metadata, which HDF5 does not flush either, stays as it is.
      const std::vector<int> values = elements(2, kMany);
      ASSERT_GE(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
    });
    EXPECT_EQ(status_of([&] {
                const hsize_t extent = kMany;
                const Hid space(H5Screate_simple(1, &extent, nullptr));
                const hid_t opened = create(file()).release();
                const Hid list(H5Pcreate(H5P_DATASET_CREATE));
                ASSERT_GE(H5Pset_virtual(list, space, source.c_str(), "/a", space), 0);
                const hid_t dataset =
                    H5Dcreate2(opened, "v", H5T_NATIVE_INT, space, H5P_DEFAULT, list, H5P_DEFAULT);
                const std::vector<int> values = elements(1, kMany);
                ASSERT_GE(
                    H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()),
                    0);
                ASSERT_GE(H5Fflush(opened, H5F_SCOPE_GLOBAL), 0);
                _exit(HasFailure() ? 1 : 0);
              }),
              0);
    run_natively([&] { expect_dataset(open(source, H5F_ACC_RDONLY), "a", 1, kMany); });
  }
}

[[noreturn]] void fail_somewhere() { throw std::runtime_error("through main"); }

TEST_P(EndsWaiting, AnExceptionThatNobodyCatchesKeepsWhatWasFlushed) {
  const int status = status_of([&]() noexcept {
    leave_flushed_and_pending();
    fail_somewhere();
  });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) << status;
  expect_natively(file(), {{"a", 1}});
}

// exec ends a program as _exit does. Natively its descriptors go over to the next one, with the lock; ours do not.
TEST_P(EndsWaiting, ExecKeepsWhatWasFlushedAndPassesNothingOn) {
  const std::string look = plugged() ? "! ls -l /proc/self/fd | grep -F test.h5" : "true";
  EXPECT_EQ(status_of([&] {
              leave_flushed_and_pending();
              execl("/bin/sh", "sh", "-c", look.c_str(), nullptr);
            }),
            0);
  expect_natively(file(), {{"a", 1}});
}

// What was promised is whole. Of a file that was closed and is still draining nothing was.
class EndsDeferred : public Ends {};

TEST_P(EndsDeferred, WhoEndsWithoutDrainingLeavesNoLockBehind) {
  EXPECT_EQ(status_of([&] {
              Hid opened = create(file());
              storage::hold();
              put(opened, "a", 1);
              EXPECT_GE(H5Fclose(opened.release()), 0);
              _exit(HasFailure() ? 1 : 0);
            }),
            0);
  run_natively([&] {
    EXPECT_LT(H5Fopen(file().c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), 0) << "nothing was stored";
    const Hid fresh = create(file());
    put(fresh, "b", 2);
  });
  expect_natively(file(), {{"b", 2}});
}

// A flush with an event set is a promise, too, once it was waited for.
TEST_P(EndsDeferred, KilledAfterAFlushThatWasWaitedForKeepsWhatWasFlushed) {
  kill_when_rung(environment(), [&](const Gong&) {
    const hid_t opened = create(file()).release();
    put(opened, "a", 1);
    const hid_t set = H5EScreate();
    EXPECT_GE(H5Fflush_async(opened, H5F_SCOPE_GLOBAL, set), 0);
    size_t left = 0;
    hbool_t failed = true;
    EXPECT_GE(H5ESwait(set, H5ES_WAIT_FOREVER, &left, &failed), 0);
    EXPECT_FALSE(failed);
    put(opened, "lost", 2);
  });
  expect_natively(file(), {{"a", 1}});
}

TEST_P(EndsWaiting, KilledAfterCloseKeepsEverything) {
  kill_when_rung(environment(), [&](const Gong&) {
    Hid opened = create(file());
    put(opened, "a", 1);
    EXPECT_GE(H5Fclose(opened.release()), 0);
  });
  expect_natively(file(), {{"a", 1}});
}

// A session over a whole file of the newest format, killed after each number of requests. Natively the file is then
// refused, because it is marked as open; or it is as it was; or it is as it was to be.
class Killed : public Ends {
 public:
  static constexpr int kDatasets = 4;
  static std::string name(int i) { return "d" + std::to_string(i); }

  void make_whole_file() {
    run_natively([&] {
      const Hid opened = create(file(), latest());
      for (int i = 0; i < kDatasets; ++i) put(opened, name(i), i);
    });
  }
  // What the session does; every flush or close makes requests.
  void change(hid_t opened) {
    for (int i = 0; i < kDatasets; i += 2) {
      overwrite(opened, name(i), 100 + i);
      H5Fflush(opened, H5F_SCOPE_GLOBAL);
    }
    put(opened, "new", 200);
  }
  void expect_refused_or_whole() {
    run_natively([&] {
      const Hid opened(H5Fopen(file().c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
      if (!opened.valid()) {
        EXPECT_NE(error_text().find("file is already open"), std::string::npos) << error_text();
        return;
      }
      const int shift = H5Lexists(opened, "new", H5P_DEFAULT) > 0 ? 100 : 0;
      for (int i = 0; i < kDatasets; ++i)
        expect_dataset(opened, name(i), i % 2 == 0 ? shift + i : i);
      if (shift != 0) expect_dataset(opened, "new", 200);
    });
  }
};

TEST_P(Killed, MidwayTheFileNeverLooksCleanWithChangedContents) {
  bool finished = false;
  int requests = 0;
  for (; requests < 40 && !finished; ++requests) {
    SCOPED_TRACE(requests);
    make_whole_file();
    const std::string before = bytes_on_storage(file());
    const Gong stopped;  // before a request, or at the end
    const Gong ended;
    Child child(environment(), [&] {
      storage::hold(requests);
      std::thread([&] {
        if (storage::wait_held()) stopped.ring();
      }).detach();
      Hid opened = open(file(), H5F_ACC_RDWR, latest());
      change(opened);
      EXPECT_GE(H5Fclose(opened.release()), 0);
      EXPECT_GE(H5close(), 0);
      ended.ring();
      stopped.ring();
      pause();
    });
    ASSERT_TRUE(stopped.wait());
    child.kill();
    child.wait();
    finished = ended.rung();
    expect_refused_or_whole();
    EXPECT_TRUE(requests != 0 || bytes_on_storage(file()) == before);
  }
  EXPECT_TRUE(finished);
  EXPECT_GT(requests, 3) << "too few requests to stop between";
}

CONFORMANCE_WAYS(Ends, kNative, kImplicit, kDeferredClose, kDeferredAll);
CONFORMANCE_WAYS(EndsDeferred, kDeferredClose, kDeferredAll);
CONFORMANCE_WAYS(EndsWaiting, kNative, kImplicit, kAsyncName);
CONFORMANCE_WAYS(Killed, kImplicit, kDeferredClose, kDeferredAll, kAuto);

}  // namespace
}  // namespace tidelane::testing
