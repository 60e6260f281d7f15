// H5Ocopy of datasets that HDF5 has a sieve buffer of (vol/sieve_store.h): the copy is no older than natively.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "conformance/fixture.h"
#include "conformance/storage_gate.h"

namespace tidelane::testing {
namespace {

class SieveCopy : public Conformance {};

// With this list HDF5 takes what is written to the sieve buffer, whatever our driver would take in one call.
Hid piece_by_piece() {
  Hid list(H5Pcreate(H5P_DATASET_XFER));
  EXPECT_GE(H5Pset_selection_io(list, H5D_SELECTION_IO_MODE_OFF), 0);
  return list;
}

// A dataset of one dimension, with the elements that it is to have.
class Elements {
 public:
  Elements(hid_t location, const char* name, hsize_t size) : expected_(elements(1, size)) {
    put(location, name, 1, size);
    dataset_.emplace(H5Dopen2(location, name, H5P_DEFAULT));
  }
  hid_t dataset() const { return *dataset_; }
  // Through another opening of the dataset, or through a virtual one, for instance.
  void WriteTo(hid_t dataset, hsize_t start, hsize_t count, hid_t list) {
    const std::vector<int> fresh = Fresh(start, count);
    const Hid memory(H5Screate_simple(1, &count, nullptr));
    ASSERT_GE(H5Dwrite(dataset, H5T_NATIVE_INT, memory, Selected(start, count), list, fresh.data()),
              0);
  }
  void Write(hsize_t start, hsize_t count) { WriteTo(dataset(), start, count, H5P_DEFAULT); }
  void WriteConverted(hsize_t start, hsize_t count, hid_t list) {
    const std::vector<int> fresh = Fresh(start, count);
    const std::vector<double> wide(fresh.begin(), fresh.end());
    const Hid memory(H5Screate_simple(1, &count, nullptr));
    ASSERT_GE(
        H5Dwrite(dataset(), H5T_NATIVE_DOUBLE, memory, Selected(start, count), list, wide.data()),
        0);
  }
  // More than HDF5 may convert at once: it takes each part to the sieve buffer.
  void WriteConverted(hsize_t start, hsize_t count) {
    const Hid list(H5Pcreate(H5P_DATASET_XFER));
    ASSERT_GE(H5Pset_buffer(list, 500, nullptr, nullptr), 0);
    WriteConverted(start, count, list);
  }
  void Read(hsize_t start, hsize_t count) {
    std::vector<int> found(count);
    const Hid memory(H5Screate_simple(1, &count, nullptr));
    ASSERT_GE(H5Dread(dataset(), H5T_NATIVE_INT, memory, Selected(start, count), H5P_DEFAULT,
                      found.data()),
              0);
  }
  void ExpectAt(hid_t location, const char* name) const {
    const Hid copied(H5Dopen2(location, name, H5P_DEFAULT));
    std::vector<int> found(expected_.size());
    ASSERT_GE(H5Dread(copied, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, found.data()), 0);
    EXPECT_TRUE(found == expected_) << name;
  }

 private:
  std::vector<int> Fresh(hsize_t start, hsize_t count) {
    std::vector<int> fresh = elements(++seed_, count);
    std::ranges::copy(fresh, expected_.begin() + static_cast<std::ptrdiff_t>(start));
    return fresh;
  }
  Hid Selected(hsize_t start, hsize_t count) const {
    const hsize_t size = expected_.size();
    Hid space(H5Screate_simple(1, &size, nullptr));
    EXPECT_GE(H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, nullptr, &count, nullptr), 0);
    return space;
  }

  std::vector<int> expected_;
  std::optional<Hid> dataset_;
  int seed_ = 1;
};

// HDF5 looks into the sieve only if the whole dataset lies there: the copy had the elements from before the second write.
TEST_P(SieveCopy, ACopyOfAnOpenDatasetHasWhatTheSieveHolds) {
  constexpr hsize_t kSize = 540;
  const hsize_t start = 5, stride = 3, count = 40;
  run([&] {
    std::vector<int> expected = elements(1, kSize);
    const Hid opened = create(file());
    put(opened, "d", 1, kSize);
    const Hid dataset(H5Dopen2(opened, "d", H5P_DEFAULT));
    for (int round = 2; round < 4; ++round) {
      ASSERT_GE(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, expected.data()),
                0);
      const std::vector<int> some = elements(round, count);
      const Hid space(H5Dget_space(dataset)), memory(H5Screate_simple(1, &count, nullptr));
      ASSERT_GE(H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, &stride, &count, nullptr), 0);
      ASSERT_GE(H5Dwrite(dataset, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, some.data()), 0);
      for (hsize_t i = 0; i < count; ++i) expected[start + i * stride] = some[i];
      const std::string copy = "copy" + std::to_string(round);
      ASSERT_GE(H5Ocopy(opened, "d", opened, copy.c_str(), H5P_DEFAULT, H5P_DEFAULT), 0);
      const Hid copied(H5Dopen2(opened, copy.c_str(), H5P_DEFAULT));
      std::vector<int> found(kSize);
      ASSERT_GE(H5Dread(copied, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, found.data()), 0);
      EXPECT_TRUE(found == expected) << round;
    }
  });
}

// Whatever the elements are, and however much larger they are in memory.
TEST_P(SieveCopy, ACopyHasCompoundsAndConvertedElementsToo) {
  struct Pair {
    int64_t a, b, c;
  };
  constexpr hsize_t kSize = 4000;
  const hsize_t start = 5, stride = 3, count = 40;
  run([&] {
    const Hid pairs(H5Tcreate(H5T_COMPOUND, sizeof(Pair)));
    H5Tinsert(pairs, "a", offsetof(Pair, a), H5T_NATIVE_INT64);
    H5Tinsert(pairs, "b", offsetof(Pair, b), H5T_NATIVE_INT64);
    H5Tinsert(pairs, "c", offsetof(Pair, c), H5T_NATIVE_INT64);
    const Hid packed(H5Tcreate(H5T_COMPOUND, 6));
    H5Tinsert(packed, "a", 0, H5T_STD_I16LE);
    H5Tinsert(packed, "b", 2, H5T_STD_I16LE);
    H5Tinsert(packed, "c", 4, H5T_STD_I16LE);
    std::vector<Pair> expected(kSize);
    for (size_t i = 0; i < kSize; ++i) expected[i].a = expected[i].b = static_cast<int64_t>(i);
    const Hid opened = create(file()), whole(H5Screate_simple(1, &kSize, nullptr));
    const Hid dataset(
        H5Dcreate2(opened, "d", packed, whole, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    ASSERT_GE(H5Dwrite(dataset, pairs, H5S_ALL, H5S_ALL, H5P_DEFAULT, expected.data()), 0);
    const std::vector<Pair> some(count, {-1, -2, -3});
    const Hid space(H5Dget_space(dataset)), memory(H5Screate_simple(1, &count, nullptr));
    ASSERT_GE(H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, &stride, &count, nullptr), 0);
    ASSERT_GE(H5Dwrite(dataset, pairs, memory, space, H5P_DEFAULT, some.data()), 0);
    for (hsize_t i = 0; i < count; ++i) expected[start + i * stride] = some[i];
    ASSERT_GE(H5Ocopy(opened, "d", opened, "copy", H5P_DEFAULT, H5P_DEFAULT), 0);
    const Hid copied(H5Dopen2(opened, "copy", H5P_DEFAULT));
    std::vector<Pair> found(kSize);
    ASSERT_GE(H5Dread(copied, pairs, H5S_ALL, H5S_ALL, H5P_DEFAULT, found.data()), 0);
    EXPECT_EQ(std::memcmp(found.data(), expected.data(), kSize * sizeof(Pair)), 0);
  });
}

// Natively the first write takes all of a small dataset into the sieve. With us some go past it, and what then goes there is a
// part, of which H5Ocopy takes no notice.
TEST_P(SieveCopy, ACopyHasWhatWasConvertedBesideWhatWentPastTheSieve) {
  constexpr hsize_t kSize = 5852, kPart = kSize / 4;
  run([&] {
    const Hid opened = create(file());
    const Hid group(H5Gcreate2(opened, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    Elements values(group, "d", kSize);
    for (hsize_t part = 0; part < 4; ++part)
      part == 1 ? values.WriteConverted(kPart * part, kPart) : values.Write(kPart * part, kPart);
    ASSERT_GE(H5Ocopy(group, "d", opened, "copy", H5P_DEFAULT, H5P_DEFAULT), 0);
    values.ExpectAt(opened, "copy");
    values.Write(kPart, 10);  // into the buffer that there is now
    ASSERT_GE(H5Ocopy(opened, "g", opened, "other", H5P_DEFAULT, H5P_DEFAULT), 0);
    values.ExpectAt(opened, "other/d");
  });
}

TEST_P(SieveCopy, ACopyHasWhatAnOpeningWroteThatIsClosed) {
  constexpr hsize_t kSize = 4000;
  run([&] {
    const Hid opened = create(file());
    Elements values(opened, "d", kSize);
    values.Write(0, 100);
    {
      const Hid again(H5Dopen2(opened, "d", H5P_DEFAULT));
      values.WriteTo(again, 1000, 100, piece_by_piece());
    }
    ASSERT_GE(H5Ocopy(opened, "d", opened, "copy", H5P_DEFAULT, H5P_DEFAULT), 0);
    values.ExpectAt(opened, "copy");
  });
}

TEST_P(SieveCopy, ACopyHasWhatWasWrittenThroughAVirtualDataset) {
  constexpr hsize_t kSize = 4000;
  run([&] {
    const Hid opened = create(file()), list(H5Pcreate(H5P_DATASET_CREATE));
    const Hid space(H5Screate_simple(1, &kSize, nullptr));
    ASSERT_GE(H5Pset_virtual(list, space, ".", "d", space), 0);
    const Hid view(
        H5Dcreate2(opened, "view", H5T_NATIVE_INT, space, H5P_DEFAULT, list, H5P_DEFAULT));
    Elements values(opened, "d", kSize);
    values.Write(0, 100);
    values.WriteTo(view, 1000, 100, piece_by_piece());
    ASSERT_GE(H5Ocopy(opened, "d", opened, "copy", H5P_DEFAULT, H5P_DEFAULT), 0);
    values.ExpectAt(opened, "copy");
  });
}

// More than the buffer has room for: natively the read moves its window, which begins where the first write did.
TEST_P(SieveCopy, ACopyOfALargerDatasetIsNoOlderThanNatively) {
  constexpr hsize_t kSize = 30'000;
  run([&] {
    const Hid opened = create(file());
    Elements values(opened, "d", kSize);
    for (const hsize_t at : {200, 300, 400}) values.Write(at, 100);
    values.WriteConverted(500, 100);
    values.Read(100, 20);
    ASSERT_GE(H5Ocopy(opened, "d", opened, "copy", H5P_DEFAULT, H5P_DEFAULT), 0);
    values.ExpectAt(opened, "copy");
  });
}

// With the default list HDF5 does not say how a transfer went. It converts 1 MiB at once.
TEST_P(SieveCopy, ACopyHasWhatWasConvertedInPartsWhereTheBufferIsLarge) {
  constexpr hsize_t kSize = 400'000, kPart = 150'000;
  run([&] {
    const Hid access(H5Pcreate(H5P_FILE_ACCESS));
    ASSERT_GE(H5Pset_sieve_buf_size(access, 4 << 20), 0);
    const Hid opened = create(file(), access);
    Elements values(opened, "d", kSize);
    values.Write(0, kPart);
    values.WriteConverted(kPart, kPart, H5P_DEFAULT);
    ASSERT_GE(H5Ocopy(opened, "d", opened, "copy", H5P_DEFAULT, H5P_DEFAULT), 0);
    values.ExpectAt(opened, "copy");
  });
}

// HDF5 makes the objects of all open datasets anew: what was known by their addresses is of no use any more.
TEST_P(SieveCopy, ACopyHasWhatWasWrittenBeforeOthersReadTheFile) {
  run([&] {
    const Hid access(H5Pcreate(H5P_FILE_ACCESS));
    ASSERT_GE(H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST), 0);
    const Hid opened = create(file(), access);
    std::vector<std::unique_ptr<Elements>> values;
    for (const char* name : {"a", "b", "c"}) {
      values.push_back(std::make_unique<Elements>(opened, name, 4000));
      values.back()->Write(0, 100);
      values.back()->WriteConverted(1000, 100);
    }
    ASSERT_GE(H5Fstart_swmr_write(opened), 0);
    for (const auto& each : values) {
      each->Write(0, 100);
      each->WriteConverted(2000, 100);
    }
    const Hid other = create(in_folder("other.h5"));
    for (const char* name : {"a", "b", "c"}) {
      ASSERT_GE(H5Ocopy(opened, name, other, name, H5P_DEFAULT, H5P_DEFAULT), 0);
      values[static_cast<size_t>(name[0] - 'a')]->ExpectAt(other, name);
    }
  });
}

// To look at these takes memory of HDF5's, or the file itself.
TEST_P(SieveCopy, ACopyHasStringsAndReferencesToo) {
  constexpr hsize_t kSize = 900, kPart = 100;
  run([&] {
    const Hid opened = create(file()), space(H5Screate_simple(1, &kSize, nullptr));
    const Hid text(H5Tcopy(H5T_C_S1)), list = piece_by_piece();
    H5Tset_size(text, H5T_VARIABLE);
    const Hid strings(
        H5Dcreate2(opened, "strings", text, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    const Hid references(H5Dcreate2(opened, "references", H5T_STD_REF_OBJ, space, H5P_DEFAULT,
                                    H5P_DEFAULT, H5P_DEFAULT));
    std::vector<const char*> words(kSize, "before");
    std::vector<hobj_ref_t> places(kSize);
    ASSERT_GE(H5Rcreate(places.data(), opened, "strings", H5R_OBJECT, H5I_INVALID_HID), 0);
    std::ranges::fill(places, places[0]);
    ASSERT_GE(H5Dwrite(strings, text, H5S_ALL, H5S_ALL, H5P_DEFAULT, words.data()), 0);
    ASSERT_GE(H5Dwrite(references, H5T_STD_REF_OBJ, H5S_ALL, H5S_ALL, H5P_DEFAULT, places.data()),
              0);
    const hsize_t start = kSize / 2;
    const Hid memory(H5Screate_simple(1, &kPart, nullptr));
    ASSERT_GE(H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, nullptr, &kPart, nullptr), 0);
    std::fill_n(words.begin() + start, kPart, "after");
    hobj_ref_t other = 0;
    ASSERT_GE(H5Rcreate(&other, opened, "references", H5R_OBJECT, H5I_INVALID_HID), 0);
    std::fill_n(places.begin() + start, kPart, other);
    ASSERT_GE(H5Dwrite(strings, text, memory, space, list, words.data() + start), 0);
    ASSERT_GE(H5Dwrite(references, H5T_STD_REF_OBJ, memory, space, list, places.data() + start), 0);
    for (const char* name : {"strings", "references"}) {
      const std::string copy = std::string(name) + " copied";
      ASSERT_GE(H5Ocopy(opened, name, opened, copy.c_str(), H5P_DEFAULT, H5P_DEFAULT), 0);
    }
    const Hid copied(H5Dopen2(opened, "strings copied", H5P_DEFAULT));
    std::vector<char*> found(kSize);
    ASSERT_GE(H5Dread(copied, text, H5S_ALL, H5S_ALL, H5P_DEFAULT, found.data()), 0);
    for (size_t i = 0; i < kSize; ++i) {
      ASSERT_STREQ(found[i] != nullptr ? found[i] : "nothing", words[i]) << i;
    }
    const Hid all(H5Screate_simple(1, &kSize, nullptr));
    H5Treclaim(text, all, H5P_DEFAULT, found.data());
    const Hid others(H5Dopen2(opened, "references copied", H5P_DEFAULT));
    std::vector<hobj_ref_t> seen(kSize);
    ASSERT_GE(H5Dread(others, H5T_STD_REF_OBJ, H5S_ALL, H5S_ALL, H5P_DEFAULT, seen.data()), 0);
    EXPECT_TRUE(seen == places);
  });
}

// A read takes the rest of the dataset into the sieve buffer, from where it begins, and the write that follows changes it there.
TEST_P(SieveCopy, ACopyHasWhatWasWrittenWhereSomethingWasReadBefore) {
  constexpr hsize_t kSize = 4000;
  Environment unlocked = environment();
  unlocked["HDF5_USE_FILE_LOCKING"] = "FALSE";
  run(
      [&] {
        const Hid opened = create(file());
        Elements values(opened, "d", kSize);
        values.Write(0, 100);
        values.Read(1000, 10);
        values.Write(1005, 1);
        ASSERT_GE(H5Ocopy(opened, "d", opened, "copy", H5P_DEFAULT, H5P_DEFAULT), 0);
        values.ExpectAt(opened, "copy");
      },
      unlocked);
}

// What HDF5's page buffer gives after a large write depends on the small reads before, so a copy must not make any of its own.
TEST_P(SieveCopy, ACopyLeavesAPageBufferAlone) {
  constexpr hsize_t kSize = 14'128;
  run([&] {
    const Hid creation(H5Pcreate(H5P_FILE_CREATE)), access(H5Pcreate(H5P_FILE_ACCESS));
    ASSERT_GE(H5Pset_file_space_strategy(creation, H5F_FSPACE_STRATEGY_PAGE, false, 1), 0);
    ASSERT_GE(H5Pset_file_space_page_size(creation, 4096), 0);
    ASSERT_GE(H5Pset_page_buffer_size(access, 128 * 1024, 0, 0), 0);
    ASSERT_GE(H5Pset_sieve_buf_size(access, 1), 0);
    const Hid opened(H5Fcreate(file().c_str(), H5F_ACC_TRUNC, creation, access));
    Elements values(opened, "d", kSize);
    values.WriteTo(values.dataset(), 11'410, 338, piece_by_piece());
    values.Write(88, 2146);
    values.Write(7408, 6720);
    values.Write(13'910, 6);
    ASSERT_GE(H5Ocopy(opened, "d", opened, "copy", H5P_DEFAULT, H5P_DEFAULT), 0);
    values.ExpectAt(opened, "copy");
    values.ExpectAt(opened, "d");
  });
}

class SieveCopyHeld : public Conformance {};

// A flush would do both.
TEST_P(SieveCopyHeld, ACopyNeitherWaitsForStorageNorCallsTheProgram) {
  constexpr hsize_t kSize = 4000;
  run([&] {
    int calls = 0;
    const Hid access(H5Pcreate(H5P_FILE_ACCESS));
    const auto count = [](hid_t, void* data) -> herr_t { return ++*static_cast<int*>(data), 0; };
    ASSERT_GE(H5Pset_object_flush_cb(access, count, &calls), 0);
    const Hid opened = create(file(), access);
    Elements values(opened, "d", kSize);
    ASSERT_GE(H5Fflush(opened, H5F_SCOPE_LOCAL), 0);
    storage::hold();
    values.Write(0, 100);
    values.WriteConverted(1000, 100);
    ASSERT_GE(H5Ocopy(opened, "d", opened, "copy", H5P_DEFAULT, H5P_DEFAULT), 0);
    values.ExpectAt(opened, "copy");
    storage::release();
    EXPECT_EQ(calls, 0);
  });
}

CONFORMANCE_WAYS(SieveCopyHeld, kNative, kImplicit, kDeferredAll);
CONFORMANCE_WAYS(SieveCopy, kNative, kImplicit, kDeferredAll, kAuto);

}  // namespace
}  // namespace tidelane::testing
