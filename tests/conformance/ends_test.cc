// How programs end: by exit with files open, by fork, by SIGKILL, by closing the library and opening it again.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <thread>

#include "conformance/fixture.h"

namespace tidelane::testing {
namespace {

using namespace std::chrono_literals;

class Ends : public Conformance {
 public:
  // Runs the scenario in a process that is killed where it waits after ringing.
  void kill_when_rung(const Environment& environment,
                      const std::function<void(const Gong&)>& scenario) {
    const Gong gong;
    Child child(environment, [&] {
      scenario(gong);
      gong.ring();
      pause();
    });
    ASSERT_TRUE(gong.wait());
    child.kill();
    EXPECT_EQ(WTERMSIG(child.wait()), SIGKILL);
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

TEST_P(EndsWaiting, ForkedChildsOwnFileIsWholeAfterAWaitingClose) {
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
  run_deferring([&] {
    if (plugged()) storage::hold();
    Hid opened = create(file());
    put(opened, "a", 1);
    storage::release_after(50ms);
    EXPECT_GE(H5Fclose(opened.release()), 0);  // early, where closes are deferred
    const pid_t forked = fork();               // which waits for the drain
    if (forked == 0) _exit(bytes_on_storage(file()).find("HDF") != std::string::npos ? 0 : 1);
    int status = -1;
    ASSERT_EQ(waitpid(forked, &status, 0), forked);
    EXPECT_EQ(status, 0) << "the child saw a file that was not whole";
  });
  expect_natively(file(), {{"a", 1}});
}

TEST_P(Ends, LibraryMayBeClosedAndOpenedAgain) {
  const Summary summary = run_deferring([&] {
    for (int life = 0; life < 3; ++life) {
      Hid opened = life == 0 ? create(file()) : open(file());
      put(opened, "life" + std::to_string(life), life);
      if (life > 0) expect_dataset(opened, "life0", 0);
      if (life == 1) opened.reset();
      EXPECT_GE(H5close(), 0);
      opened.release();  // gone with its library
      H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    }
  });
  EXPECT_EQ(summary.counter("files_opened"), plugged() ? 3 : 0);
  expect_natively(file(), {{"life0", 0}, {"life1", 1}, {"life2", 2}});
}

// What a flush promises holds against SIGKILL; what came after it may be lost, as from HDF5's own caches.
TEST_P(EndsWaiting, KilledAfterFlushKeepsWhatWasFlushed) {
  kill_when_rung(environment(), [&](const Gong&) {
    const hid_t opened = create(file()).release();
    put(opened, "a", 1);
    EXPECT_GE(H5Fflush(opened, H5F_SCOPE_GLOBAL), 0);
    put(opened, "lost", 2);  // lingers
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
  static Hid latest() {
    Hid access(H5Pcreate(H5P_FILE_ACCESS));
    H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    return access;
  }
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
CONFORMANCE_WAYS(EndsWaiting, kNative, kImplicit, kAsyncName);
CONFORMANCE_WAYS(Killed, kImplicit, kDeferredClose, kDeferredAll);

}  // namespace
}  // namespace tidelane::testing
