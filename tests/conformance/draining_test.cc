// A file whose close was deferred, while its bytes are still on their way: whoever comes to it next sees what a
// waiting close would have left.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "conformance/fixture.h"

namespace tidelane::testing {
namespace {

using namespace std::chrono_literals;

class Draining : public Conformance {
 protected:
  // Leaves `path` closed by the program; in a deferring way its bytes then stand before the gate.
  void close_draining(const std::string& path, const Contents& contents) {
    Hid opened = create(path);  // stores the signature
    storage::hold();
    for (const auto& [name, seed] : contents) put(opened, name, seed);
    ASSERT_GE(H5Fclose(opened.release()), 0) << error_text();
    ASSERT_TRUE(storage::wait_held());
    EXPECT_LT(size_on_storage(path), 100) << "the drain is over already";
  }
  Summary run_draining(const std::function<void()>& scenario) {
    Summary summary = run_deferring(scenario);
    EXPECT_GE(summary.counter("closes_deferred"), 1);
    return summary;
  }
};

TEST_P(Draining, ReopenSeesEverythingAndMayGoOnWriting) {
  const Summary summary = run_draining([&] {
    close_draining(file(), {{"a", 1}});
    Hid again = open(file());
    expect_dataset(again, "a", 1);
    put(again, "b", 2);
    overwrite(again, "a", 3);
    expect_dataset(again, "a", 3);
    storage::release();
    EXPECT_GE(H5Fclose(again.release()), 0);
  });
  EXPECT_EQ(summary.counter("files_adopted"), 1);
  expect_natively(file(), {{"a", 3}, {"b", 2}});
}

TEST_P(Draining, ReopenReadOnlySeesEverything) {
  run_draining([&] {
    close_draining(file(), {{"a", 1}});
    const Hid again = open(file(), H5F_ACC_RDONLY);
    expect_dataset(again, "a", 1);
    storage::release();
  });
  expect_natively(file(), {{"a", 1}});
}

// What had been read before the close was kept. Natively an open file's bytes are not kept beyond its close.
TEST_P(Draining, ReopenReadsAnewWhatAWriterThatHeedsNoLockHasChanged) {
  constexpr size_t kFew = 500;
  run_natively([&] {
    const Hid made = create(file());
    for (const char* name : {"a", "b", "c"}) put(made, name, 1, kFew);
  });
  run_draining([&] {
    Hid opened = open(file());
    expect_dataset(opened, "a", 1, kFew);
    expect_dataset(opened, "b", 1, kFew);
    storage::hold();
    overwrite(opened, "c", 3, kFew);
    const std::vector<int> old = elements(1, kFew), values = elements(2, kFew);
    const size_t size = kFew * sizeof(int);
    const std::string bytes = bytes_on_storage(file());
    const std::string wanted(reinterpret_cast<const char*>(old.data()), size);
    const size_t second = bytes.find(wanted, bytes.find(wanted) + 1);
    ASSERT_NE(second, std::string::npos);
    EXPECT_GE(H5Fclose(opened.release()), 0);
    const int past = ::open(file().c_str(), O_WRONLY | O_CLOEXEC);
    EXPECT_EQ(::pwrite(past, values.data(), size, static_cast<off_t>(second)),
              static_cast<ssize_t>(size));
    ::close(past);
    Hid again = open(file());
    expect_dataset(again, "a", 1, kFew);
    expect_dataset(again, "b", 2, kFew);
    expect_dataset(again, "c", 3, kFew);
    storage::release();
    EXPECT_GE(H5Fclose(again.release()), 0);
  });
  expect_natively(file(), {});
}

TEST_P(Draining, ReopenManyTimes) {
  run_draining([&] {
    Contents contents;
    close_draining(file(), contents);
    for (int step = 0; step < 10; ++step) {
      Hid again = open(file());
      put(again, "step" + std::to_string(step), step);
      contents["step" + std::to_string(step)] = step;
      expect_contents(again, contents);
      EXPECT_GE(H5Fclose(again.release()), 0);
    }
    storage::release();
  });
  expect_natively(file(), {{"step0", 0}, {"step9", 9}});
}

TEST_P(Draining, CreatingOverItWaitsAndOnlyTheNewContentsRemain) {
  run_draining([&] {
    close_draining(file(), {{"old", 1}});
    storage::release_after(50ms);
    const Hid fresh = create(file());
    put(fresh, "new", 2);
    EXPECT_EQ(H5Lexists(fresh, "old", H5P_DEFAULT), 0);
  });
  run_natively([&] {
    const Hid opened = open(file(), H5F_ACC_RDONLY);
    expect_dataset(opened, "new", 2);
    EXPECT_EQ(H5Lexists(opened, "old", H5P_DEFAULT), 0);
  });
}

TEST_P(Draining, ExclusiveCreateFails) {
  run_draining([&] {
    close_draining(file(), {{"a", 1}});
    storage::release_after(50ms);
    EXPECT_LT(H5Fcreate(file().c_str(), H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT), 0);
    EXPECT_NE(error_text().find("errno = 17"), std::string::npos) << error_text();
  });
  expect_natively(file(), {{"a", 1}});
}

TEST_P(Draining, IsAccessibleSaysYes) {
  run_draining([&] {
    close_draining(file(), {{"a", 1}});
    storage::release_after(50ms);
    EXPECT_GT(H5Fis_accessible(file().c_str(), H5P_DEFAULT), 0) << error_text();
    EXPECT_LE(H5Fis_accessible(in_folder("missing.h5").c_str(), H5P_DEFAULT), 0);
  });
  expect_natively(file(), {{"a", 1}});
}

TEST_P(Draining, DeletedFileIsGone) {
  run_draining([&] {
    close_draining(file(), {{"a", 1}});
    storage::release_after(50ms);
    EXPECT_GE(H5Fdelete(file().c_str(), H5P_DEFAULT), 0) << error_text();
    EXPECT_EQ(size_on_storage(file()), -1);
    const Hid fresh = create(file());
    put(fresh, "new", 2);
  });
  expect_natively(file(), {{"new", 2}});
}

TEST_P(Draining, RenamedFileIsFoundByItsNewName) {
  const std::string moved = in_folder("moved.h5");
  const Summary summary = run_draining([&] {
    close_draining(file(), {{"a", 1}});
    ASSERT_EQ(std::rename(file().c_str(), moved.c_str()), 0);
    const Hid again = open(moved);
    expect_dataset(again, "a", 1);
    put(again, "b", 2);
    EXPECT_LT(H5Fopen(file().c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), 0);
    storage::release();
  });
  EXPECT_EQ(summary.counter("files_adopted"), 1);
  expect_natively(moved, {{"a", 1}, {"b", 2}});
}

TEST_P(Draining, UnlinkedAndRecreatedFileIsAnother) {
  run_draining([&] {
    close_draining(file(), {{"old", 1}});
    ASSERT_EQ(unlink(file().c_str()), 0);
    storage::release_after(50ms);  // the new file's signature goes at once
    const Hid fresh = create(file());
    put(fresh, "new", 2);
    EXPECT_EQ(H5Lexists(fresh, "old", H5P_DEFAULT), 0);
  });
  expect_natively(file(), {{"new", 2}});
}

TEST_P(Draining, SymbolicAndHardLinksFindIt) {
  const std::string symbolic = in_folder("symbolic.h5");
  const std::string hard = in_folder("hard.h5");
  const Summary summary = run_draining([&] {
    close_draining(file(), {{"a", 1}});
    ASSERT_EQ(symlink("test.h5", symbolic.c_str()), 0);
    ASSERT_EQ(link(file().c_str(), hard.c_str()), 0);
    Hid by_symbolic = open(symbolic);
    expect_dataset(by_symbolic, "a", 1);
    put(by_symbolic, "b", 2);
    EXPECT_GE(H5Fclose(by_symbolic.release()), 0);
    const Hid by_hard = open(hard);
    expect_contents(by_hard, {{"a", 1}, {"b", 2}});
    storage::release();
  });
  EXPECT_EQ(summary.counter("files_adopted"), 2);
  EXPECT_EQ(summary.fallback("handle_handed_out"),
            0);  // HDF5 asks for it itself when it follows a link
  expect_natively(file(), {{"a", 1}, {"b", 2}});
}

TEST_P(Draining, AnotherProcessIsRefusedUntilTheFileIsWhole) {
  const Gong drain;
  const Gong seen;
  Child writer(environment(), [&] {
    close_draining(file(), {{"a", 1}});
    drain.ring();
    EXPECT_TRUE(seen.wait());
    storage::release();
  });
  ASSERT_TRUE(drain.wait());
  run_natively([&] {
    EXPECT_LT(H5Fopen(file().c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), 0);
    EXPECT_NE(error_text().find("unable to lock file"), std::string::npos) << error_text();
  });
  seen.ring();
  writer.expect_success();
  expect_natively(file(), {{"a", 1}});
}

TEST_P(Draining, TwoFilesDrainIndependently) {
  const std::string other = in_folder("other.h5");
  run_draining([&] {
    Hid second = create(other);
    close_draining(file(), {{"a", 1}});
    put(second, "b", 2);
    EXPECT_GE(H5Fclose(second.release()), 0);
    const Hid first = open(file());
    const Hid again = open(other);
    expect_dataset(first, "a", 1);
    expect_dataset(again, "b", 2);
    ASSERT_GE(H5Ocopy(first, "a", again, "copy", H5P_DEFAULT, H5P_DEFAULT), 0) << error_text();
    storage::release();
  });
  expect_natively(file(), {{"a", 1}});
  expect_natively(other, {{"b", 2}, {"copy", 1}});
}

TEST_P(Draining, NormalExitWaits) {
  run_draining([&] {
    close_draining(file(), {{"a", 1}});
    storage::release_after(50ms);
  });
  expect_natively(file(), {{"a", 1}});
}

TEST_P(Draining, ExternalLinksAndVirtualSourcesAreFound) {
  const std::string source = in_folder("source.h5");
  run_draining([&] {
    const Hid main = create(file());
    close_draining(source, {{"a", 1}});
    ASSERT_GE(H5Lcreate_external("source.h5", "/a", main, "link", H5P_DEFAULT, H5P_DEFAULT), 0);
    const hsize_t extent = kElements;
    const Hid space(H5Screate_simple(1, &extent, nullptr));
    const Hid layout(H5Pcreate(H5P_DATASET_CREATE));
    ASSERT_GE(H5Pset_virtual(layout, space, "source.h5", "/a", space), 0);
    const Hid virtual_dataset(
        H5Dcreate2(main, "virtual", H5T_NATIVE_INT, space, H5P_DEFAULT, layout, H5P_DEFAULT));
    ASSERT_TRUE(virtual_dataset.valid()) << error_text();
    storage::release_after(50ms);  // such opens are HDF5's own and ask nobody: their closes wait
    expect_dataset(main, "link", 1);
    expect_dataset(main, "virtual", 1);
  });
  expect_natively(file(), {{"link", 1}, {"virtual", 1}});
}

// HDF5 opens what a file of the core driver leads to with that driver, which wants the lock: whether the source was closed
// before that file was opened, or while it is.
TEST_P(Draining, AFileOfAnotherDriverFindsItsVirtualSources) {
  const std::string sources[] = {in_folder("before.h5"), in_folder("after.h5")};
  run_draining([&] {
    close_draining(sources[0], {{"a", 1}});
    storage::release_after(50ms);
    const Hid core(H5Pcreate(H5P_FILE_ACCESS));
    ASSERT_GE(H5Pset_fapl_core(core, 1 << 16, true), 0);
    const Hid main(H5Fcreate(file().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, core));
    ASSERT_TRUE(main.valid()) << error_text();
    Hid after = create(sources[1]);
    storage::hold();
    put(after, "a", 2);
    storage::release_after(50ms);
    EXPECT_GE(H5Fclose(after.release()), 0);
    const hsize_t extent = kElements;
    const Hid space(H5Screate_simple(1, &extent, nullptr));
    for (int which = 0; which < 2; ++which) {
      const Hid layout(H5Pcreate(H5P_DATASET_CREATE));
      ASSERT_GE(H5Pset_virtual(layout, space, sources[which].c_str(), "/a", space), 0);
      const std::string name = "virtual" + std::to_string(which);
      const Hid virtual_dataset(
          H5Dcreate2(main, name.c_str(), H5T_NATIVE_INT, space, H5P_DEFAULT, layout, H5P_DEFAULT));
      ASSERT_TRUE(virtual_dataset.valid()) << error_text();
      expect_dataset(main, name.c_str(), 1 + which);
    }
  });
  expect_natively(file(), {{"virtual0", 1}, {"virtual1", 2}});
}

CONFORMANCE_WAYS(Draining, kDeferredClose, kDeferredAll);

}  // namespace
}  // namespace tidelane::testing
