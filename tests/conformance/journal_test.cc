// Files with a journal, where the program does what is not everyday: mounted files, a full disk at its end, a child that outlives it, flushes by
// several threads. (tests/journal/ kills everyday programs at each of their calls.)
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <thread>
#include <vector>

#include "conformance/fixture.h"

namespace tidelane::testing {
namespace {

class JournalTest : public Scenarios {
 public:
  Environment journalled() const {
    Environment set = environment(kImplicit);
    set["TIDELANE_JOURNAL"] = "process";
    return set;
  }
  // Recovered, if it is marked, by who opens it to write, then for everybody.
  void expect_committed(const std::string& path, const Contents& contents) {
    SCOPED_TRACE(path);
    run([&] { const Hid opened = open(path); }, environment(kImplicit));
    expect_natively(path, contents);
    run_natively([&] {
      const Hid opened = open(path, H5F_ACC_RDONLY);
      EXPECT_EQ(H5Lexists(opened, "lost", H5P_DEFAULT), 0);
    });
  }
};

// ---- Files that are mounted in others

class MountedFilesTest : public JournalTest {
 public:
  std::string top_file() const { return in_folder("top.h5"); }
  std::string below_file() const { return in_folder("below.h5"); }
  std::string lowest_file() const { return in_folder("lowest.h5"); }

  struct Files {
    hid_t top, below, lowest;
  };
  // A file in a file in a file, "a" in each of them, and what `then` does with them; then others and "lost", and a kill.
  void kill_after(const std::function<void(Files&)>& then) {
    kill_when_rung(journalled(), [&](const Gong&) {
      Files files{create(top_file()).release(), create(below_file()).release(),
                  create(lowest_file()).release()};
      put(files.top, "a", 1);
      put(files.below, "a", 2);
      put(files.lowest, "a", 3);
      mount(files.below, files.lowest);
      mount(files.top, files.below);  // from now on each of them is the top's root to HDF5
      then(files);
      for (const char* name : {"a", "mounted/a", "mounted/mounted/a"})
        overwrite(files.top, name, 9);
      put(files.top, "lost", 4);
      put(files.top, "mounted/lost", 5);
      put(files.top, "mounted/mounted/lost", 6);
    });
  }
  static void mount(hid_t parent, hid_t child) {
    const Hid group(H5Gcreate2(parent, "mounted", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    ASSERT_GE(H5Fmount(parent, "mounted", child, H5P_DEFAULT), 0) << error_text();
  }
  void expect_all_committed() {
    expect_committed(top_file(), {{"a", 1}});
    expect_committed(below_file(), {{"a", 2}});
    expect_committed(lowest_file(), {{"a", 3}});
  }
  void expect_not_committed(const std::string& path) {
    run(
        [&] {
          // To HDF5 an empty file is one to begin, when it may write it.
          const Hid opened(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
          EXPECT_FALSE(opened.valid()) << path;
        },
        environment(kImplicit));
  }
};

TEST_F(MountedFilesTest, AFlushOfAllCommitsEachOfThem) {
  kill_after([](Files& files) { ASSERT_GE(H5Fflush(files.top, H5F_SCOPE_GLOBAL), 0); });
  expect_all_committed();
}

TEST_F(MountedFilesTest, AFlushOfAllByTheLowestCommitsEachOfThem) {
  kill_after([](Files& files) {
    const Hid dataset(H5Dopen2(files.top, "mounted/mounted/a", H5P_DEFAULT));
    ASSERT_GE(H5Fflush(dataset, H5F_SCOPE_GLOBAL), 0);
  });
  expect_all_committed();
}

// HDF5 keeps open what is mounted.
TEST_F(MountedFilesTest, AFlushOfAllCommitsThoseThatOnlyTheMountKeepsOpen) {
  kill_after([](Files& files) {
    ASSERT_GE(H5Fclose(files.below), 0);
    ASSERT_GE(H5Fclose(files.lowest), 0);
    overwrite(files.top, "mounted/a", 7);
    overwrite(files.top, "mounted/mounted/a", 8);
    ASSERT_GE(H5Fflush(files.top, H5F_SCOPE_GLOBAL), 0);
  });
  expect_committed(top_file(), {{"a", 1}});
  expect_committed(below_file(), {{"a", 7}});
  expect_committed(lowest_file(), {{"a", 8}});
}

TEST_F(MountedFilesTest, AFlushOfOneCommitsThatOne) {
  kill_after([](Files& files) { ASSERT_GE(H5Fflush(files.below, H5F_SCOPE_LOCAL), 0); });
  expect_committed(below_file(), {{"a", 2}});
  expect_not_committed(top_file());
  expect_not_committed(lowest_file());
}

// ---- A full disk when the program ends

TEST_F(JournalTest, ADiskThatIsFullAtTheEndLeavesTheLastCommitAndIsTold) {
  constexpr size_t kCount = 100'000;
  const std::string said = in_folder("stderr");
  const auto scenario = [&](off_t room) {
    ASSERT_NE(std::freopen(said.c_str(), "w", stderr), nullptr);
    const hid_t opened = create(file()).release();
    put(opened, "a", 1, kCount);
    ASSERT_GE(H5Fflush(opened, H5F_SCOPE_GLOBAL), 0);
    overwrite(opened, "a", 2, kCount);  // lingers
    signal(SIGXFSZ, SIG_IGN);
    const rlimit full{static_cast<rlim_t>(room), RLIM_INFINITY};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &full), 0);
  };
  // Not even the elements have room, or all but the commit has.
  for (const off_t room :
       {off_t{64} << 10, off_t{4096} + static_cast<off_t>(sizeof(int) * kCount)}) {
    SCOPED_TRACE(room);
    const Summary summary = run([&] { scenario(room); }, journalled());
    EXPECT_GT(summary.counter("errors"), 0);
    const std::string text = bytes_on_storage(said);
    EXPECT_NE(text.find("test.h5"), std::string::npos) << text;
    EXPECT_NE(text.find("File too large"), std::string::npos) << text;
    const Summary recovered = run([&] { const Hid opened = open(file()); }, environment(kImplicit));
    EXPECT_EQ(recovered.counter("files_recovered"), 1);
    run_natively([&] {
      const Hid opened = open(file(), H5F_ACC_RDONLY);
      expect_dataset(opened, "a", 1, kCount);
    });
  }
}

// ---- A child of fork that lives on

TEST_F(JournalTest, AChildThatOutlivesItsParentKeepsNobodyFromItsFile) {
  const Gong go;
  const Gong forked;
  const Gong right;
  kill_when_rung(journalled(), [&](const Gong&) {
    const hid_t opened = create(file()).release();
    put(opened, "a", 1);
    put(opened, "b", 3);
    ASSERT_GE(H5Fflush(opened, H5F_SCOPE_GLOBAL), 0);
    overwrite(opened, "a", 2);
    if (fork() == 0) {
      forked.ring();
      if (!go.wait()) _exit(1);
      expect_contents(opened, {{"a", 2}, {"b", 3}});  // as it was when it was forked
      if (!HasFailure()) right.ring();
      _exit(0);
    }
    ASSERT_TRUE(forked.wait());
    overwrite(opened, "b", 4);  // its own affair
  });
  expect_committed(file(), {{"a", 1}, {"b", 3}});
  go.ring();
  EXPECT_TRUE(right.wait());
}

// ---- Several threads

// Handles of one file and files of their own, flushed by threads side by side while lanes move logs into their files.
TEST_F(JournalTest, ThreadsCommitSideBySide) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 12;
  const auto path = [&](int thread) { return in_folder("own" + std::to_string(thread) + ".h5"); };
  hbool_t is_safe = false;
  ASSERT_GE(H5is_library_threadsafe(&is_safe), 0);
  if (!is_safe) GTEST_SKIP() << "this HDF5 is not thread-safe";
  Environment set = journalled();
  set["TIDELANE_LINGER"] = "100us";
  set["TIDELANE_LANES"] = "3";
  kill_when_rung(set, [&](const Gong&) {
    {
      const Hid made = create(file());
      for (int thread = 0; thread < kThreads; ++thread)
        put(made, "d" + std::to_string(thread), thread);
    }
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        const hid_t shared = open(file()).release();
        const hid_t own = create(path(thread)).release();
        put(own, "a", thread);
        for (int round = 1; round <= kRounds; ++round) {
          overwrite(shared, "d" + std::to_string(thread), 100 * round + thread);
          overwrite(own, "a", 100 * round + thread);
          EXPECT_GE(H5Fflush(own, H5F_SCOPE_LOCAL), 0) << error_text();
          EXPECT_GE(H5Fflush(shared, H5F_SCOPE_GLOBAL), 0) << error_text();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  Contents contents;
  for (int thread = 0; thread < kThreads; ++thread) {
    contents["d" + std::to_string(thread)] = 100 * kRounds + thread;
    expect_committed(path(thread), {{"a", 100 * kRounds + thread}});
  }
  expect_committed(file(), contents);
}

}  // namespace
}  // namespace tidelane::testing
