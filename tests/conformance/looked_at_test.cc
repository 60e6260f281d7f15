// What others see of a file that the program has open: the mark that somebody writes it.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "conformance/fixture.h"

namespace tidelane::testing {
namespace {

constexpr int kVersion3Mark =
    11;  // where a superblock of version 3 says that the file is open for writing

class LookedAt : public Conformance {
 protected:
  // Where nothing but the mark keeps a second writer out.
  Environment unlocked() const {
    Environment settings = environment();
    settings["HDF5_USE_FILE_LOCKING"] = "FALSE";
    return settings;
  }
  static Hid newest_format() {
    Hid access(H5Pcreate(H5P_FILE_ACCESS));
    EXPECT_GE(H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_LATEST), 0);
    return access;
  }
  Hid create_newest() const {
    return Hid(H5Fcreate(file().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, newest_format()));
  }
};

// It came with the first flush: a second writer was let in, and lost what it wrote.
TEST_P(LookedAt, AFileOpenForWritingSaysSoWhenTheOpenReturns) {
  const auto refused = [&] {
    EXPECT_LT(H5Fopen(file().c_str(), H5F_ACC_RDWR, newest_format()), 0);
    EXPECT_LT(H5Fopen(file().c_str(), H5F_ACC_RDONLY, newest_format()), 0);
  };
  const Gong opened, tried;
  Child first(unlocked(), [&] {
    Hid made = create_newest();
    EXPECT_EQ(bytes_on_storage(file()).at(kVersion3Mark), 1) << "a new file, too";
    put(made, "a", 1);
    EXPECT_GE(H5Fclose(made.release()), 0);
    Hid again(H5Fopen(file().c_str(), H5F_ACC_RDWR, newest_format()));
    EXPECT_EQ(bytes_on_storage(file()).at(kVersion3Mark), 1);
    put(again, "b", 2);
    opened.ring();
    EXPECT_TRUE(tried.wait());
  });
  ASSERT_TRUE(opened.wait());
  run(refused, unlocked());
  tried.ring();
  first.expect_success();
  expect_natively(file(), {{"a", 1}, {"b", 2}});
}

// It had been read into a block with its neighbours, and was read from there for as long as the file was open.
TEST_P(LookedAt, AReaderSeesWhatAWriterThatHeedsNoLockHasChanged) {
  constexpr size_t kFew = 500;
  constexpr int kTimes = 5;
  run_natively([&] {
    const Hid made = create(file());
    for (const char* name : {"a", "b", "c"}) put(made, name, 1, kFew);
  });
  Environment heedless;  // and no plugin
  heedless["HDF5_USE_FILE_LOCKING"] = "FALSE";
  std::vector<std::unique_ptr<Gong>> read, changed;
  for (int i = 0; i < kTimes; ++i) {
    read.push_back(std::make_unique<Gong>());
    changed.push_back(std::make_unique<Gong>());
  }
  Child writer(heedless, [&] {
    for (int i = 0; i < kTimes; ++i) {
      EXPECT_TRUE(read[i]->wait());
      overwrite(open(file()), "b", 2 + i, kFew);
      changed[i]->ring();
    }
  });
  run([&] {
    const Hid opened = open(file(), H5F_ACC_RDONLY);
    for (int i = 0; i < kTimes; ++i) {
      expect_dataset(opened, "a", 1, kFew);
      expect_dataset(opened, "b", 1 + i, kFew);
      read[i]->ring();
      EXPECT_TRUE(changed[i]->wait());
      expect_dataset(opened, "b", 2 + i, kFew);
      expect_dataset(opened, "c", 1, kFew);
    }
  });
  writer.expect_success();
}

// Small reads that HDF5's sieve buffer answers, or our blocks, or nothing of both: none may find what is older than what another has found,
// as natively, where all of them go through the sieve.
class ChangedMeanwhile : public LookedAt {
 protected:
  static constexpr hsize_t kElements = 1000;

  void make() {
    run_natively([&] {
      const Hid made = create(file());
      put(made, "d", 7, kElements);
      put(made, "other", 8, kElements);
    });
    std::ifstream made(file(), std::ios::binary);
    const std::string stored((std::istreambuf_iterator<char>(made)), {});
    const std::vector<int> begin = elements(7, 64);
    place_ = stored.find({reinterpret_cast<const char*>(begin.data()), 64 * sizeof(int)});
    ASSERT_NE(place_, std::string::npos);
    usleep(50'000);  // what a file system calls a moment is over
  }
  // Past HDF5, by whom no lock keeps out.
  void change(int value) const {
    const int past = ::open(file().c_str(), O_WRONLY | O_CLOEXEC);
    EXPECT_EQ(pwrite(past, &value, sizeof value, static_cast<off_t>(place_)),
              static_cast<ssize_t>(sizeof value));
    ::close(past);
  }
  // Element 0 of `dataset` by a small read, in one of several calls.
  enum class Call { kRead, kMulti, kAsync };
  static int first(hid_t dataset, Call call = Call::kRead) {
    const hsize_t start = 0, count = 64;
    const Hid space(H5Dget_space(dataset)), memory(H5Screate_simple(1, &count, nullptr));
    H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, nullptr, &count, nullptr);
    int values[count] = {};
    hid_t type = H5T_NATIVE_INT, memory_id = memory, space_id = space;
    void* to = values;
    if (call == Call::kMulti) {
      EXPECT_GE(H5Dread_multi(1, &dataset, &type, &memory_id, &space_id, H5P_DEFAULT, &to), 0);
    } else if (call == Call::kAsync) {
      const hid_t events = H5EScreate();
      EXPECT_GE(H5Dread_async(dataset, type, memory, space, H5P_DEFAULT, values, events), 0);
      size_t left = 0;
      hbool_t failed = false;
      EXPECT_GE(H5ESwait(events, H5ES_WAIT_FOREVER, &left, &failed), 0);
      H5ESclose(events);
    } else {
      EXPECT_GE(H5Dread(dataset, type, memory, space, H5P_DEFAULT, values), 0);
    }
    return values[0];
  }

 private:
  size_t place_ = 0;
};

TEST_P(ChangedMeanwhile, ARefreshOfAnotherDatasetBringsNothingOldBack) {
  make();
  run([&] {
    const Hid opened = open(file(), H5F_ACC_RDONLY), dataset(H5Dopen2(opened, "d", H5P_DEFAULT));
    const Hid other(H5Dopen2(opened, "other", H5P_DEFAULT));
    for (int i = 0; i < 10; ++i) first(dataset);
    const int before = first(dataset);
    ASSERT_GE(H5Drefresh(other), 0);
    change(before + 1);
    int seen = before;
    for (int i = 0; i < 200; ++i) {
      const int found = first(dataset);
      ASSERT_GE(found, seen) << "read " << i;
      seen = found;
    }
  });
}

TEST_P(ChangedMeanwhile, OtherCallsFindNothingNewerWhereNothingIsLocked) {
  make();
  run(
      [&] {
        const Hid opened = open(file(), H5F_ACC_RDONLY);
        const Hid dataset(H5Dopen2(opened, "d", H5P_DEFAULT));
        int seen = first(dataset);
        for (int i = 0; i < 200; ++i) {
          change(seen + i + 1);
          for (const Call call : {Call::kAsync, Call::kMulti, Call::kRead, Call::kMulti}) {
            const int found = first(dataset, call);
            ASSERT_GE(found, seen) << "read " << i;
            seen = found;
          }
        }
      },
      unlocked());
}
CONFORMANCE_WAYS(ChangedMeanwhile, kNative, kImplicit, kDeferredAll, kAuto);

// The offset was asked of a file open for reading: nothing was pending, and its blocks were kept.
TEST_P(LookedAt, WhoAsksWhereADatasetIsMayChangeItThere) {
  constexpr size_t kFew = 500;
  run_natively([&] {
    const Hid made = create(file());
    for (const char* name : {"a", "b", "c"}) put(made, name, 1, kFew);
  });
  run([&] {
    const Hid opened = open(file(), H5F_ACC_RDONLY);
    expect_dataset(opened, "a", 1, kFew);
    expect_dataset(opened, "b", 1, kFew);
    const Hid dataset(H5Dopen2(opened, "b", H5P_DEFAULT));
    const auto place = static_cast<off_t>(H5Dget_offset(dataset));
    const int past = ::open(file().c_str(), O_WRONLY | O_CLOEXEC);
    const std::vector<int> values = elements(2, kFew);
    EXPECT_EQ(pwrite(past, values.data(), kFew * sizeof(int), place),
              static_cast<ssize_t>(kFew * sizeof(int)));
    ::close(past);
    expect_dataset(opened, "b", 2, kFew);
  });
}

// netCDF-C did, and said "Unknown file format".
TEST_P(LookedAt, AFileThatWasFlushedOrClosedBeginsAsOne) {
  const char signature[] = "\x89HDF\r\n\x1a\n";
  const auto begins = [&](const std::string& path) {
    EXPECT_EQ(bytes_on_storage(path).substr(0, 8), signature);
    EXPECT_GT(size_on_storage(path), 8) << "netCDF-C wants more";
  };
  run([&] {
    Hid made = create(file());
    put(made, "a", 1);
    EXPECT_GE(H5Fflush(made, H5F_SCOPE_LOCAL), 0);
    begins(file());
    put(made, "b", 2);
    EXPECT_GE(H5Fclose(made.release()), 0);
    begins(file());
    Hid other = create(in_folder("other.h5"));
    put(other, "a", 1);
    EXPECT_GE(H5Fclose(other.release()), 0);
    begins(in_folder("other.h5"));
  });
  expect_natively(file(), {{"a", 1}, {"b", 2}});
  expect_natively(in_folder("other.h5"), {{"a", 1}});
}

CONFORMANCE_WAYS(LookedAt, kNative, kImplicit, kDeferredClose, kDeferredAll, kAuto, kAutoDeferred);

}  // namespace
}  // namespace tidelane::testing
