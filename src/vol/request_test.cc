/// \file
/// Requests settle in the order of issue, however storage answers; waiting, cancelling and asking
/// for errors.
#include "vol/request.h"

#include <cerrno>
#include <memory>
#include <utility>
#include <vector>

#include "file/file_fixture.h"
#include "vol/call_queue.h"
#include "vol/chunk_batch.h"
#include "vol/connector_fixture.h"

namespace tidelane::vol {
namespace {

// Two files whose lanes the test runs by hand: the younger request's bytes may land first.
class RequestTest : public ConnectorTest {
 protected:
  void SetUp() override {
    ConnectorTest::SetUp();
    older_.Open();
    younger_.Open();
  }
  // What a test left in the queue must not outlive its file.
  void TearDown() override {
    library().requests.WaitAll();
    ConnectorTest::TearDown();
  }

  static std::shared_ptr<Completion> Capture(FileBench& bench, const char* text) {
    CallScope scope(CallScope::kNone, true);
    EXPECT_TRUE(bench.Write(64, text).ok());
    return scope.TakeCompletion();
  }
  H5VL_request_status_t Test(Request* request) {
    H5VL_request_status_t status{};
    EXPECT_EQ(RequestWait(library(), request, 0, &status), 0);
    return status;
  }

  FileBench older_, younger_;
};

TEST_F(RequestTest, OneIsDoneWhenItsBytesAreStored) {
  Request* request = library().requests.Issue(Capture(older_, "bytes"));
  EXPECT_EQ(Test(request), H5VL_REQUEST_STATUS_IN_PROGRESS);
  older_.RunLanes();
  EXPECT_EQ(Test(request), H5VL_REQUEST_STATUS_SUCCEED);
  EXPECT_EQ(older_.Stored().substr(64), "bytes");
  RequestFree(library(), request);
}

TEST_F(RequestTest, ChunksThatAnotherProcessInsertsAreNotWaitedFor) {
  // As in a child that was forked in the middle, and in one that has chunks of its own since.
  CallQueue* const calls = std::exchange(library().call_queue, nullptr);
  for (const bool own : {false, true}) {
    if (own) CallQueue::Of(library());
    const auto chunks = std::make_shared<ChunkBatch>();
    chunks->on_their_way = 1;
    Request* request =
        library().requests.Issue(nullptr, std::make_unique<ChunkBatchPart>(library(), chunks));
    EXPECT_EQ(Test(request), H5VL_REQUEST_STATUS_FAIL);
    EXPECT_EQ(request->error().code(), ECANCELED);
    RequestFree(library(), request);
  }
  delete std::exchange(library().call_queue, calls);
}

// HDF5 1.14 loses operations when the last one of an event set is removed before the others.
TEST_F(RequestTest, AYoungerOneWaitsForItsElders) {
  Request* first = library().requests.Issue(Capture(older_, "old"));
  Request* second = library().requests.Issue(Capture(younger_, "young"));
  Request* complete = library().requests.Issue(nullptr);
  EXPECT_EQ(Test(second), H5VL_REQUEST_STATUS_IN_PROGRESS);
  younger_.RunLanes();
  EXPECT_EQ(younger_.Stored().substr(64), "young") << "asking for it started its work";
  EXPECT_EQ(Test(second), H5VL_REQUEST_STATUS_IN_PROGRESS) << "stored, but not its turn";
  EXPECT_EQ(Test(complete), H5VL_REQUEST_STATUS_IN_PROGRESS);
  older_.RunLanes();
  EXPECT_EQ(Test(complete), H5VL_REQUEST_STATUS_SUCCEED);
  EXPECT_TRUE(first->settled() && second->settled());
  for (Request* request : {first, second, complete}) RequestFree(library(), request);
}

// Storage may answer between two steps of H5ESwait(es, 0): the last operation of the list was removed
// while one before it stayed, and HDF5 lost all that was inserted later.
TEST_F(RequestTest, WhatStorageFinishesDuringAPassIsReportedInTheNext) {
  Request* first = library().requests.Issue(Capture(older_, "old"));
  Request* last = library().requests.Issue(nullptr);
  EXPECT_EQ(Test(first), H5VL_REQUEST_STATUS_IN_PROGRESS);
  older_.RunLanes();
  EXPECT_EQ(Test(last), H5VL_REQUEST_STATUS_IN_PROGRESS) << "an older one was pending in this pass";
  EXPECT_EQ(Test(first), H5VL_REQUEST_STATUS_SUCCEED) << "the next pass";
  EXPECT_EQ(Test(last), H5VL_REQUEST_STATUS_SUCCEED);
  for (Request* request : {first, last}) RequestFree(library(), request);
}

TEST_F(RequestTest, APassThatIsCancelledKeepsTheOrderToo) {
  Request* first = library().requests.Issue(Capture(older_, "old"));
  Request* last = library().requests.Issue(nullptr);
  H5VL_request_status_t status{};
  EXPECT_EQ(RequestCancel(library(), first, &status), 0);
  older_.RunLanes();
  EXPECT_EQ(RequestCancel(library(), last, &status), 0);
  EXPECT_EQ(status, H5VL_REQUEST_STATUS_CANT_CANCEL);
  for (Request* request : {first, last}) RequestFree(library(), request);
}

// Another event set's operation is not held back by a pass that ended with something pending.
TEST_F(RequestTest, AnEventSetOfItsOwnIsDoneAtTheSecondLookAtTheLatest) {
  Request* first = library().requests.Issue(Capture(older_, "old"));
  Request* other = library().requests.Issue(Capture(younger_, "young"));
  EXPECT_EQ(Test(first), H5VL_REQUEST_STATUS_IN_PROGRESS);
  older_.RunLanes();
  younger_.RunLanes();
  Test(other);
  EXPECT_EQ(Test(other), H5VL_REQUEST_STATUS_SUCCEED);
  for (Request* request : {first, other}) RequestFree(library(), request);
}

TEST_F(RequestTest, WaitingForEverDoesNotAskWhatWasPendingBefore) {
  Request* first = library().requests.Issue(Capture(older_, "old"));
  Request* last = library().requests.Issue(nullptr);
  EXPECT_EQ(Test(first), H5VL_REQUEST_STATUS_IN_PROGRESS);
  H5VL_request_status_t status{};
  EXPECT_EQ(RequestWait(library(), last, UINT64_MAX, &status), 0);
  EXPECT_EQ(status, H5VL_REQUEST_STATUS_SUCCEED);
  for (Request* request : {first, last}) RequestFree(library(), request);
}

TEST_F(RequestTest, ACompleteOneIsDoneAtOnceWhenNobodyIsBeforeIt) {
  Request* request = library().requests.Issue(nullptr);
  EXPECT_TRUE(request->settled());
  EXPECT_EQ(Test(request), H5VL_REQUEST_STATUS_SUCCEED);
  RequestFree(library(), request);
}

TEST_F(RequestTest, WaitingForEverWaitsForTheEldersToo) {
  Request* first = library().requests.Issue(Capture(older_, "old"));
  Request* second = library().requests.Issue(Capture(younger_, "young"));
  H5VL_request_status_t status{};
  EXPECT_EQ(RequestWait(library(), second, UINT64_MAX, &status), 0);
  EXPECT_EQ(status, H5VL_REQUEST_STATUS_SUCCEED);
  EXPECT_TRUE(first->settled());
  RequestFree(library(), first);
  RequestFree(library(), second);
}

TEST_F(RequestTest, AFailureBelongsToItsRequestAndEachCallerGetsAStack) {
  FailingWrites failing(older_, ENOSPC);
  Request* bad = library().requests.Issue(Capture(older_, "lost"));
  Request* good = library().requests.Issue(Capture(younger_, "kept"));
  library().requests.WaitAll();
  EXPECT_EQ(Test(bad), H5VL_REQUEST_STATUS_FAIL);
  EXPECT_EQ(Test(good), H5VL_REQUEST_STATUS_SUCCEED);
  H5VL_request_specific_args_t args{};
  args.op_type = H5VL_REQUEST_GET_ERR_STACK;
  for (int caller = 0; caller < 2; ++caller) {
    ASSERT_EQ(RequestSpecific(library(), bad, &args), 0);
    EXPECT_EQ(H5Eget_num(args.args.get_err_stack.err_stack_id), 1);
    EXPECT_GE(H5Eclose_stack(args.args.get_err_stack.err_stack_id), 0);
  }
  RequestFree(library(), bad);
  RequestFree(library(), good);
  failing.failing = false;
  EXPECT_TRUE(older_.file_->Flush().ok());
}

TEST_F(RequestTest, WhatIsPendingCannotBeCancelledAndWhatIsDoneSaysHow) {
  Request* request = library().requests.Issue(Capture(older_, "bytes"));
  H5VL_request_status_t status{};
  EXPECT_EQ(RequestCancel(library(), request, &status), 0);
  EXPECT_EQ(status, H5VL_REQUEST_STATUS_CANT_CANCEL);
  older_.RunLanes();
  EXPECT_EQ(RequestCancel(library(), request, &status), 0);
  EXPECT_EQ(status, H5VL_REQUEST_STATUS_SUCCEED);
  RequestFree(library(), request);
}

TEST_F(RequestTest, NotifyCallsOnceWhenItSettlesAndMayWaitForOthers) {
  struct Seen {
    LibraryState& library;
    Request* other = nullptr;
    std::vector<H5VL_request_status_t> statuses;
  } seen{library(), nullptr, {}};
  const auto callback = [](void* context, H5VL_request_status_t status) -> herr_t {
    auto* self = static_cast<Seen*>(context);
    self->statuses.push_back(status);
    if (self->other != nullptr) self->library.requests.Wait(*self->other, UINT64_MAX);
    return 0;
  };
  Request* first = library().requests.Issue(Capture(older_, "old"));
  seen.other = library().requests.Issue(Capture(younger_, "young"));
  EXPECT_EQ(RequestNotify(library(), first, callback, &seen), 0);
  EXPECT_TRUE(seen.statuses.empty());
  library().requests.WaitAll();
  EXPECT_EQ(seen.statuses.size(), 1u);
  EXPECT_TRUE(seen.other->settled());
  EXPECT_EQ(RequestNotify(library(), first, callback, &seen), 0);
  EXPECT_EQ(seen.statuses.size(), 2u) << "at once when it has settled";
  RequestFree(library(), first);
  RequestFree(library(), seen.other);
}

TEST_F(RequestTest, FreedBeforeItSettledIsStillWaitedFor) {
  RequestFree(library(), library().requests.Issue(Capture(older_, "bytes")));
  library().requests.WaitAll();
  EXPECT_EQ(older_.Stored().substr(64), "bytes");
}

TEST_F(RequestTest, ExecutionTimeIsKnownAfterwards) {
  Request* request = library().requests.Issue(Capture(older_, "bytes"));
  library().requests.WaitAll();
  uint64_t begin = 0, took = 0;
  H5VL_request_specific_args_t args{};
  args.op_type = H5VL_REQUEST_GET_EXEC_TIME;
  args.args.get_exec_time.exec_ts = &begin;
  args.args.get_exec_time.exec_time = &took;
  EXPECT_EQ(RequestSpecific(library(), request, &args), 0);
  EXPECT_NE(begin, 0u);
  EXPECT_NE(took, 0u);
  RequestFree(library(), request);
}

}  // namespace
}  // namespace tidelane::vol
