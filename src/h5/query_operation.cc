#include "h5/query_operation.h"

#include <atomic>

#include "h5/error.h"

namespace tidelane::h5 {

namespace {

herr_t NobodyAnswers(Library& hdf5, const tl_query_args&) {
  PushError(hdf5, "queries are not part of this program");
  return -1;
}

constinit std::atomic<QueryFunction> answer{&NobodyAnswers};

}  // namespace

void RegisterQuery(QueryFunction query) { answer.store(query, std::memory_order_release); }

herr_t Query(Library& hdf5, const tl_query_args& args) {
  return answer.load(std::memory_order_acquire)(hdf5, args);
}

}  // namespace tidelane::h5
