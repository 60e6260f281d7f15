#include "query/late_answer.h"

#include <cerrno>

#include "query/late_search.h"
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

}  // namespace

Status TellAsker(h5::Library& hdf5, const tl_query_args& args, const Found& found) {
  const tl_query_found told{
      NumberOf(found.kind), found.object, found.path.c_str(),
      found.kind == Found::Kind::kAttribute ? found.attribute.c_str() : nullptr, found.space};
  if (args.found(args.context, &told) >= 0) return {};
  return Status::Failed(ECANCELED, "go on with the query (" + CauseOf(hdf5) + ")");
}

Status LateAnswer::Note(const Found& found) {
  Entry entry{found, {}, {}};
  if (hdf5_.Iinc_ref(found.object) < 0)
    return Status::Failed(EIO, "keep what a query has found open (" + CauseOf(hdf5_) + ")");
  entry.object = h5::OwnedId(hdf5_, found.object);
  if (found.space != h5::kNoId) {
    entry.space = h5::OwnedId(hdf5_, hdf5_.Scopy(found.space));
    entry.found.space = entry.space.get();
  }
  entries_.push_back(std::move(entry));
  return {};
}

Status LateAnswer::Finish(bool unchanged) {
  const QuietErrors quiet(hdf5_);
  Status status;
  for (Entry& entry : entries_) {
    if (entry.found.search != nullptr) {
      status = entry.found.search->Finish(unchanged, entry.found.space);
      if (status.ok() && entry.found.space == h5::kNoId) continue;
    }
    if (status.ok()) status = TellAsker(hdf5_, args_, entry.found);
    if (!status.ok()) break;
  }
  entries_.clear();
  return status;
}

}  // namespace tidelane::query
