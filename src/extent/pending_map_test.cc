/// \file
/// The pending map by hand-made cases: cutting, merging, overlay, order, failure. The random test
/// beside it (pending_map_model_test.cc) looks for what nobody thought of.
#include "extent/pending_map.h"

#include <cerrno>
#include <cstring>
#include <string>

#include <gtest/gtest.h>

namespace tidelane {
namespace {

using Order = PendingMap::Order;
using State = Epochs::State;

class PendingMapTest : public ::testing::Test {
 public:
  using Run = tidelane::Run;  // not testing::Test::Run

 protected:
  ~PendingMapTest() override { EXPECT_LE(arena_.in_use(), arena_.slab_size()); }

  // Bytes placed one after another in one slab, as a stream of writes places them.
  void Put(uint64_t address, const std::string& text, uint64_t epoch = 1) {
    if (slab_ == nullptr) slab_ = arena_.TryAcquire();
    std::memcpy(slab_->data + used_, text.data(), text.size());
    Arena::Ref(slab_);
    map_.Insert({address, text.size(), slab_->data + used_, slab_, epoch, false});
    used_ += text.size();
  }
  void PutIn(uint64_t place, uint64_t address, const std::string& text) {
    if (slab_ == nullptr) slab_ = arena_.TryAcquire();
    std::memcpy(slab_->data + used_, text.data(), text.size());
    Arena::Ref(slab_);
    map_.Insert({.address = address,
                 .size = text.size(),
                 .data = slab_->data + used_,
                 .slab = slab_,
                 .epoch = 1,
                 .place = place});
    used_ += text.size();
  }
  void LeaveSlabGap() { ++used_; }

  // What a read would give; '.' is storage's.
  std::string See(uint64_t address, uint64_t size) {
    std::vector<Piece> pieces;
    map_.Overlay(address, size, pieces);
    std::string text;
    uint64_t at = address;
    for (const Piece& piece : pieces) {
      EXPECT_EQ(piece.address, at) << "pieces are in order and leave nothing out";
      EXPECT_GT(piece.size, 0u);
      at += piece.size;
      if (piece.data == nullptr) {
        text.append(piece.size, '.');
      } else {
        text.append(reinterpret_cast<const char*>(piece.data), piece.size);
        Arena::Unref(piece.slab);
      }
    }
    EXPECT_EQ(at, address + size);
    return text;
  }

  static std::string Text(const Run& run) {
    std::string text(run.size(), '_');
    for (const Extent& extent : run.extents) {
      text.replace(extent.address - run.begin, extent.size,
                   reinterpret_cast<const char*>(extent.data), extent.size);
    }
    return std::to_string(run.begin) + ":" + text;
  }

  std::string Take(Run& run, Order order = Order::kSuperblockLast, bool rest_is_done = false) {
    return map_.TakeRun(limits_, order, rest_is_done, run) ? Text(run) : "none";
  }
  State StateOf(uint64_t epoch) {
    Status error;
    return map_.epochs().StateOf(epoch, error);
  }

  Arena arena_{1 << 20};
  Slab* slab_ = nullptr;
  size_t used_ = 0;
  RunLimits limits_{.unknown_to_others = 0};
  PendingMap map_;
};

const Status kNoSpace = Status::Failed(ENOSPC, "write");

TEST_F(PendingMapTest, NeighboursInOneSlabBecomeOneExtent) {
  Put(10, "abc");
  Put(13, "def");
  EXPECT_EQ(map_.queued_extents(), 1u);
  LeaveSlabGap();
  Put(16, "ghi");
  EXPECT_EQ(map_.queued_extents(), 2u) << "apart in memory";
  Put(19, "jkl", 2);
  EXPECT_EQ(map_.queued_extents(), 3u) << "another call's";
  EXPECT_EQ(map_.queued_bytes(), 12u);
  EXPECT_EQ(See(8, 16), "..abcdefghijkl..");
  Run run;
  EXPECT_EQ(Take(run), "10:abcdefghijkl");
  map_.Complete(run);
  EXPECT_TRUE(map_.empty());
  EXPECT_TRUE(map_.epochs().empty());
}

TEST_F(PendingMapTest, ANewWriteCutsWhatItReplaces) {
  Put(0, "aaaaaaaaaa", 1);
  Put(3, "bbb", 2);
  EXPECT_EQ(See(0, 10), "aaabbbaaaa");
  EXPECT_EQ(map_.queued_extents(), 3u);
  Put(2, "c", 3);
  Put(6, "ddd", 3);
  EXPECT_EQ(See(0, 11), "aacbbbddda.");
  Put(0, "eeeeeeeeeeee", 4);
  EXPECT_EQ(map_.queued_extents(), 1u);
  EXPECT_EQ(map_.queued_bytes(), 12u);
  EXPECT_EQ(StateOf(1), State::kPending)
      << "its bytes exist only in newer versions, not stored yet";
  Run run;
  EXPECT_EQ(Take(run), "0:eeeeeeeeeeee");
  map_.Complete(run);
  EXPECT_TRUE(map_.epochs().empty());
}

TEST_F(PendingMapTest, CuttingFromAnAddressForgetsWhatLiesAbove) {
  Put(0, "abcdef");
  Put(10, "ghij");
  map_.CutRange(12, UINT64_MAX);
  EXPECT_EQ(See(0, 16), "abcdef....gh....");
  map_.CutRange(3, UINT64_MAX);
  EXPECT_EQ(See(0, 16), "abc.............");
  EXPECT_EQ(map_.queued_bytes(), 3u);
  map_.CutRange(1, 2);
  EXPECT_EQ(See(0, 4), "a.c.");
  map_.CutRange(0, UINT64_MAX);
  EXPECT_TRUE(map_.empty());
  EXPECT_TRUE(map_.epochs().empty());
  EXPECT_EQ(map_.queued_bytes(), 0u);
}

TEST_F(PendingMapTest, ReadsSeeTheQueueOnTopOfWhatIsInFlight) {
  Put(0, "aaaaaaaa");
  Run run;
  ASSERT_EQ(Take(run), "0:aaaaaaaa");
  EXPECT_EQ(See(0, 10), "aaaaaaaa..");
  Put(2, "bb", 2);
  EXPECT_EQ(See(1, 8), "abbaaaa.");
  map_.Complete(run);
  EXPECT_EQ(See(0, 10), "..bb......");
}

TEST_F(PendingMapTest, SameBytesAreStoredInProgramOrder) {
  Put(0, "aaaa");
  Run first;
  ASSERT_EQ(Take(first), "0:aaaa");
  Put(3, "bb", 2);
  Put(8, "cc", 2);
  Run second;
  EXPECT_EQ(Take(second), "8:cc") << "3 overlaps what is in flight";
  Run third;
  EXPECT_EQ(Take(third), "none");
  map_.Complete(first);
  EXPECT_EQ(Take(third), "3:bb");
  map_.Complete(second);
  map_.Complete(third);
}

TEST_F(PendingMapTest, RunsStopAtTheLimit) {
  limits_.bytes = 4;
  Put(0, "abc");
  Put(3, "def", 2);
  Put(6, "ghi", 3);
  std::string all;
  for (Run run; Take(run) != "none"; map_.Complete(run)) {
    EXPECT_EQ(all.size(), run.begin);
    all += Text(run).substr(2);
  }
  EXPECT_EQ(all, "abcdefghi");
}

TEST_F(PendingMapTest, ALargeExtentIsSplitAtTheBoundary) {
  limits_.bytes = 64 * 1024;
  if (slab_ == nullptr) slab_ = arena_.TryAcquire();
  const uint64_t size = slab_->size;
  std::memset(slab_->data, 'x', size);
  Arena::Ref(slab_);
  map_.Insert({1000, size, slab_->data, slab_, 7, false});
  Run head;
  ASSERT_TRUE(map_.TakeRun(limits_, Order::kSuperblockLast, false, head));
  EXPECT_EQ(head.begin, 1000u);
  EXPECT_EQ(head.end, limits_.bytes);
  EXPECT_EQ(map_.queued_bytes(), size - head.size());
  Run tail;
  ASSERT_TRUE(map_.TakeRun(limits_, Order::kSuperblockLast, false, tail));
  EXPECT_EQ(tail.begin, head.end);
  EXPECT_EQ(tail.end, 1000 + size);
  EXPECT_EQ(tail.extents[0].data, slab_->data + head.size());
  map_.Complete(tail);
  EXPECT_EQ(StateOf(7), State::kPending);
  map_.Complete(head);
  EXPECT_EQ(StateOf(7), State::kDone);
}

TEST_F(PendingMapTest, GapsAreFilledWhereThatSavesRequests) {
  limits_.gap = 2;
  Put(0, "a");
  Put(3, "b");
  Put(5, "c");
  Put(9, "d");
  Run run;
  EXPECT_EQ(Take(run), "0:a__b_c");
  EXPECT_EQ(run.gap_bytes, 3u);
  Put(1, "z", 2);
  Run next;
  EXPECT_EQ(Take(next), "9:d") << "what is written into the gap waits for the run";
  map_.Complete(run);
  map_.Complete(next);
  EXPECT_EQ(Take(run), "1:z");
  map_.Complete(run);
}

TEST_F(PendingMapTest, GapsThatOthersMayKnowOfAreFilledInsideOnePlaceOnly) {
  limits_.gap = 2;
  limits_.unknown_to_others = 20;
  for (const uint64_t at : {1, 3, 5}) PutIn(1, at, "a");
  for (const uint64_t at : {7, 9, 11}) PutIn(7, at, "b");
  for (const uint64_t at : {13, 15, 17, 19, 21, 23}) Put(at, "c");
  Run runs[6];
  EXPECT_EQ(Take(runs[0]), "1:a_a_a");
  EXPECT_EQ(Take(runs[1]), "7:b_b_b");
  for (const uint64_t at : {2, 3, 4}) EXPECT_EQ(Take(runs[at]), std::to_string(9 + 2 * at) + ":c");
  EXPECT_EQ(Take(runs[5]), "19:c_c_c") << "what lies from 20 on nobody else knows";
  for (const Run& run : runs) map_.Complete(run);
}

// What is merged without a gap may be of two places; its first byte's would be taken for all of it.
TEST_F(PendingMapTest, NeighboursOfDifferentPlacesStayApartInTheQueue) {
  limits_.gap = 2;
  limits_.unknown_to_others = UINT64_MAX;
  PutIn(1, 1, "a");
  PutIn(2, 2, "b");
  EXPECT_EQ(map_.queued_extents(), 2u);
  PutIn(1, 4, "a");
  PutIn(1, 6, "a");
  Run run;
  EXPECT_EQ(Take(run), "1:ab") << "what lies behind is not in the place of b";
  map_.Complete(run);
  EXPECT_EQ(Take(run), "4:a") << "one gap is not worth a read";
  map_.Complete(run);
}

TEST_F(PendingMapTest, OneGapIsNotWorthARead) {
  limits_.gap = 8;
  Put(0, "ab");
  Put(4, "cd");
  Run run;
  EXPECT_EQ(Take(run), "0:ab");
  EXPECT_EQ(run.gap_bytes, 0u);
  map_.Complete(run);
  EXPECT_EQ(Take(run), "4:cd");
  map_.Complete(run);
}

TEST_F(PendingMapTest, LongPiecesAreRequestsOfTheirOwn) {
  limits_.gap = 2;
  limits_.long_piece = 3;
  Put(0, "abc");
  Put(4, "d");
  Put(6, "e");
  Put(8, "f");
  Run run;
  Run next;
  EXPECT_EQ(Take(run), "0:abc");
  EXPECT_EQ(Take(next), "4:d_e_f") << "short ones are not";
  map_.Complete(run);
  map_.Complete(next);
}

TEST_F(PendingMapTest, NoGapIsFilledOverADirectWrite) {
  limits_.gap = 8;
  Put(10, "a");
  Put(12, "b");
  Put(14, "c");
  Run run;
  Run direct;
  direct.begin = 11;
  direct.end = 12;
  map_.BeginDirect(direct);
  EXPECT_EQ(Take(run), "10:a");
  map_.Complete(run);
  EXPECT_EQ(Take(run), "12:b");
  map_.Complete(run);
  map_.Complete(direct);
}

TEST_F(PendingMapTest, TheHeldRangeComesLast) {
  map_.SetSuperblock(4, 8);
  Put(4, "SUPR");
  Put(0, "aaaa");
  Put(8, "bb");
  EXPECT_EQ(map_.ordinary(), 2u);
  Run run;
  EXPECT_EQ(Take(run), "0:aaaa") << "apart from the superblock";
  map_.Complete(run);
  EXPECT_EQ(Take(run), "8:bb");
  EXPECT_FALSE(map_.only_superblock()) << "still in flight";
  map_.Complete(run);
  EXPECT_TRUE(map_.only_superblock());
  EXPECT_EQ(Take(run), "none");
  EXPECT_EQ(Take(run, Order::kSuperblockLast, true), "4:SUPR");
  EXPECT_TRUE(map_.SuperblockPending());
  map_.Complete(run);
  EXPECT_FALSE(map_.SuperblockPending());
}

TEST_F(PendingMapTest, TheHeldRangeComesFirstAndAlone) {
  map_.SetSuperblock(4, 8);
  Put(0, "aaaa");
  Put(4, "SUPR");
  Put(8, "bb");
  Run first;
  EXPECT_EQ(Take(first, Order::kSuperblockFirst), "4:SUPR");
  Run run;
  EXPECT_EQ(Take(run, Order::kSuperblockFirst), "none") << "nothing else until it has landed";
  map_.Complete(first);
  EXPECT_EQ(Take(run, Order::kSuperblockFirst), "8:bb");
  map_.Complete(run);
  EXPECT_EQ(Take(run, Order::kSuperblockFirst), "0:aaaa");
  map_.Complete(run);
}

TEST_F(PendingMapTest, AFailedHeldFirstRangeIsStuckWithAllThatWaitsForIt) {
  map_.SetSuperblock(0, 4);
  Put(0, "SUPR");
  Put(8, "bb");
  Run run;
  ASSERT_EQ(Take(run, Order::kSuperblockFirst), "0:SUPR");
  EXPECT_FALSE(map_.stuck(Order::kSuperblockFirst));
  map_.Fail(run, kNoSpace);
  EXPECT_TRUE(map_.stuck(Order::kSuperblockFirst));
  EXPECT_EQ(Take(run, Order::kSuperblockFirst), "none");
  Put(0, "SUP2");
  EXPECT_FALSE(map_.stuck(Order::kSuperblockFirst)) << "a newer version may be tried";
  EXPECT_EQ(Take(run, Order::kSuperblockFirst), "0:SUP2");
  map_.Complete(run);
}

TEST_F(PendingMapTest, FailedBytesComeBackUnlessReplaced) {
  Put(0, "aaaaaaaa", 1);
  Run run;
  ASSERT_EQ(Take(run), "0:aaaaaaaa");
  Put(2, "bb", 2);
  Put(6, "cccc", 3);
  map_.Fail(run, kNoSpace);
  EXPECT_EQ(See(0, 11), "aabbaacccc.");
  EXPECT_EQ(map_.failed_extents(), 2u);
  EXPECT_EQ(map_.queued_bytes(), 10u);
  EXPECT_EQ(StateOf(1), State::kFailed);
  EXPECT_EQ(StateOf(2), State::kPending);
  std::string taken;
  for (Run next; Take(next) != "none"; map_.Complete(next)) taken += Text(next) + " ";
  EXPECT_EQ(taken, "2:bb 6:cccc ");
  EXPECT_TRUE(map_.stuck(Order::kSuperblockLast));
  EXPECT_EQ(StateOf(2), State::kDone);
  map_.RetryFailed();
  EXPECT_EQ(StateOf(1), State::kPending);
  for (Run next; Take(next) != "none"; map_.Complete(next)) taken += Text(next) + " ";
  EXPECT_EQ(taken, "2:bb 6:cccc 0:aa 4:aa ");
  EXPECT_TRUE(map_.epochs().empty());
}

TEST_F(PendingMapTest, AFailedWriteThatWasReplacedMeanwhileFailsNobodyAfterARetry) {
  Put(0, "aaaa", 1);
  Run run;
  ASSERT_EQ(Take(run), "0:aaaa");
  Put(0, "bbbb", 2);
  map_.Fail(run, kNoSpace);
  EXPECT_EQ(map_.failed_extents(), 0u);
  map_.RetryFailed();
  EXPECT_EQ(StateOf(1), State::kPending)
      << "nothing is lost: its bytes are on their way in a newer version";
  EXPECT_EQ(Take(run), "0:bbbb");
  map_.Complete(run);
  EXPECT_EQ(StateOf(1), State::kDone);
}

TEST_F(PendingMapTest, AFailureWhoseBytesWereReplacedIsForgottenAtARetry) {
  Put(0, "aaaa", 1);
  Run run;
  ASSERT_EQ(Take(run), "0:aaaa");
  map_.Fail(run, kNoSpace);
  EXPECT_EQ(StateOf(1), State::kFailed);
  Put(0, "bbbb", 2);
  EXPECT_EQ(map_.failed_extents(), 0u);
  map_.RetryFailed();
  EXPECT_EQ(StateOf(1), State::kPending);
  ASSERT_EQ(Take(run), "0:bbbb");
  map_.Complete(run);
  EXPECT_TRUE(map_.epochs().empty());
}

TEST_F(PendingMapTest, CutFailedExtentsNoLongerCount) {
  Put(0, "aaaa", 1);
  Run run;
  ASSERT_EQ(Take(run), "0:aaaa");
  map_.Fail(run, kNoSpace);
  Put(1, "b", 2);
  EXPECT_EQ(map_.failed_extents(), 2u);
  map_.CutRange(2, UINT64_MAX);
  EXPECT_EQ(map_.failed_extents(), 1u);
  map_.CutRange(0, UINT64_MAX);
  EXPECT_EQ(map_.failed_extents(), 0u);
  EXPECT_TRUE(map_.empty());
}

// The superblock was first recognised when its neighbours lay in the queue, captured as one extent
// with its place.
TEST_F(PendingMapTest, AHeldRangeInsideAQueuedExtentIsStoredInTheEnd) {
  Put(0, "aaaaaaaaaaaa");
  map_.SetSuperblock(4, 8);
  EXPECT_EQ(map_.ordinary(), 2u);
  std::string taken;
  for (Run next; Take(next) != "none"; map_.Complete(next)) taken += Text(next) + " ";
  EXPECT_EQ(taken, "0:aaaa 8:aaaa ");
  EXPECT_TRUE(map_.only_superblock());
  Run run;
  EXPECT_EQ(Take(run, Order::kSuperblockLast, true), "4:aaaa");
  map_.Complete(run);
  EXPECT_TRUE(map_.empty());
}

}  // namespace
}  // namespace tidelane
