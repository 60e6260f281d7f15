#include "query/late_answer.h"

#include <cerrno>

#include "query/late_search.h"
#include "query/object_name.h"
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

Status TellAsker(h5::Library& hdf5, const tl_query_args& args, const Found& found,
                 const std::string& path) {
  const tl_query_found told{
      NumberOf(found.kind), found.object, path.c_str(),
      found.kind == Found::Kind::kAttribute ? found.attribute.c_str() : nullptr, found.space};
  if (args.found(args.context, &told) >= 0) return {};
  return Status::Failed(ECANCELED, "go on with the query (" + CauseOf(hdf5) + ")");
}

Status LateAnswer::Note(const Found& found) {
  H5O_info2_t info;
  if (hdf5_.Oget_info3(found.object, &info, H5O_INFO_BASIC) < 0)
    return FailedAt(hdf5_, "note that a query has found", found.object);
  Entry entry{found, PathOf(hdf5_, found.object), info.token, {}};
  if (found.space != h5::kNoId) {
    entry.space = h5::OwnedId(hdf5_, hdf5_.Scopy(found.space));
    entry.found.space = entry.space.get();
  }
  entries_.push_back(std::move(entry));
  return {};
}

Status LateAnswer::Tell(hid_t file, bool unchanged, Entry& entry) {
  Found& found = entry.found;
  if (found.search != nullptr) {
    Status status = found.search->Finish(hdf5_, file, unchanged, found.space);
    if (!status.ok() || found.space == h5::kNoId) return status;
  }
  if (!entry.name.empty()) {
    found.object = file;
    return TellAsker(hdf5_, args_, found, entry.name);
  }
  const h5::OwnedId object(hdf5_, hdf5_.Oopen_by_token(file, entry.object));
  if (!object.valid())
    return FailedAt(hdf5_, "open what a query has found, '" + found.path + "', in", file);
  found.object = object.get();
  return TellAsker(hdf5_, args_, found, ".");
}

Status LateAnswer::Finish(hid_t file, bool unchanged) {
  const QuietErrors quiet(hdf5_);
  for (Entry& entry : entries_) {
    if (Status status = Tell(file, unchanged, entry); !status.ok()) return status;
  }
  return {};
}

}  // namespace tidelane::query
