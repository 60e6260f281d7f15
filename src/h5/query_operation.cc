#include "h5/query_operation.h"

#include <atomic>
#include <cerrno>

namespace tidelane::h5 {

namespace {

Status NobodyAnswers(Library&, const tl_query_args&, std::unique_ptr<PendingQuery>*) {
  return Status::Failed(ENOSYS, "answer queries, which are not part of this program");
}

constinit std::atomic<QueryFunction> answer{&NobodyAnswers};

}  // namespace

void RegisterQuery(QueryFunction query) { answer.store(query, std::memory_order_release); }

Status Query(Library& hdf5, const tl_query_args& args, std::unique_ptr<PendingQuery>* pending) {
  return answer.load(std::memory_order_acquire)(hdf5, args, pending);
}

}  // namespace tidelane::h5
