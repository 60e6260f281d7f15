// What is known of a dataset is shared, asked once, and forgotten at once.
#include "vol/dataset_catalogue.h"

#include <vector>

#include "vol/connector_fixture.h"

namespace tidelane::vol {
namespace {

int forgotten;

struct Sieve final : DatasetState {
  static constexpr Kind kKind = kSieve;
  void Forgotten(LibraryState&) override { ++forgotten; }
  int value = 0;
};

struct Chunks final : DatasetState {
  static constexpr Kind kKind = kFiltered;
  bool stays() const override { return pending; }
  bool pending = false;
};

class DatasetCatalogueTest : public ConnectorTest {
 protected:
  void SetUp() override {
    ConnectorTest::SetUp();
    forgotten = 0;
  }
  void* At(int number) { return places_ + number; }

  DatasetCatalogue datasets_;
  char places_[4];
};

TEST_F(DatasetCatalogueTest, StatesAreTheirUsersOwn) {
  EXPECT_EQ(datasets_.Find(At(0)), nullptr);
  datasets_.At(At(0)).Get<Sieve>().value = 1;
  datasets_.At(At(1)).Get<Sieve>().value = 2;
  EXPECT_EQ(datasets_.Find<Sieve>(At(0))->value, 1);
  EXPECT_EQ(datasets_.Find<Sieve>(At(1))->value, 2);
  EXPECT_EQ(datasets_.Find<Chunks>(At(0)), nullptr);
  int seen = 0;
  datasets_.ForEach<Sieve>([&](void*, const Sieve& state) { seen += state.value; });
  EXPECT_EQ(seen, 3);
}

TEST_F(DatasetCatalogueTest, AnotherDatasetAtTheSameAddressIsAnotherOne) {
  const uint64_t number = datasets_.At(At(0)).number;
  datasets_.At(At(0)).Get<Sieve>().value = 1;
  datasets_.Forget(library(), At(0));
  EXPECT_EQ(forgotten, 1);
  EXPECT_EQ(datasets_.Find(At(0)), nullptr);
  EXPECT_NE(datasets_.At(At(0)).number, number);
  EXPECT_EQ(datasets_.Find<Sieve>(At(0)), nullptr);
  datasets_.Forget(library(), At(1));  // of which nothing is known
}

// More than are found in one step, at addresses like those of an allocator.
TEST_F(DatasetCatalogueTest, EachOfThousandsIsFoundUntilItIsForgotten) {
  constexpr int kMany = 5000;
  std::vector<char> room(size_t{kMany} * 96);
  const auto at = [&](int i) -> void* { return room.data() + size_t{96} * static_cast<size_t>(i); };
  for (int i = 0; i < kMany; ++i) datasets_.At(at(i)).Get<Sieve>().value = i;
  for (int turn = 0; turn < 2; ++turn) {
    for (int i = 0; i < kMany; ++i) ASSERT_EQ(datasets_.Find<Sieve>(at(i))->value, i);
  }
  for (int i = 0; i < kMany; i += 2) datasets_.Forget(library(), at(i));
  for (int i = 0; i < kMany; ++i) ASSERT_EQ(datasets_.Find(at(i)) != nullptr, i % 2 != 0) << i;
  datasets_.ForgetAll(library());
  for (int i = 0; i < kMany; ++i) ASSERT_EQ(datasets_.Find(at(i)), nullptr) << i;
}

TEST_F(DatasetCatalogueTest, WhatStaysIsForgottenByItselfOnly) {
  datasets_.At(At(0)).Get<Chunks>().pending = true;
  datasets_.At(At(1)).Get<Chunks>();
  datasets_.At(At(2)).Get<Sieve>();
  datasets_.ForgetAll(library());
  EXPECT_NE(datasets_.Find<Chunks>(At(0)), nullptr);
  EXPECT_EQ(datasets_.Find(At(1)), nullptr);
  EXPECT_EQ(datasets_.Find(At(2)), nullptr);
  EXPECT_EQ(forgotten, 1);
  datasets_.Forget(library(), At(0));
  EXPECT_EQ(datasets_.Find(At(0)), nullptr);
}

TEST_F(DatasetCatalogueTest, FactsAreAskedOnce) {
  const hid_t file = Create();
  const hsize_t extent = 100, chunk = 7;
  const hid_t space = H5Screate_simple(1, &extent, nullptr);
  const hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(dcpl, 1, &chunk);
  H5Pset_shuffle(dcpl);
  const hid_t dataset =
      H5Dcreate2(file, "d", H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
  ASSERT_GE(dataset, 0);
  struct Question {
    LibraryState& library;
    void* object;
    const DatasetFacts* first;
    const DatasetFacts* second;
  } asked{library(), H5VLobject(dataset), nullptr, nullptr};
  // As in a callback of ours: from inside HDF5, which a callback of its own gets us into.
  H5Iiterate(
      H5I_FILE,
      [](hid_t, void* data) -> herr_t {
        auto* self = static_cast<Question*>(data);
        const hid_t dxpl = self->library.default_dxpl;
        self->first = &FactsOf(self->library, self->object, dxpl);
        self->second = &FactsOf(self->library, self->object, dxpl);
        return 1;  // once
      },
      &asked);
  ASSERT_NE(asked.first, nullptr);
  EXPECT_EQ(asked.first, asked.second);
  EXPECT_FALSE(asked.first->committed_type);
  EXPECT_EQ(asked.first->elements, DatasetFacts::Elements::kPlain);
  EXPECT_EQ(asked.first->layout, H5D_CHUNKED);
  EXPECT_EQ(asked.first->grid.chunk[0], chunk);
  EXPECT_EQ(asked.first->grid.element, sizeof(int));
  EXPECT_TRUE(asked.first->has_plain_chunks());
  ASSERT_TRUE(asked.first->filters.has_value());
  EXPECT_EQ(asked.first->filters->size(), 1u);
  EXPECT_GE(H5Dclose(dataset), 0);
  EXPECT_EQ(DatasetCatalogue::Of(library()).Find(asked.object), nullptr);
  H5Pclose(dcpl);
  H5Sclose(space);
  EXPECT_GE(H5Fclose(file), 0);
}

}  // namespace
}  // namespace tidelane::vol
