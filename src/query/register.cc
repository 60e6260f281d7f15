#include "query/register.h"

#include <cerrno>
#include <new>
#include <span>
#include <string>

#include "h5/error.h"
#include "h5/query_operation.h"
#include "predicate/encoding.h"
#include "query/apply.h"
#include "query/quiet_errors.h"

namespace tidelane::query {

namespace {

int NumberOf(Found::Kind kind) {
  switch (kind) {
    case Found::Kind::kRegion: return TL_FOUND_REGION;
    case Found::Kind::kObject: return TL_FOUND_OBJECT;
    case Found::Kind::kAttribute: return TL_FOUND_ATTRIBUTE;
  }
  return -1;
}

Status Answer(h5::Library& hdf5, const tl_query_args& args) {
  std::string why;
  const auto query = predicate::Decode({static_cast<const std::byte*>(args.query), args.size}, why);
  if (query == nullptr) return Status::Failed(EINVAL, "understand the query: " + why);
  return Apply(hdf5, args.place, query, [&](const Found& found) {
    const tl_query_found told{
        NumberOf(found.kind), found.object, found.path.c_str(),
        found.kind == Found::Kind::kAttribute ? found.attribute.c_str() : nullptr, found.space};
    if (args.found(args.context, &told) >= 0) return Status();
    return Status::Failed(ECANCELED, "go on with the query (" + CauseOf(hdf5) + ")");
  });
}

herr_t Run(h5::Library& hdf5, const tl_query_args& args) {
  Status status;
  {
    const QuietErrors quiet(hdf5);
    try {
      status = Answer(hdf5, args);
    } catch (const std::bad_alloc&) {
      status = Status::Failed(ENOMEM, "have memory for a query");
    }
  }
  if (status.ok()) return 0;
  h5::PushError(hdf5, status);
  return -1;
}

}  // namespace

void RegisterOperation() { h5::RegisterQuery(&Run); }

}  // namespace tidelane::query
