// Elements that lie between metadata. HDF5's metadata accumulator reads them with the metadata before them, and writes them back, as they were,
// with the metadata behind them: natively they may be lost, and are with every version up to 2.2 in these programs.
#include <string>
#include <vector>

#include "conformance/fixture.h"

namespace tidelane::testing {
namespace {

class Accumulator : public Conformance {
 protected:
  static constexpr hsize_t kFew = 24;  // they lie whole in what HDF5 reads with a header

  static Hid small_dataset(hid_t file, const char* name) {
    const Hid space(H5Screate_simple(1, &kFew, nullptr));
    const Hid early(H5Pcreate(H5P_DATASET_CREATE));
    EXPECT_GE(H5Pset_alloc_time(early, H5D_ALLOC_TIME_EARLY), 0);
    return Hid(H5Dcreate2(file, name, H5T_NATIVE_INT, space, H5P_DEFAULT, early, H5P_DEFAULT));
  }
  static void note(hid_t object) {
    const Hid space(H5Screate(H5S_SCALAR));
    EXPECT_TRUE(
        Hid(H5Acreate2(object, "note", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT)).valid());
  }
  // Header, elements, header, elements: each is allocated where the file ends.
  void make(hid_t fapl) {
    const Hid fcpl(H5Pcreate(H5P_FILE_CREATE));
    EXPECT_GE(H5Pset_file_space_strategy(fcpl, H5F_FSPACE_STRATEGY_NONE, false, 1), 0);
    const Hid made(H5Fcreate(file().c_str(), H5F_ACC_TRUNC, fcpl, fapl));
    small_dataset(made, "first");
    small_dataset(made, "second");
  }
  // The accumulator has what lies before the first header when that is read, and then what lies around the elements changes.
  void change(hid_t fapl) {
    const Hid opened = open(file(), H5F_ACC_RDWR, fapl);
    EXPECT_GE(H5Lcreate_soft("/first", opened, "link", H5P_DEFAULT, H5P_DEFAULT), 0);
    EXPECT_GE(H5Fflush(opened, H5F_SCOPE_LOCAL), 0);
    const Hid first(H5Dopen2(opened, "first", H5P_DEFAULT));
    const Hid second(H5Dopen2(opened, "second", H5P_DEFAULT));
    const std::vector<int> values = elements(1, kFew);
    EXPECT_GE(H5Dwrite(first, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
    note(first);
    note(second);
  }
  void expect_kept(H5F_libver_t oldest) {
    run([&] {
      const Hid fapl(H5Pcreate(H5P_FILE_ACCESS));
      EXPECT_GE(H5Pset_libver_bounds(fapl, oldest, H5F_LIBVER_LATEST), 0);
      make(fapl);
      change(fapl);
    });
    run_natively([&] {
      const Hid opened = open(file(), H5F_ACC_RDONLY);
      const Hid dataset(H5Dopen2(opened, "first", H5P_DEFAULT));
      std::vector<int> found(kFew);
      EXPECT_GE(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, found.data()), 0);
      EXPECT_TRUE(found == elements(1, kFew));
    });
  }
};

TEST_P(Accumulator, ElementsBetweenMetadataAreKept) { expect_kept(H5F_LIBVER_EARLIEST); }
TEST_P(Accumulator, SoTheyAreInFilesOfTheLatestFormat) { expect_kept(H5F_LIBVER_LATEST); }

INSTANTIATE_TEST_SUITE_P(Ways, Accumulator,
                         ::testing::Values(kImplicit, kDeferredAll, kAuto, kAutoDeferred, kAtomic),
                         [](const auto& way) { return way.param.name; });

}  // namespace
}  // namespace tidelane::testing
