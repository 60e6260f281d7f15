/// \file
/// The pending map against a model: two byte arrays (what the program has written, what storage
/// got) and, for every byte, the number of the write that put it there. Fixed seeds; a failing one
/// is named in the message.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "extent/pending_map.h"

namespace tidelane {
namespace {

constexpr uint64_t kSize = 600;
constexpr uint64_t kHeldBegin = 40;
constexpr uint64_t kHeldEnd = 72;
constexpr unsigned kSteps = 1500;

class Model {
 public:
  Model(unsigned seed, bool lossy_storage)
      : random_(seed),
        lossy_storage_(lossy_storage),
        arena_(16u << 20),
        program_(kSize, 0),
        storage_(kSize, 0) {
    map_.SetSuperblock(kHeldBegin, kHeldEnd);
    limits_.bytes = 64 + Pick(200);
    limits_.gap = Pick(3) * 8;
    limits_.unknown_to_others = Pick(kSize);
    order_ =
        Pick(2) == 0 ? PendingMap::Order::kSuperblockFirst : PendingMap::Order::kSuperblockLast;
  }
  ~Model() {
    for (auto& run : flying_) map_.Complete(*run);
    map_.CutRange(0, UINT64_MAX);
    if (slab_ != nullptr) Arena::Unref(slab_);
    EXPECT_EQ(arena_.in_use(), 0u) << "a slab reference was lost";
  }

  void Step() {
    switch (Pick(16)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
      case 5: Write(); break;
      case 6:
      case 7:
      case 8: Take(); break;
      case 9:
      case 10: Land(); break;
      case 11: FailOne(); break;
      case 12: CutFrom(); break;
      case 13: Direct(); break;
      case 14:
        if (Pick(4) == 0) map_.RetryFailed();
        break;
      default: ++epoch_; break;
    }
  }

  // Everything goes to storage, in whatever order the map gives it.
  void DrainAll() {
    while (!flying_.empty()) Land();
    map_.RetryFailed();
    for (;;) {
      Take(map_.only_superblock());
      if (flying_.empty()) break;
      while (!flying_.empty()) Land();
    }
  }

  bool ReadsMatch() {
    const uint64_t from = Pick(kSize);
    const uint64_t size = 1 + Pick(kSize - from);
    std::vector<Piece> pieces;
    map_.Overlay(from, size, pieces);
    uint64_t at = from;
    bool equal = true;
    for (const Piece& piece : pieces) {
      EXPECT_EQ(piece.address, at);
      const auto* bytes = piece.data != nullptr ? piece.data : storage_bytes() + piece.address;
      equal = equal && std::memcmp(bytes, program_bytes() + piece.address, piece.size) == 0;
      at += piece.size;
      if (piece.slab != nullptr) Arena::Unref(piece.slab);
    }
    EXPECT_EQ(at, from + size);
    return equal;
  }

  // Nobody may be told that an epoch is done while a byte of it is not stored, in its own or a
  // newer version.
  void CheckEpochs() {
    for (uint64_t epoch = 1; epoch <= epoch_; ++epoch) {
      Status error;
      const auto state = map_.epochs().StateOf(epoch, error);
      if (state != Epochs::State::kDone) continue;
      for (const Entry& entry : written_) {
        if (entry.epoch != epoch) continue;
        for (uint64_t i = entry.begin; i < entry.end; ++i) {
          ASSERT_GE(stored_version_[i], entry.version)
              << "epoch " << epoch << " is done without byte " << i;
        }
      }
    }
  }

  bool StorageMatches() const { return program_ == storage_; }
  const PendingMap& map() const { return map_; }

 private:
  struct Entry {
    uint64_t epoch, begin, end, version;
  };

  uint64_t Pick(uint64_t n) { return random_() % n; }
  const std::byte* program_bytes() const {
    return reinterpret_cast<const std::byte*>(program_.data());
  }
  const std::byte* storage_bytes() const {
    return reinterpret_cast<const std::byte*>(storage_.data());
  }

  void Write() {
    const uint64_t from = Pick(4) == 0 ? next_ % kSize : Pick(kSize);
    const uint64_t to = std::min(kSize, from + 1 + Pick(60));
    next_ = to;
    ++version_;
    for (uint64_t i = from; i < to; ++i) program_[i] = static_cast<unsigned char>(random_());
    written_.push_back({epoch_, from, to, version_});
    // The file captures the superblock's range apart from its neighbours.
    uint64_t at = from;
    for (const uint64_t cut : {kHeldBegin, kHeldEnd, to}) {
      if (cut <= at || cut > to) continue;
      Insert(at, cut);
      at = cut;
    }
  }

  void Insert(uint64_t from, uint64_t to) {
    if (slab_ == nullptr || used_ + (to - from) > slab_->size) {
      if (slab_ != nullptr) Arena::Unref(slab_);
      slab_ = arena_.TryAcquire();
      ASSERT_NE(slab_, nullptr);
      used_ = 0;
    }
    std::memcpy(slab_->data + used_, program_bytes() + from, to - from);
    Arena::Ref(slab_);
    map_.Insert({from, to - from, slab_->data + used_, slab_, epoch_, false, PlaceOf(from)});
    used_ += to - from;
  }

  // As places of datasets: writes may reach beyond them, as a run of another one's does.
  static uint64_t PlaceOf(uint64_t address) {
    constexpr uint64_t kPlace = 150;
    return address / kPlace % 3 == 0 ? 0 : address / kPlace * kPlace;
  }

  void Take(bool rest_is_done = false) {
    auto run = std::make_unique<Run>();
    if (flying_.size() == 4 || !map_.TakeRun(limits_, order_, rest_is_done, *run)) return;
    for (const auto& other : flying_) EXPECT_FALSE(other->Overlaps(run->begin, run->end));
    uint64_t covered = 0;
    for (const Extent& extent : run->extents) covered += extent.size;
    EXPECT_EQ(covered + run->gap_bytes, run->size());
    EXPECT_LE(run->extents.size() > 1 ? run->size() : 0, limits_.bytes + 64);
    if (run->gap_bytes != 0) run_gaps_ = true;
    for (size_t i = 1; i < run->extents.size(); ++i) {
      const Extent& before = run->extents[i - 1];
      const Extent& behind = run->extents[i];
      if (before.end() == behind.address || before.end() >= limits_.unknown_to_others) continue;
      EXPECT_NE(PlaceOf(before.address), 0u);
      EXPECT_EQ(PlaceOf(before.address), PlaceOf(behind.address));
    }
    flying_.push_back(std::move(run));
  }

  // Stores the run's extents, up to `limit` bytes. Gaps are stored as storage has them: nothing
  // changes there.
  void Store(const Run& run, uint64_t limit) {
    for (const Extent& extent : run.extents) {
      for (uint64_t i = 0; i < extent.size; ++i) {
        const uint64_t at = extent.address + i;
        if (at - run.begin >= limit) return;
        if (lossy_storage_ && Pick(50) == 0) continue;
        storage_[at] = static_cast<unsigned char>(extent.data[i]);
      }
    }
  }

  void Land() {
    if (flying_.empty()) return;
    const size_t index = Pick(flying_.size());
    Run& run = *flying_[index];
    Store(run, UINT64_MAX);
    for (const Extent& extent : run.extents) {
      for (uint64_t i = extent.address; i < extent.end(); ++i) {
        // The newest write of this byte that is not above the extent's epoch is what was stored.
        uint64_t newest = 0;
        for (const Entry& entry : written_) {
          if (entry.epoch <= extent.epoch && entry.begin <= i && i < entry.end)
            newest = entry.version;
        }
        stored_version_[i] = std::max(stored_version_[i], newest);
      }
    }
    map_.Complete(run);
    if (order_ == PendingMap::Order::kSuperblockFirst && run.begin == kHeldBegin)
      order_ = PendingMap::Order::kSuperblockLast;
    flying_.erase(flying_.begin() + static_cast<std::ptrdiff_t>(index));
  }

  void FailOne() {
    if (flying_.empty()) return;
    const size_t index = Pick(flying_.size());
    Store(*flying_[index], Pick(flying_[index]->size()));
    map_.Fail(*flying_[index], Status::Failed(EIO, "write"));
    flying_.erase(flying_.begin() + static_cast<std::ptrdiff_t>(index));
  }

  void CutFrom() {
    if (Pick(6) != 0) return;
    const uint64_t from = Pick(kSize);
    if (map_.InFlight(from, UINT64_MAX)) return;  // the file waits for that
    map_.CutRange(from, UINT64_MAX);
    std::fill(program_.begin() + static_cast<std::ptrdiff_t>(from), program_.end(), 0);
    std::fill(storage_.begin() + static_cast<std::ptrdiff_t>(from), storage_.end(), 0);
    std::fill(stored_version_ + from, stored_version_ + kSize, ++version_);
  }

  void Direct() {
    const uint64_t from = Pick(kSize);
    const uint64_t to = std::min(kSize, from + 1 + Pick(60));
    if (map_.InFlight(from, to)) return;
    Run direct;
    direct.begin = from;
    direct.end = to;
    map_.BeginDirect(direct);
    Take();  // a lane, meanwhile
    ++version_;
    for (uint64_t i = from; i < to; ++i) {
      program_[i] = storage_[i] = static_cast<unsigned char>(random_());
      stored_version_[i] = version_;
    }
    map_.CutRange(from, to);
    map_.Complete(direct);
  }

 public:
  bool run_gaps_ = false;  // gap filling happened in this run at all

 private:
  std::mt19937_64 random_;
  const bool lossy_storage_;
  Arena arena_;
  Slab* slab_ = nullptr;
  uint64_t used_ = 0;
  PendingMap map_;
  RunLimits limits_;
  PendingMap::Order order_;
  std::vector<std::unique_ptr<Run>> flying_;
  std::vector<unsigned char> program_;
  std::vector<unsigned char> storage_;
  std::vector<Entry> written_;
  uint64_t stored_version_[kSize] = {};
  uint64_t version_ = 0;
  uint64_t epoch_ = 1;
  uint64_t next_ = 0;
};

TEST(PendingMapModelTest, RandomHistoriesReadAndStoreWhatTheProgramWrote) {
  bool gaps = false;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Model model(seed, false);
    for (unsigned step = 0; step < kSteps; ++step) {
      model.Step();
      ASSERT_TRUE(model.ReadsMatch()) << "step " << step;
      if (step % 50 == 0) model.CheckEpochs();
      if (::testing::Test::HasFailure()) return;
    }
    model.DrainAll();
    ASSERT_TRUE(model.map().empty());
    ASSERT_TRUE(model.map().epochs().empty()) << "everybody's bytes are stored";
    ASSERT_EQ(model.map().queued_bytes(), 0u);
    ASSERT_TRUE(model.StorageMatches());
    gaps = gaps || model.run_gaps_;
  }
  EXPECT_TRUE(gaps) << "the histories must have filled gaps, or they tested less than they claim";
}

TEST(PendingMapModelTest, StorageThatLosesBytesIsNoticed) {
  unsigned noticed = 0;
  for (unsigned seed = 1; seed <= 10; ++seed) {
    Model model(seed, true);
    bool equal = true;
    for (unsigned step = 0; step < kSteps && equal; ++step)
      model.Step(), equal = model.ReadsMatch();
    if (equal) model.DrainAll();
    if (!equal || !model.StorageMatches()) ++noticed;
  }
  EXPECT_EQ(noticed, 10u);
}

}  // namespace
}  // namespace tidelane
