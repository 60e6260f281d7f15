#include "query/register.h"

#include <cerrno>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "h5/query_operation.h"
#include "predicate/encoding.h"
#include "query/apply.h"
#include "query/late_answer.h"
#include "query/quiet_errors.h"

namespace tidelane::query {

namespace {

Status Answer(h5::Library& hdf5, const tl_query_args& args,
              std::unique_ptr<h5::PendingQuery>* pending) {
  std::string why;
  const auto query = predicate::Decode({static_cast<const std::byte*>(args.query), args.size}, why);
  if (query == nullptr) return Status::Failed(EINVAL, "understand the query: " + why);
  if (pending == nullptr) {
    return Apply(hdf5, args.place, query, When::kNow,
                 [&](const Found& found) { return TellAsker(hdf5, args, found, found.path); });
  }
  auto answer = std::make_unique<LateAnswer>(hdf5, args);
  Status status = Apply(hdf5, args.place, query, When::kLater,
                        [&](const Found& found) { return answer->Note(found); });
  if (status.ok()) *pending = std::move(answer);
  return status;
}

Status Run(h5::Library& hdf5, const tl_query_args& args,
           std::unique_ptr<h5::PendingQuery>* pending) {
  const QuietErrors quiet(hdf5);
  try {
    return Answer(hdf5, args, pending);
  } catch (const std::bad_alloc&) {
    return Status::Failed(ENOMEM, "have memory for a query");
  }
}

}  // namespace

void RegisterOperation() { h5::RegisterQuery(&Run); }

}  // namespace tidelane::query
