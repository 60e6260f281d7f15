/// \file
/// Finding the library that calls us, and the ids and errors we keep in it.
#include "h5/library.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "h5/driver.h"
#include "h5/error.h"
#include "h5/fake_driver.h"
#include "h5/owned_id.h"

namespace tidelane::h5 {

namespace {

const void* InHdf5() { return reinterpret_cast<const void*>(&H5open); }

Library& ThisLibrary() {
  H5open();
  static const DriverTable kFake = FakeDriver();
  RegisterDriver(kFake);
  std::string why;
  const int slot = SlotOf(InHdf5(), why);
  EXPECT_EQ(slot, 0) << why;
  return LibraryAt(slot);
}

// The texts of a stack, innermost first.
std::vector<std::string> Texts(hid_t stack) {
  std::vector<std::string> texts;
  H5Ewalk2(
      stack, H5E_WALK_UPWARD,
      [](unsigned, const H5E_error2_t* error, void* into) -> herr_t {
        static_cast<std::vector<std::string>*>(into)->emplace_back(error->desc);
        return 0;
      },
      &texts);
  return texts;
}

// Leaves HDF5's error of a failed call on the stack, without printing it.
void FailInHdf5() {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  H5Fopen("there is no such file", H5F_ACC_RDONLY, H5P_DEFAULT);
}

TEST(LibraryTest, TheSameLibraryKeepsItsSlot) {
  Library& library = ThisLibrary();
  std::string why;
  EXPECT_EQ(SlotOf(reinterpret_cast<const void*>(&H5Fopen), why), library.slot());
  EXPECT_EQ(&LibraryOf<0>(), &library);
  EXPECT_STREQ(library.native().name, "native");
  EXPECT_EQ(library.Pcopy, &H5Pcopy);
}

TEST(LibraryTest, ALibraryWithoutOurFunctionsIsRefusedWithTheReason) {
  std::string why;
  EXPECT_EQ(SlotOf(reinterpret_cast<const void*>(&std::puts), why), -1);
  EXPECT_NE(why.find("has no H5"), std::string::npos) << why;
  const int on_the_stack = 0;
  EXPECT_EQ(SlotOf(&on_the_stack, why), -1);
  EXPECT_NE(why.find("unknown to the dynamic linker"), std::string::npos) << why;
  EXPECT_EQ(ThisLibrary().slot(), 0) << "a refusal takes no slot";
}

TEST(LibraryTest, Sec2IsRecognisedAndOurDriverIsAnother) {
  Library& library = ThisLibrary();
  const OwnedId fapl(library, H5Pcreate(H5P_FILE_ACCESS));
  EXPECT_EQ(H5Pget_driver(fapl.get()), library.Sec2Id(fapl.get()));
  EXPECT_NE(library.DriverId(), library.Sec2Id(fapl.get()));
  EXPECT_EQ(library.DriverId(), library.DriverId()) << "registered once";
  H5Pset_fapl_core(fapl.get(), 1 << 20, false);
  EXPECT_NE(H5Pget_driver(fapl.get()), library.Sec2Id(fapl.get()));
}

TEST(LibraryTest, IdsAreAskedAnewWhenTheLibraryWasReopened) {
  Library& library = ThisLibrary();
  EXPECT_GE(library.DriverId(), 0);
  H5close();
  library.ForgetIds();
  H5open();
  const OwnedId fapl(library, H5Pcreate(H5P_FILE_ACCESS));
  EXPECT_GE(H5Pset_driver(fapl.get(), library.DriverId(), nullptr), 0);
  const hid_t native = library.AcquireNativeId();
  EXPECT_EQ(H5Iget_type(native), H5I_VOL);
  H5Idec_ref(native);
}

TEST(LibraryTest, WorkInsideACallRunsOnceWhereverItIsAskedFor) {
  Library& library = ThisLibrary();
  int runs = 0;
  std::pair<Library&, int&> context{library, runs};
  const auto count = [](void* counter) { ++*static_cast<int*>(counter); };
  EXPECT_TRUE(library.CallInside(count, &runs));
  EXPECT_EQ(runs, 1);
  EXPECT_TRUE(library.CallInside(
      [](void* pair) {
        auto& [outer, counter] = *static_cast<std::pair<Library&, int&>*>(pair);
        EXPECT_TRUE(outer.CallInside([](void* inner) { ++*static_cast<int*>(inner); }, &counter));
        H5Pclose(H5Pcreate(H5P_DATASET_XFER));
      },
      &context));
  EXPECT_EQ(runs, 2);
  EXPECT_TRUE(library.CallInside(count, &runs));
  EXPECT_EQ(runs, 3);
  library.ForgetIds();
}

// HDF5 tries for ever to close what it does not know how to close, and says so on stderr.
TEST(LibraryTest, ALibraryThatWasEnteredComesToItsEnd) {
  Library& library = ThisLibrary();
  bool ran = false;
  const auto run = [](void* flag) { *static_cast<bool*>(flag) = true; };
  EXPECT_TRUE(library.CallInside(run, &ran));
  ::testing::internal::CaptureStderr();
  H5close();
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  library.ForgetIds();
  ran = false;
  H5open();
  EXPECT_TRUE(library.CallInside(run, &ran));
  EXPECT_TRUE(ran);
  library.ForgetIds();
}

// HDF5 numbers types of ids in turn and has 112 for programs, whose own tests use them all.
TEST(LibraryTest, CallsInsideTakeNoTypeOfIdsFromTheProgram) {
  H5close();  // whatever was registered before
  ThisLibrary().ForgetIds();
  H5open();
  bool ran = false;
  EXPECT_TRUE(ThisLibrary().CallInside([](void* flag) { *static_cast<bool*>(flag) = true; }, &ran));
  EXPECT_TRUE(ran);
  const H5I_type_t first = H5Iregister_type(64, 0, nullptr);
  EXPECT_EQ(first, H5I_NTYPES);
  EXPECT_GE(H5Idestroy_type(first), 0);
  EXPECT_TRUE(ThisLibrary().CallInside([](void*) {}, nullptr));
}

TEST(OwnedIdTest, GivesBackExactlyItsOwnReference) {
  Library& library = ThisLibrary();
  const hid_t id = H5Pcreate(H5P_DATASET_XFER);
  H5Iinc_ref(id);
  {
    OwnedId first(library, id);
    OwnedId second = std::move(first);
    EXPECT_FALSE(first.valid());
    EXPECT_EQ(H5Iget_ref(id), 2);
  }
  EXPECT_EQ(H5Iget_ref(id), 1);
  OwnedId kept(library, id);
  EXPECT_EQ(kept.Release(), id);
  kept.Reset();
  EXPECT_EQ(H5Iget_ref(id), 1);
  H5Pclose(id);
}

TEST(ErrorTest, ThePushedCauseCarriesErrnoAndFile) {
  Library& library = ThisLibrary();
  H5Eclear2(H5E_DEFAULT);
  PushError(library, Status::Failed(ENOSPC, "write").At("run.h5", 4096, 512));
  const std::vector<std::string> texts = Texts(H5E_DEFAULT);
  ASSERT_EQ(texts.size(), 1u);
  for (const char* part :
       {"run.h5", "512 bytes", "4096", "errno = 28", "No space left on device"}) {
    EXPECT_NE(texts[0].find(part), std::string::npos) << texts[0];
  }
}

TEST(ErrorTest, PushingKeepsWhatIsThere) {
  Library& library = ThisLibrary();
  FailInHdf5();
  const std::vector<std::string> before = Texts(H5E_DEFAULT);
  ASSERT_FALSE(before.empty());
  library.ForgetIds();  // so that pushing has to register its messages first
  PushError(library, "a setting that does not exist");
  const std::vector<std::string> after = Texts(H5E_DEFAULT);
  ASSERT_EQ(after.size(), before.size() + 1);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), after.begin()));
}

TEST(ErrorTest, AKeptStackSurvivesPublicCalls) {
  Library& library = ThisLibrary();
  FailInHdf5();
  const std::vector<std::string> before = Texts(H5E_DEFAULT);
  {
    const KeepErrorStack keep(library);
    H5Pclose(H5Pcreate(H5P_DATASET_XFER));  // clears the stack
  }
  EXPECT_EQ(Texts(H5E_DEFAULT), before);
}

TEST(ErrorTest, AStackOfItsOwnLeavesTheCurrentOneAlone) {
  Library& library = ThisLibrary();
  FailInHdf5();
  const std::vector<std::string> before = Texts(H5E_DEFAULT);
  const hid_t first = MakeErrorStack(library, Status::Failed(EIO, "write").At("a.h5", 0, 8));
  const hid_t second = MakeErrorStack(library, Status::Failed(EIO, "write").At("a.h5", 0, 8));
  EXPECT_NE(first, second) << "each caller closes its own";
  EXPECT_EQ(Texts(H5E_DEFAULT), before);
  H5Eclose_stack(first);
  ASSERT_EQ(Texts(second).size(), 1u);
  EXPECT_NE(Texts(second)[0].find("a.h5"), std::string::npos);
  H5Eclose_stack(second);
}

}  // namespace
}  // namespace tidelane::h5
