#include "vol/late_query.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <new>
#include <thread>
#include <utility>

#include "base/counters.h"
#include "base/trace.h"
#include "file/call_scope.h"
#include "h5/error.h"
#include "h5/query_operation.h"
#include "vol/call_inside.h"
#include "vol/find_file.h"

namespace tidelane::vol {

namespace {

// Who waits for lanes, but not for ever, looks again after that.
constexpr auto kLook = std::chrono::microseconds(100);

// What a query and its request share.
struct Outcome {
  bool told = false;
  Status error;
};

struct LateQuery {
  std::shared_ptr<File> file;
  tl_query_later_args args;
  std::unique_ptr<h5::PendingQuery> pending;
  std::shared_ptr<Completion> lanes;  // nullptr: all was looked at within the call
  std::shared_ptr<Outcome> outcome;
  uint64_t changes;  // LibraryState's, when it was asked

  bool ready() const {
    return lanes == nullptr || (lanes->LooksDone() && lanes->Poll() != Completion::State::kPending);
  }
};

Status Told(const tl_query_later_args& args, Status status) {
  if (args.done(args.query.context, status.ok() ? 0 : 1) >= 0 || !status.ok()) return status;
  return Status::Failed(EIO, "make the view of a query");
}

// Some identifier that the program has of a file, which stays open as long as it is used here.
struct Searched {
  LibraryState& library;
  const File& file;
  hid_t found = h5::kNoId;
};

herr_t IsOfFile(hid_t id, void* context) {
  Searched& searched = *static_cast<Searched*>(context);
  hbool_t native = false;
  h5::Library& hdf5 = searched.library.hdf5();
  if (hdf5.VLobject_is_native(id, &native) < 0 || !native) return 0;
  void* const object = hdf5.VLobject(id);
  if (object == nullptr || FileOf(searched.library, object, H5I_FILE).get() != &searched.file)
    return 0;
  searched.found = id;
  return 1;
}

}  // namespace

class LateQueries {
 public:
  explicit LateQueries(LibraryState& library) : library_(library) {}
  static LateQueries& Of(LibraryState& library) {
    if (library.late_queries == nullptr) library.late_queries = new LateQueries(library);
    return *library.late_queries;
  }

  bool empty() const { return queries_.empty(); }
  bool Has(const File& file) const {
    return std::ranges::any_of(queries_,
                               [&](const LateQuery& query) { return query.file.get() == &file; });
  }
  void Add(LateQuery query) {
    queries_.push_back(std::move(query));
    library_.NoteWork(LibraryState::kQueries, true);
  }

  // While one is answered our own calls come here again, and find nothing to do.
  bool AnyReady() const { return !answering_ && !empty() && queries_.front().ready(); }
  bool AnyToAnswer() const { return !answering_ && !empty(); }

  // In a call whose list is the default one.
  void AnswerReady() {
    const h5::KeepErrorStack keep(library_.hdf5());
    while (AnyReady()) AnswerOldest();
  }
  void AnswerAll() {
    const h5::KeepErrorStack keep(library_.hdf5());
    while (AnyToAnswer()) AnswerOldest();
  }

  // From outside the library's calls: until `enough()`, or there is none, or for so long. False: HDF5 could not be entered.
  bool AnswerUntil(const std::function<bool()>& enough, uint64_t timeout_ns) {
    const uint64_t begin_ns = NowNs();
    return Enter(library_, [&] {
      while (!enough() && AnyToAnswer()) {
        if (timeout_ns == UINT64_MAX) {
          AnswerOldest();
          continue;
        }
        AnswerReady();
        if (enough() || empty() || NowNs() - begin_ns >= timeout_ns) break;
        std::this_thread::sleep_for(kLook);
      }
    });
  }

 private:
  void AnswerOldest() {
    if (const auto lanes = queries_.front().lanes; lanes != nullptr)
      static_cast<void>(lanes->Wait(UINT64_MAX));
    LateQuery query = std::move(queries_.front());
    queries_.pop_front();
    answering_ = true;
    query.outcome->error = Told(query.args, Finish(query));
    query.outcome->told = true;
    query.pending = nullptr;
    answering_ = false;
    library_.NoteWork(LibraryState::kQueries, !empty());
  }

  Status Finish(const LateQuery& query) {
    const bool unchanged = query.changes == library_.changes;
    Searched searched{library_, *query.file};
    library_.hdf5().Iiterate(H5I_FILE, IsOfFile, &searched);
    if (searched.found == h5::kNoId)
      return Status::Failed(EBADF, "answer a query of a file that is closed")
          .At(query.file->path(), 0, 0);
    try {  // HDF5 is between us and whoever could catch it
      return query.pending->Finish(searched.found, unchanged);
    } catch (const std::bad_alloc&) {
      return Status::Failed(ENOMEM, "have memory for a query");
    }
  }

  LibraryState& library_;
  std::deque<LateQuery> queries_;
  bool answering_ = false;
};

namespace {

class QueryPart final : public DeferredPart {
 public:
  QueryPart(LibraryState& library, std::shared_ptr<Outcome> outcome)
      : library_(library), outcome_(std::move(outcome)) {}

  Completion::State Wait(uint64_t timeout_ns) override {
    const auto told = [this] { return outcome_->told; };
    LateQueries* const queries = library_.late_queries;
    if (!told() && queries != nullptr && !queries->AnswerUntil(told, timeout_ns)) Fail(ENOMEM);
    // Forked while another thread was inside HDF5 (vol/fork.cc): the parent has the answer.
    if (!told() && (queries == nullptr || queries->empty())) Fail(ECANCELED);
    if (!told()) return Completion::State::kPending;
    return outcome_->error.ok() ? Completion::State::kDone : Completion::State::kFailed;
  }
  Status error() const override { return outcome_->error; }

 private:
  void Fail(int error) {
    outcome_->error = Status::Failed(error, "answer a query");
    outcome_->told = true;
  }

  LibraryState& library_;
  const std::shared_ptr<Outcome> outcome_;
};

// Of an answer at once, whose objects are open, and whose paths lead from the place.
int FoundItself(void* context, const tl_query_found* found) {
  const auto& args = *static_cast<const tl_query_args*>(context);
  tl_query_found itself = *found;
  itself.path = ".";
  return args.found(args.context, &itself);
}

herr_t Failed(LibraryState& library, const Status& status) {
  h5::PushError(library.hdf5(), status);
  return -1;
}

}  // namespace

herr_t QueryLater(LibraryState& library, std::shared_ptr<File> file, tl_query_later_args& args,
                  void** request) {
  // Below a place in a file with mounts there are objects of others.
  const bool later = request != nullptr && file != nullptr && !library.mounts &&
                     !library.requests.any_failed() && !library.closing;
  if (request != nullptr && !later) Count(Fallback::kQueryNow);
  std::unique_ptr<h5::PendingQuery> pending;
  CallScope scope(CallScope::kNone);
  tl_query_args at_once = args.query;
  at_once.found = FoundItself;
  at_once.context = &args.query;
  Status status = later ? h5::Query(library.hdf5(), args.query, &pending)
                        : h5::Query(library.hdf5(), at_once, nullptr);
  if (!status.ok()) return Failed(library, status);
  if (!later) {
    args.accepted = 1;
    status = Told(args, {});
    return status.ok() ? 0 : Failed(library, status);
  }
  const auto outcome = std::make_shared<Outcome>();
  auto part = std::make_unique<QueryPart>(library, outcome);
  LateQueries::Of(library).Add({std::move(file), args, std::move(pending), scope.TakeCompletion(),
                                outcome, library.changes});
  args.accepted = 1;
  *request = library.requests.Issue(nullptr, std::move(part));
  return 0;
}

bool AnyQuery(const LibraryState& library) {
  return library.late_queries != nullptr && !library.late_queries->empty();
}

bool HasQuery(const LibraryState& library, const File& file) {
  return library.late_queries != nullptr && library.late_queries->Has(file);
}

// If HDF5 cannot be entered, for want of memory, they wait for another call.
void AnswerQueries(LibraryState& library, hid_t dxpl) {
  LateQueries* const queries = library.late_queries;
  if (queries == nullptr || !queries->AnyToAnswer()) return;
  static_cast<void>(Aside(library, dxpl, [queries] { queries->AnswerAll(); }));
}

void AnswerReadyQueries(LibraryState& library, hid_t dxpl) {
  LateQueries* const queries = library.late_queries;
  if (queries == nullptr || !queries->AnyReady()) return;
  static_cast<void>(Aside(library, dxpl, [queries] { queries->AnswerReady(); }));
}

}  // namespace tidelane::vol
