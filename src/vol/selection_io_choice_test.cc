/// \file
/// How selections fall into runs, against counting them one by one, and which writes go to the
/// sieve.
#include "vol/selection_io_choice.h"

#include <array>
#include <random>
#include <vector>

#include "file/file_fixture.h"
#include "vol/connector_fixture.h"
#include "vol/dataset_calls.h"

namespace tidelane::vol {
namespace {

struct Hyperslab {
  int rank;
  std::array<hsize_t, 4> extent, start, stride, count, block;
};

bool Selected(const Hyperslab& slab, uint64_t element) {
  for (int d = slab.rank - 1; d >= 0; --d) {
    const uint64_t at = element % slab.extent[d];
    element /= slab.extent[d];
    if (at < slab.start[d]) return false;
    const uint64_t from_start = at - slab.start[d];
    if (from_start / slab.stride[d] >= slab.count[d] ||
        from_start % slab.stride[d] >= slab.block[d])
      return false;
  }
  return true;
}

uint64_t CountRuns(const Hyperslab& slab) {
  uint64_t elements = 1;
  for (int d = 0; d < slab.rank; ++d) elements *= slab.extent[d];
  uint64_t runs = 0;
  bool before = false;
  for (uint64_t element = 0; element < elements; ++element) {
    const bool now = Selected(slab, element);
    if (now && !before) ++runs;
    before = now;
  }
  return runs;
}

// Whole rows of whole planes make one run; a run that only happens to end where the next begins may
// be counted as two.
TEST(RunsOfHyperslabTest, AgreesWithCountingOneByOne) {
  std::mt19937 random(20240229);
  const auto pick = [&](hsize_t least, hsize_t most) {
    return least + random() % (most - least + 1);
  };
  for (int round = 0; round < 3000; ++round) {
    Hyperslab slab{};
    slab.rank = static_cast<int>(pick(1, 4));
    for (int d = 0; d < slab.rank; ++d) {
      slab.block[d] = pick(1, 3);
      slab.stride[d] = slab.block[d] + pick(0, 2);
      slab.count[d] = pick(1, 3);
      slab.start[d] = pick(0, 1);
      const hsize_t needed = slab.start[d] + (slab.count[d] - 1) * slab.stride[d] + slab.block[d];
      slab.extent[d] = needed + pick(0, 1);
    }
    const uint64_t runs = RunsOfHyperslab(slab.rank, slab.extent.data(), slab.stride.data(),
                                          slab.count.data(), slab.block.data())
                              .runs;
    const uint64_t counted = CountRuns(slab);
    ASSERT_GE(runs, counted) << "round " << round;
    ASSERT_LE(runs, 2 * counted) << "round " << round;
    const bool starts_at_zero = slab.start == std::array<hsize_t, 4>{};
    ASSERT_TRUE(!starts_at_zero || slab.rank != 1 || runs == counted) << "round " << round;
  }
}

TEST(RunsOfHyperslabTest, ThePitchIsFromOneRowOfATileToTheNext) {
  const hsize_t extent[3] = {100, 200, 300}, one[3] = {1, 1, 1}, block[3] = {4, 5, 6};
  const Spread tile = RunsOfHyperslab(3, extent, one, one, block);
  EXPECT_EQ(tile.runs, 20u);
  EXPECT_EQ(tile.pitch, 300u);
  const hsize_t stride[3] = {1, 1, 10}, count[3] = {4, 5, 6};
  EXPECT_EQ(RunsOfHyperslab(3, extent, stride, count, one).pitch, 10u);
  EXPECT_EQ(RunsOfHyperslab(3, extent, one, one, extent).pitch, 0u) << "a single run";
}

class SieveChoiceTest : public ConnectorTest {
 protected:
  void SetUp() override {
    ConnectorTest::SetUp();
    bench_.config_.mode = Mode::kAuto;
    bench_.Open();
    ASSERT_TRUE(bench_.file_->Lock(true).ok());
    driver_file = bench_.file_;
    for (int i = 0; i < 8; ++i) {  // slow
      bench_.cost_model_->Stored(driver_file->identity().device, 1u << 20, 0, 50'000'000);
    }
    file_ = Create();  // teaches the library what the default transfer list is
    const hsize_t extent[2] = {64, 4096};
    space_ = H5Screate_simple(2, extent, nullptr);
    contiguous_ =
        H5Dcreate2(file_, "flat", H5T_NATIVE_CHAR, space_, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t chunk[2] = {16, 16};
    H5Pset_chunk(dcpl, 2, chunk);
    chunked_ =
        H5Dcreate2(file_, "chunked", H5T_NATIVE_CHAR, space_, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    H5Pclose(dcpl);
  }
  void TearDown() override {
    H5Sclose(space_);
    H5Dclose(contiguous_);
    H5Dclose(chunked_);
    EXPECT_GE(H5Fclose(file_), 0);
    ConnectorTest::TearDown();
  }

  /// `count` runs of 4 bytes, `apart` bytes from one another, in the first row.
  void SelectRuns(hsize_t count, hsize_t apart) {
    const hsize_t start[2] = {0, 0}, stride[2] = {1, apart}, counts[2] = {1, count},
                  block[2] = {1, 4};
    ASSERT_GE(H5Sselect_hyperslab(space_, H5S_SELECT_SET, start, stride, counts, block), 0);
  }
  void SelectRun(hsize_t row, hsize_t at, hsize_t length) {
    const hsize_t start[2] = {row, at}, count[2] = {1, length};
    ASSERT_GE(H5Sselect_hyperslab(space_, H5S_SELECT_SET, start, nullptr, count, nullptr), 0);
  }
  // As in a callback of ours: from inside HDF5, which a callback of its own gets us into.
  bool Choose(hid_t dataset, hid_t dxpl, Leaves leaves = Leaves::kNothing) {
    struct Question {
      LibraryState& library;
      void* object;
      hid_t space, dxpl;
      Leaves leaves;
      bool answer;
    } question{library(), H5VLobject(dataset), space_, dxpl, leaves, false};
    H5Iiterate(
        H5I_FILE,
        [](hid_t, void* data) -> herr_t {
          auto* self = static_cast<Question*>(data);
          const hid_t type = H5T_NATIVE_CHAR;
          const Gathering gathering = GatherWrites(self->library, 1, &self->object, &type,
                                                   &self->space, self->dxpl, self->leaves);
          EXPECT_EQ(driver_takes_singly, bool(gathering));
          self->answer = driver_takes_singly;
          return 1;  // once
        },
        &question);
    return question.answer;
  }
  // Of a dataset that nothing is known of.
  bool ChooseAnew(hid_t dataset) {
    ForgetDataset(library(), H5VLobject(dataset));
    return Choose(dataset, H5P_DATASET_XFER_DEFAULT);
  }

  FileBench bench_;
  hid_t file_ = h5::kNoId, space_ = h5::kNoId, contiguous_ = h5::kNoId, chunked_ = h5::kNoId;
};

TEST_F(SieveChoiceTest, LessDenseRunsGoToTheSieveWhereStorageIsAsQuickAsMemory) {
  constexpr uint64_t kMib = 1u << 20;
  model::CostModel& cost_model = *bench_.cost_model_;
  const uint64_t device = driver_file->identity().device, other = device + 1;
  const auto chosen = [&] { return ChooseAnew(contiguous_); };
  const auto stores = [&](uint64_t there, uint64_t ns) {
    for (int i = 0; i < 8; ++i) cost_model.Stored(there, kMib, 0, ns);
  };
  stores(device, 50'000'000);
  stores(other, 200'000);
  SelectRuns(20, 2048);
  EXPECT_FALSE(chosen()) << "another device is quick";
  stores(device, 200'000);
  stores(other, 50'000'000);
  EXPECT_TRUE(chosen());
  stores(device, 50'000'000);
  EXPECT_FALSE(chosen());
}

TEST_F(SieveChoiceTest, SmallWritesThatFollowEachOtherGoToTheSieveWhereStorageIsAsQuickAsMemory) {
  model::CostModel& cost_model = *bench_.cost_model_;
  const uint64_t device = driver_file->identity().device;
  const auto second_of = [&](hsize_t at, hsize_t length, Leaves leaves = Leaves::kNothing) {
    SelectRun(7, 0, 100);
    EXPECT_FALSE(ChooseAnew(contiguous_)) << "nothing came before it";
    SelectRun(7, at, length);
    return Choose(contiguous_, H5P_DATASET_XFER_DEFAULT, leaves);
  };
  for (int i = 0; i < 8; ++i) cost_model.Stored(device, 1u << 20, 0, 50'000'000);
  EXPECT_FALSE(second_of(100, 100)) << "storage is slow";
  for (int i = 0; i < 8; ++i) cost_model.Stored(device, 1u << 20, 0, 200'000);
  EXPECT_TRUE(second_of(100, 100));
  EXPECT_TRUE(second_of(100, 3996)) << "to the end of the row";
  EXPECT_FALSE(second_of(101, 100)) << "somewhere else";
  EXPECT_TRUE(second_of(0, 100)) << "the same again: it is stored once";
  EXPECT_FALSE(second_of(0, 50)) << "somewhere else";
  EXPECT_FALSE(second_of(100, 100, Leaves::kRequest)) << "somebody will ask for these bytes";
  driver_file->SetPaused(true);
  EXPECT_FALSE(second_of(100, 100)) << "the program wants to say when bytes are stored";
  driver_file->SetPaused(false);
  SelectRun(1, 0, 4096);
  EXPECT_FALSE(Choose(chunked_, H5P_DATASET_XFER_DEFAULT));
  SelectRun(2, 0, 4096);
  EXPECT_FALSE(Choose(chunked_, H5P_DATASET_XFER_DEFAULT));
  const hsize_t start[2] = {3, 0}, counts[2] = {4, 4096};
  SelectRun(2, 0, 4096);
  ChooseAnew(contiguous_);
  H5Sselect_hyperslab(space_, H5S_SELECT_SET, start, nullptr, counts, nullptr);
  EXPECT_FALSE(Choose(contiguous_, H5P_DATASET_XFER_DEFAULT))
      << "long enough to be written by itself";
}

// It has a sieve buffer from then on, and goes on with it whatever the list says.
TEST_F(SieveChoiceTest, ADatasetThatTheSieveHasIsLeftAlone) {
  SelectRuns(200, 16);
  EXPECT_TRUE(Choose(contiguous_, H5P_DATASET_XFER_DEFAULT));
  for (unsigned i = 0; i < 4 * kHabit; ++i) {
    EXPECT_FALSE(Choose(contiguous_, H5P_DATASET_XFER_DEFAULT));
  }
  EXPECT_TRUE(ChooseAnew(contiguous_)) << "opened again";
}

TEST_F(SieveChoiceTest, WritesThatAreNotForTheSieveAreSoonLookedAtOnlyNowAndThen) {
  SelectRuns(2, 2048);
  for (unsigned i = 0; i < kHabit; ++i) {
    EXPECT_FALSE(Choose(contiguous_, H5P_DATASET_XFER_DEFAULT));
  }
  SelectRuns(200, 16);
  unsigned unseen = 0;
  while (!Choose(contiguous_, H5P_DATASET_XFER_DEFAULT)) {
    ASSERT_LE(++unseen, kHabit);
  }
  EXPECT_EQ(unseen, kHabit);
}

TEST_F(SieveChoiceTest, DatasetsWrittenInTurnKeepTheirHabits) {
  std::vector<hid_t> datasets;
  for (int i = 0; i < 8; ++i) {
    datasets.push_back(H5Dcreate2(file_, std::to_string(i).c_str(), H5T_NATIVE_INT, space_,
                                  H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  }
  SelectRuns(200, 16);
  for (const hid_t dataset : datasets) {
    EXPECT_TRUE(Choose(dataset, H5P_DATASET_XFER_DEFAULT));
  }
  for (const hid_t dataset : datasets) {
    EXPECT_FALSE(Choose(dataset, H5P_DATASET_XFER_DEFAULT));
    H5Dclose(dataset);
  }
}

TEST_F(SieveChoiceTest, DenseRunsOfContiguousStorageGoToTheSieve) {
  SelectRuns(200, 16);
  EXPECT_TRUE(Choose(contiguous_, H5P_DATASET_XFER_DEFAULT));
  EXPECT_FALSE(Choose(chunked_, H5P_DATASET_XFER_DEFAULT));
}

TEST_F(SieveChoiceTest, SparseFewOrWholeSelectionsDoNot) {
  const hsize_t start[2] = {0, 0}, counts[2] = {64, 4};  // a column: runs 4096 bytes apart
  H5Sselect_hyperslab(space_, H5S_SELECT_SET, start, nullptr, counts, nullptr);
  EXPECT_FALSE(Choose(contiguous_, H5P_DATASET_XFER_DEFAULT));
  SelectRuns(kSieveFromRuns - 1, 16);
  EXPECT_FALSE(Choose(contiguous_, H5P_DATASET_XFER_DEFAULT));
  H5Sselect_all(space_);
  EXPECT_FALSE(Choose(contiguous_, H5P_DATASET_XFER_DEFAULT));
}

TEST_F(SieveChoiceTest, PointsCountAsRuns) {
  std::vector<hsize_t> near, far;
  for (hsize_t i = 0; i < 40; ++i) {
    near.insert(near.end(), {0, (i * 7) % 300});
    far.insert(far.end(), {i, (i * 701) % 4096});
  }
  H5Sselect_elements(space_, H5S_SELECT_SET, 40, near.data());
  EXPECT_TRUE(Choose(contiguous_, H5P_DATASET_XFER_DEFAULT));
  H5Sselect_elements(space_, H5S_SELECT_SET, 40, far.data());
  EXPECT_FALSE(ChooseAnew(contiguous_));
}

TEST_F(SieveChoiceTest, AProgramsOwnTransferListMakesNoDifference) {
  const hid_t own = H5Pcreate(H5P_DATASET_XFER);
  SelectRuns(200, 16);
  EXPECT_TRUE(Choose(contiguous_, own));
  H5Pclose(own);
}

TEST_F(SieveChoiceTest, WhereNothingIsLockedAColumnGoesToTheSieveAndReadsDo) {
  const hsize_t start[2] = {0, 0}, counts[2] = {64, 4};
  H5Sselect_hyperslab(space_, H5S_SELECT_SET, start, nullptr, counts, nullptr);
  void* object = H5VLobject(contiguous_);
  const hid_t type = H5T_NATIVE_INT;
  const auto reads = [&] {
    return bool(GatherReads(library(), 1, &object, &type, &space_, library().default_dxpl));
  };
  EXPECT_FALSE(ChooseAnew(contiguous_));
  EXPECT_FALSE(reads());
  ASSERT_TRUE(bench_.file_->Unlock(CallContext::Current()).ok());
  NoteSieve(library(), *bench_.file_);
  EXPECT_TRUE(ChooseAnew(contiguous_));
  EXPECT_TRUE(reads());
  EXPECT_FALSE(Choose(chunked_, H5P_DATASET_XFER_DEFAULT));
}

// Chunks have a cache of their own, and what goes past it comes in many pieces: our driver takes them together.
TEST_F(SieveChoiceTest, WhereNothingIsLockedChunksGoToTheDriverUnlessASieveIsAmongThem) {
  ASSERT_TRUE(bench_.file_->Unlock(CallContext::Current()).ok());
  NoteSieve(library(), *bench_.file_);
  const auto gathers = [&](const std::vector<hid_t>& datasets) {
    struct Question {
      LibraryState& library;
      std::vector<void*> objects;
      hid_t space;
      bool answer;
    } question{library(), {}, space_, false};
    for (const hid_t dataset : datasets) question.objects.push_back(H5VLobject(dataset));
    // From inside HDF5, as Choose.
    H5Iiterate(
        H5I_FILE,
        [](hid_t, void* data) -> herr_t {
          auto* self = static_cast<Question*>(data);
          const hid_t types[2] = {H5T_NATIVE_CHAR, H5T_NATIVE_CHAR};
          const hid_t spaces[2] = {self->space, self->space};
          self->answer = bool(GatherReads(self->library, self->objects.size(), self->objects.data(),
                                          types, spaces, self->library.default_dxpl));
          return 1;  // once
        },
        &question);
    return question.answer;
  };
  EXPECT_FALSE(gathers({chunked_}));
  EXPECT_FALSE(gathers({chunked_, chunked_}));
  EXPECT_TRUE(gathers({contiguous_}));
  EXPECT_TRUE(gathers({contiguous_, chunked_}));
  EXPECT_TRUE(gathers({chunked_, contiguous_}));
}

}  // namespace
}  // namespace tidelane::vol
