#include "vol/commit.h"

#include "vol/find_file.h"

namespace tidelane::vol {

namespace {

constinit thread_local unsigned scopes = 0;

}  // namespace

void CommitScope::Begin() { ++scopes; }
void CommitScope::End() { --scopes; }
bool CommitScope::active() { return scopes != 0; }

Status CommitFile(LibraryState& library, void* object, H5I_type_t type) {
  const std::shared_ptr<File> file = FileOf(library, object, type);
  if (file == nullptr) return {};
  return file->Commit(CommitScope::active() ? Committing::kNow : Committing::kIfDue);
}

}  // namespace tidelane::vol
