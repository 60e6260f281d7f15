// Files as programs meet them: what opens, what is refused, and what an access list says, just as natively.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "conformance/fixture.h"

namespace tidelane::testing {
namespace {

class Access : public Conformance {};

// The cause of a failure, which HDF5 says first.
H5E_error2_t bottom_of_stack() {
  H5E_error2_t bottom{};
  const Hid stack(H5Eget_current_stack());
  H5Ewalk2(
      stack, H5E_WALK_UPWARD,
      [](unsigned n, const H5E_error2_t* entry, void* into) -> herr_t {
        if (n == 0) *static_cast<H5E_error2_t*>(into) = *entry;
        return 0;
      },
      &bottom);
  bottom.desc = nullptr;  // lives no longer than the stack
  return bottom;
}

std::string bottom_text() {
  std::string text;
  const Hid stack(H5Eget_current_stack());
  H5Ewalk2(
      stack, H5E_WALK_UPWARD,
      [](unsigned n, const H5E_error2_t* entry, void* into) -> herr_t {
        if (n == 0) *static_cast<std::string*>(into) = entry->desc;
        return 0;
      },
      &text);
  return text;
}

TEST_P(Access, FailuresAreOfHdf5sKinds) {
  run([&] {
    EXPECT_LT(H5Fopen(file().c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), 0);
    H5E_error2_t bottom = bottom_of_stack();
    EXPECT_EQ(bottom.cls_id, H5E_ERR_CLS);
    EXPECT_EQ(bottom.maj_num, H5E_FILE);
    EXPECT_EQ(bottom.min_num, H5E_CANTOPENFILE);
    EXPECT_GE(H5close(), 0);  // and each opening of the library has ids of its own
    EXPECT_GE(H5open(), 0);
    EXPECT_LT(H5Fdelete(file().c_str(), H5P_DEFAULT), 0);
    const Hid opened = create(file());
    EXPECT_LT(H5Fcreate((file() + "/none").c_str(), H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT), 0);
    bottom = bottom_of_stack();
    EXPECT_EQ(bottom.cls_id, H5E_ERR_CLS);
    EXPECT_EQ(bottom.maj_num, H5E_FILE);
    EXPECT_EQ(bottom.min_num, H5E_CANTOPENFILE);
  });
}

// h5py's exceptions consist of the cause's text, and programs look for parts of it.
TEST_P(Access, FailuresAreToldInHdf5sWords) {
  const std::string missing = in_folder("missing.h5"), beyond = file() + "/beyond.h5";
  const std::string folder = in_folder("folder"), outcome = in_folder("texts");
  ASSERT_EQ(mkdir(folder.c_str(), 0755), 0);
  const auto tell = [&](const std::string& into) {
    std::ofstream texts(into);
    const auto note = [&](hid_t failed) {
      EXPECT_LT(failed, 0);
      std::string text = bottom_text();
      for (const char* changing : {"time = ", "buf = ", "file descriptor = "}) {
        const size_t at = text.find(changing);
        if (at != std::string::npos) text.erase(at, text.find(", ", at) - at);
      }
      texts << text << std::endl;
    };
    const Hid opened = create(file());
    for (const std::string& path : {missing, beyond, folder}) {
      note(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
      note(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT));
    }
    note(H5Fcreate(folder.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
    note(H5Fcreate(folder.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT));
    const Hid unlocked(H5Pcreate(H5P_FILE_ACCESS));  // other tests have the device open, too
    H5Pset_file_locking(unlocked, false, true);
    note(H5Fcreate("/dev/full", H5F_ACC_TRUNC, H5P_DEFAULT, unlocked));
    note(H5Fdelete(folder.c_str(), H5P_DEFAULT));
    std::ofstream(missing).close();
    const int locked = ::open(missing.c_str(), O_RDWR);
    EXPECT_EQ(flock(locked, LOCK_EX), 0);
    note(H5Fopen(missing.c_str(), H5F_ACC_RDWR, H5P_DEFAULT));
    ::close(locked);
    unlink(missing.c_str());
  };
  run_natively([&] { tell(in_folder("native")); });
  unlink(file().c_str());
  run([&] { tell(outcome); });
  EXPECT_EQ(bytes_on_storage(outcome), bytes_on_storage(in_folder("native")));
  EXPECT_FALSE(bytes_on_storage(outcome).empty());
}

// A device's pointer, or pages that were taken away: natively the system refuses them.
TEST_P(Access, MemoryThatIsNotThereIsRefused) {
  constexpr size_t kMany = 256 * 1024;  // more than HDF5 copies by itself
  constexpr size_t kBytes = kMany * sizeof(int);
  run_deferring([&] {
    void* const memory =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    const Hid opened = create(file());
    put(opened, "a", 1, kMany);
    const Hid dataset(H5Dopen2(opened, "a", H5P_DEFAULT));
    for (void* const missing :
         {memory, static_cast<void*>(static_cast<char*>(memory) + kBytes / 2)}) {
      ASSERT_EQ(mprotect(missing, kBytes / 2, PROT_NONE), 0);
      EXPECT_LT(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, memory), 0);
      EXPECT_NE(bottom_text().find("errno = 14"), std::string::npos) << bottom_text();
      expect_dataset(opened, "a", 1, kMany);
      EXPECT_LT(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, memory), 0);
      EXPECT_NE(bottom_text().find("errno = 14"), std::string::npos) << bottom_text();
      overwrite(opened, "a", 1, kMany);
      ASSERT_EQ(mprotect(missing, kBytes / 2, PROT_READ | PROT_WRITE), 0);
    }
    EXPECT_GE(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, memory), 0);
    EXPECT_EQ(std::memcmp(memory, elements(1, kMany).data(), kBytes), 0);
  });
  run_natively([&] { expect_dataset(open(file(), H5F_ACC_RDONLY), "a", 1, kMany); });
}

TEST_P(Access, MissingFileHasItsErrnoOnTheErrorStack) {
  run([&] {
    EXPECT_LT(H5Fopen(file().c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), 0);
    EXPECT_NE(error_text().find("errno = 2, error message = 'No such file or directory'"),
              std::string::npos)
        << error_text();
    EXPECT_NE(error_text().find(file()), std::string::npos) << error_text();
  });
}

TEST_P(Access, FileThatIsNotHdf5IsRefusedAndLeftAlone) {
  std::ofstream(file()) << std::string(10'000, 'x');
  run([&] {
    EXPECT_LT(H5Fopen(file().c_str(), H5F_ACC_RDWR, H5P_DEFAULT), 0);
    EXPECT_NE(error_text().find("file signature not found"), std::string::npos) << error_text();
    EXPECT_EQ(H5Fis_accessible(file().c_str(), H5P_DEFAULT), 0);
  });
  EXPECT_EQ(bytes_on_storage(file()), std::string(10'000, 'x'));
}

TEST_P(Access, ReadOnlyFileIsReadAndNotWritten) {
  run_natively([&] { put(create(file()), "a", 1); });
  ASSERT_EQ(chmod(file().c_str(), 0444), 0);
  const std::string before = bytes_on_storage(file());
  run([&] {
    const Hid opened = open(file(), H5F_ACC_RDONLY);
    expect_dataset(opened, "a", 1);
    EXPECT_LT(H5Gcreate2(opened, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), 0);
    unsigned intent = 99;
    EXPECT_GE(H5Fget_intent(opened, &intent), 0);
    EXPECT_EQ(intent, static_cast<unsigned>(H5F_ACC_RDONLY));
  });
  EXPECT_TRUE(bytes_on_storage(file()) == before);
}

// What was refused stays in HDF5's cache, and cannot be written when the file is closed: natively that close fails, and the next
// one lets go of the file. With us it stayed open, its lock held, for good.
TEST_P(Access, AReadOnlyFileThatARefusedCallHasChangedIsLetGoOf) {
  run([&] {
    {
      const Hid made = create(file());
      put(made, "a", 1);
    }
    for (const bool at_once : {true, false}) {  // the file may still be on its way
      const hid_t opened = open(file(), H5F_ACC_RDONLY).release();
      EXPECT_LT(H5Ocopy(opened, "a", opened, "b", H5P_DEFAULT, H5P_DEFAULT), 0);
      EXPECT_LT(H5Fclose(opened), 0);
      EXPECT_GE(H5Fclose(opened), 0) << error_text();
      if (at_once) overwrite(open(file()), "a", 2);
    }
    overwrite(open(file()), "a", 3);
  });
  expect_natively(file(), {{"a", 3}});
}

// It takes everything and has no size: a file that another process had cut short, said the close.
TEST_P(Access, AFileMayBeWrittenToNothing) {
  Environment unlocked = environment();  // it is everybody's
  unlocked["HDF5_USE_FILE_LOCKING"] = "FALSE";
  run(
      [&] {
        Hid opened = create("/dev/null");
        put(opened, "a", 1);
        EXPECT_GE(H5Fflush(opened, H5F_SCOPE_LOCAL), 0);
        EXPECT_GE(H5Fclose(opened.release()), 0);
      },
      unlocked);
}

TEST_P(Access, AccessListOfAnOpenFileSaysSec2) {
  run([&] {
    const Hid opened = create(file());
    const Hid access(H5Fget_access_plist(opened));
    EXPECT_EQ(H5Pget_driver(access), H5FD_SEC2);
    // What it says can be used again.
    const Hid other = create(in_folder("other.h5"), access);
    put(other, "a", 1);
  });
  expect_natively(in_folder("other.h5"), {{"a", 1}});
}

TEST_P(Access, SecondProcessMeetsTheLockAsNatively) {
  const Gong ready;
  const Gong seen;
  Child writer(environment(), [&] {
    const Hid opened = create(file());
    put(opened, "a", 1);
    EXPECT_GE(H5Fflush(opened, H5F_SCOPE_GLOBAL), 0);
    ready.ring();
    EXPECT_TRUE(seen.wait());
  });
  ASSERT_TRUE(ready.wait());
  const auto conflict = [&] {
    for (const unsigned flags : {H5F_ACC_RDONLY, H5F_ACC_RDWR}) {
      EXPECT_LT(H5Fopen(file().c_str(), flags, H5P_DEFAULT), 0);
      const H5E_error2_t bottom = bottom_of_stack();
      EXPECT_EQ(bottom.maj_num, H5E_VFL);
      EXPECT_EQ(bottom.min_num, H5E_CANTLOCKFILE);
      EXPECT_LT(H5Fopen(file().c_str(), flags, H5P_DEFAULT), 0);
      EXPECT_NE(error_text().find("unable to lock the file"), std::string::npos) << error_text();
      EXPECT_NE(error_text().find("errno = 11, error message = 'Resource temporarily unavailable'"),
                std::string::npos)
          << error_text();
    }
  };
  run_natively(conflict);
  run(conflict);
  seen.ring();
  writer.expect_success();
}

TEST_P(Access, TwoReadersShareAFile) {
  run_natively([&] { put(create(file()), "a", 1); });
  const Gong ready;
  const Gong seen;
  Child reader(environment(), [&] {
    const Hid opened = open(file(), H5F_ACC_RDONLY);
    ready.ring();
    EXPECT_TRUE(seen.wait());
    expect_dataset(opened, "a", 1);
  });
  ASSERT_TRUE(ready.wait());
  run([&] { expect_dataset(open(file(), H5F_ACC_RDONLY), "a", 1); });
  seen.ring();
  reader.expect_success();
}

TEST_P(Access, WithoutFileLockingEverythingWorks) {
  Environment unlocked = environment();
  unlocked["HDF5_USE_FILE_LOCKING"] = "FALSE";
  unlocked["TIDELANE_READAHEAD"] = plugged() ? "on" : "";  // which needs a lock, and says so
  const Summary summary = run(
      [&] {
        Hid opened = create(file());
        put(opened, "a", 1);
        EXPECT_GE(H5Fclose(opened.release()), 0);
        const Hid again = open(file());
        expect_dataset(again, "a", 1);
        put(again, "b", 2);
      },
      unlocked);
  if (plugged()) {
    EXPECT_GT(summary.counter("bytes_deferred"), 0);
    EXPECT_GT(summary.fallback("locking_off"), 0);
  }
  expect_natively(file(), {{"a", 1}, {"b", 2}});
}

TEST_P(Access, TheSameFileOpenedTwiceIsOneFile) {
  run_deferring([&] {
    const Hid opened = create(file());
    put(opened, "a", 1);
    const Hid again = open(file());
    expect_dataset(again, "a", 1);
    overwrite(again, "a", 2);
    expect_dataset(opened, "a", 2);
    EXPECT_LT(H5Fcreate(file().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), 0);
  });
  expect_natively(file(), {{"a", 2}});
}

TEST_P(Access, UserBlockStaysTheProgramsOwn) {
  constexpr hsize_t kBlock = 1024;
  run_deferring([&] {
    const Hid creation(H5Pcreate(H5P_FILE_CREATE));
    ASSERT_GE(H5Pset_userblock(creation, kBlock), 0);
    Hid opened(H5Fcreate(file().c_str(), H5F_ACC_TRUNC, creation, H5P_DEFAULT));
    put(opened, "a", 1);
    EXPECT_GE(H5Fclose(opened.release()), 0);
    const Hid again = open(file());
    put(again, "b", 2);
  });
  FILE* raw = std::fopen(file().c_str(), "r+");
  ASSERT_NE(raw, nullptr);
  std::fputs("the program's words", raw);
  std::fclose(raw);
  run_deferring([&] {
    const Hid opened = open(file());
    expect_contents(opened, {{"a", 1}, {"b", 2}});
    put(opened, "c", 3);
  });
  expect_natively(file(), {{"a", 1}, {"b", 2}, {"c", 3}});
  EXPECT_EQ(bytes_on_storage(file()).rfind("the program's words", 0), 0u);
}

TEST_P(Access, CloseDegreesTreatOpenObjectsAsNatively) {
  for (const H5F_close_degree_t degree : {H5F_CLOSE_WEAK, H5F_CLOSE_SEMI, H5F_CLOSE_STRONG}) {
    SCOPED_TRACE(degree);
    run_deferring([&] {
      const Hid access(H5Pcreate(H5P_FILE_ACCESS));
      ASSERT_GE(H5Pset_fclose_degree(access, degree), 0);
      const hid_t opened = create(file(), access).release();
      put(opened, "a", 1);
      Hid dataset(H5Dopen2(opened, "a", H5P_DEFAULT));
      if (degree == H5F_CLOSE_SEMI) {
        EXPECT_LT(H5Fclose(opened), 0);
        EXPECT_GE(H5Dclose(dataset.release()), 0);
        EXPECT_GE(H5Fclose(opened), 0) << error_text();
        return;
      }
      EXPECT_GE(H5Fclose(opened), 0) << error_text();
      if (degree == H5F_CLOSE_STRONG) {
        EXPECT_LE(H5Iis_valid(dataset), 0);
        dataset.release();
        return;
      }
      const std::vector<int> values =
          elements(2, kElements);  // the file stays open until its last object is closed
      EXPECT_GE(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
      EXPECT_GE(H5Dclose(dataset.release()), 0);
      expect_dataset(open(file()), "a", 2);
    });
    expect_natively(file(), {{"a", degree == H5F_CLOSE_WEAK ? 2 : 1}});
  }
}

// Asked for its space a virtual dataset with open ends takes the extent that its sources have now. Natively a transfer does not ask: of
// sources that are not there it reads fill values, as many as there were.
TEST_P(Access, AVirtualDatasetIsNotAskedForItsSpace) {
  constexpr hsize_t kSide = 40;  // 6400 elements: enough to look at the dataset
  constexpr hsize_t kBlocks = 4;
  const auto make_virtual = [&](hid_t location, const std::string& sources) {
    const hsize_t now[] = {kBlocks * kSide, kSide}, most[] = {H5S_UNLIMITED, kSide};
    const hsize_t source[] = {kSide, kSide}, start[] = {0, 0}, stride[] = {kSide, 1};
    const hsize_t count[] = {H5S_UNLIMITED, 1};
    const Hid space(H5Screate_simple(2, now, most)),
        of_source(H5Screate_simple(2, source, nullptr));
    const Hid plan(H5Pcreate(H5P_DATASET_CREATE));
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, stride, count, source);
    EXPECT_GE(H5Pset_virtual(plan, space, sources.c_str(), "d", of_source), 0);
    const Hid made(H5Dcreate2(location, sources.c_str(), H5T_NATIVE_INT, space, H5P_DEFAULT, plan,
                              H5P_DEFAULT));
    EXPECT_TRUE(made.valid()) << error_text();
  };
  const std::string one = "one-%b.h5", none = "none-%b.h5";
  run_natively([&] {
    const Hid created = create(file());
    make_virtual(created, one);
    make_virtual(created, none);
    const Hid source = create(in_folder("one-0.h5"));
    const hsize_t extent[] = {kSide, kSide};
    const Hid space(H5Screate_simple(2, extent, nullptr));
    const Hid dataset(
        H5Dcreate2(source, "d", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    const std::vector<int> values = elements(7, kSide * kSide);
    H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  });
  const auto read_all = [&](const std::string& name) {
    const Hid opened = open(file(), H5F_ACC_RDONLY);
    const Hid dataset(H5Dopen2(opened, name.c_str(), H5P_DEFAULT));
    std::vector<int> values(kBlocks * kSide * kSide, 777);
    EXPECT_GE(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0)
        << error_text();
    return values;
  };
  std::map<std::string, std::vector<int>> natively;
  {
    const std::string results = in_folder("natively");
    run_natively([&] {
      std::ofstream out(results);
      for (const std::string& name : {one, none}) {
        for (const int value : read_all(name)) out << value << " ";
      }
    });
    std::ifstream in(results);
    for (const std::string& name : {one, none}) {
      natively[name].resize(kBlocks * kSide * kSide);
      for (int& value : natively[name]) in >> value;
    }
    EXPECT_EQ(std::ranges::count(natively[none], 777), 0) << "natively all of it is read";
  }
  run([&] {
    for (const std::string& name : {one, none}) EXPECT_EQ(read_all(name), natively[name]) << name;
  });
}

TEST_P(Access, LinksAndVirtualSourcesOfAnOpenFileSeeItsPendingBytes) {
  const std::string source = in_folder("source.h5");
  run_deferring([&] {
    const Hid sources = create(source);
    put(sources, "a", 1);
    const Hid main = create(file());
    ASSERT_GE(H5Lcreate_external("source.h5", "/a", main, "link", H5P_DEFAULT, H5P_DEFAULT), 0);
    const hsize_t extent = kElements;
    const Hid space(H5Screate_simple(1, &extent, nullptr));
    const Hid layout(H5Pcreate(H5P_DATASET_CREATE));
    ASSERT_GE(H5Pset_virtual(layout, space, "source.h5", "/a", space), 0);
    const Hid virtual_dataset(
        H5Dcreate2(main, "virtual", H5T_NATIVE_INT, space, H5P_DEFAULT, layout, H5P_DEFAULT));
    expect_contents(main, {{"link", 1}, {"virtual", 1}});
    overwrite(main, "link", 2);
    expect_contents(main, {{"link", 2}, {"virtual", 2}});
    overwrite(main, "virtual", 3);
    expect_dataset(sources, "a", 3);
  });
  expect_natively(file(), {{"link", 3}, {"virtual", 3}});
}

CONFORMANCE_WAYS(Access, kNative, kImplicit, kDeferredClose, kDeferredAll, kAuto, kAutoDeferred);

}  // namespace
}  // namespace tidelane::testing
