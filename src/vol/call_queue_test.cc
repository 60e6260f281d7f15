/// \file
/// Work for HDF5 that is not chunks: in order, in the program's next calls, kept when it fails, and told once.
#include "vol/call_queue.h"

#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "file/file_fixture.h"
#include "vol/connector_fixture.h"

namespace tidelane::vol {
namespace {

// What happened, in order.
using Log = std::vector<std::string>;

class Piece final : public CallWork {
 public:
  Piece(std::shared_ptr<File> for_file, std::string name, Log& log)
      : CallWork(std::move(for_file)), name_(std::move(name)), log_(log) {}

  bool ready() const override { return ready_; }
  bool unwanted() const override { return unwanted_; }
  void Help() override { ready_ = true; }
  void Await() override {}
  uint64_t bytes() const override { return 1; }
  bool Do(Attempt attempt) override {
    if (attempt == Attempt::kBehindFailed) return log_.push_back(name_ + " must wait"), false;
    log_.push_back(name_ + (fails_ ? " failed" : attempt == Attempt::kAgain ? " again" : ""));
    return !fails_;
  }
  void Gone() override { log_.push_back(name_ + " gone"); }
  const char* what(Attempt attempt) const override {
    return attempt == Attempt::kFirst ? "do it" : "do it once more";
  }

  bool ready_ = false, unwanted_ = false, fails_ = false;

 private:
  const std::string name_;
  Log& log_;
};

class CallQueueTest : public ConnectorTest {
 protected:
  void SetUp() override {
    ConnectorTest::SetUp();
    bench_.Open();
    other_.Open();
    id_ = Create();
    ASSERT_GE(id_, 0);
    object_ = H5VLobject(id_);
    driver_file = bench_.file_;
  }
  void TearDown() override {
    H5Fclose(id_);
    delete std::exchange(library().call_queue, nullptr);
    library().call_work = false;
    ConnectorTest::TearDown();
  }
  Piece& Add(const std::string& name, const std::shared_ptr<File>& file) {
    auto piece = std::make_unique<Piece>(file, name, log_);
    Piece& added = *piece;
    CallQueue::Of(library()).Add(std::move(piece));
    return added;
  }
  Piece& Add(const std::string& name) { return Add(name, bench_.file_); }
  bool DoAll() {
    H5Eclear2(H5E_DEFAULT);
    return DoCallWork(library(), object_, H5I_FILE, library().default_dxpl);
  }
  void DoReady() { DoReadyCallWork(library(), library().default_dxpl); }
  Log Take() { return std::exchange(log_, {}); }

  FileBench bench_, other_;
  hid_t id_ = h5::kNoId;
  void* object_ = nullptr;
  Log log_;
};

TEST_F(CallQueueTest, WhatIsReadyIsDoneInOrderAndNothingOvertakes) {
  Piece& first = Add("first");
  Add("second").ready_ = true;
  DoReady();
  EXPECT_EQ(Take(), Log());
  first.ready_ = true;
  DoReady();
  EXPECT_EQ(Take(), (Log{"first", "first gone", "second", "second gone"}));
  EXPECT_FALSE(AnyCallWork(library()));
}

TEST_F(CallQueueTest, ACallThatSettlesPreparesWhatNobodyHasBegun) {
  Add("first");
  Add("second").unwanted_ = true;
  EXPECT_TRUE(DoAll());
  EXPECT_EQ(Take(), (Log{"first", "first gone", "second gone"}));
}

TEST_F(CallQueueTest, WhatFailsStaysWithWhatIsBehindItOfItsFileAlone) {
  Piece& first = Add("first");
  first.fails_ = true;
  Add("second");
  Add("other's", other_.file_);
  EXPECT_FALSE(DoAll());
  EXPECT_EQ(Take(),
            (Log{"first failed", "second must wait", "other's", "other's gone", "first failed"}));
  EXPECT_TRUE(ErrorSays("cannot do it once more"));
  EXPECT_TRUE(CallQueue::Of(library()).Fails(*bench_.file_));
  EXPECT_FALSE(CallQueue::Of(library()).Fails(*other_.file_));
  first.fails_ = false;
  EXPECT_TRUE(DoAll()) << "the call before has told of it";
  EXPECT_EQ(Take(), (Log{"first again", "first gone", "second again", "second gone"}));
  EXPECT_FALSE(AnyCallWork(library()));
}

TEST_F(CallQueueTest, AFailureIsToldOnceThoughTheSecondAttemptSucceeds) {
  Piece& first = Add("first");
  first.fails_ = first.ready_ = true;
  DoReady();
  first.fails_ = false;
  EXPECT_FALSE(DoAll());
  EXPECT_EQ(Take(), (Log{"first failed", "first again", "first gone"}));
  EXPECT_TRUE(ErrorSays("cannot do it"));
  EXPECT_TRUE(DoAll());
}

TEST_F(CallQueueTest, ItEndsWithOneMoreAttempt) {
  Piece& first = Add("first");
  first.fails_ = first.ready_ = true;
  DoReady();
  first.fails_ = false;
  Add("second");
  CallQueue& calls = CallQueue::Of(library());
  ASSERT_TRUE(calls.DoUntil([] { return true; }, 0));
  calls.End();
  EXPECT_EQ(Take(), (Log{"first failed", "second must wait", "first again", "first gone",
                         "second again", "second gone"}));
  EXPECT_FALSE(calls.Has(*bench_.file_));
}

}  // namespace
}  // namespace tidelane::vol
