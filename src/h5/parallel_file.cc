#include "h5/parallel_file.h"

#include <cerrno>
#include <iterator>
#include <utility>

#include "base/activity.h"
#include "extent/test_hooks.h"

namespace tidelane::h5 {
namespace {

// What each moment needs. `broken` names the rule for tests, which show that it is needed.
struct Rule {
  SyncPoint moment;
  const char* broken;
  bool all_before;  // not only this rank's bytes are to be stored by then
  bool chunks;      // filtered chunks that ranks still hold are put into the file first
};

constexpr Rule kRules[] = {
    {SyncPoint::kWrite, "ranks_write", true, false},
    {SyncPoint::kFill, "ranks_fill", true, false},
    {SyncPoint::kFree, "ranks_free", true, true},
    {SyncPoint::kTake, "ranks_take", true, false},
    {SyncPoint::kShrink, "ranks_shrink", true, true},
    {SyncPoint::kCopy, "ranks_copy", true, true},
    {SyncPoint::kOverwrite, "ranks_overwrite", true, false},
    {SyncPoint::kRead, "ranks_read", true, false},
    {SyncPoint::kFlush, "ranks_flush", false, true},
    {SyncPoint::kClose, "ranks_close", false, true},
    {SyncPoint::kAtomic, "ranks_atomic", true, true},
    {SyncPoint::kMount, "ranks_mount", true, true},
};

constexpr const Rule& RuleOf(SyncPoint moment) { return kRules[static_cast<unsigned>(moment)]; }

constexpr bool InOrder() {
  for (unsigned i = 0; i < std::size(kRules); ++i) {
    if (kRules[i].moment != static_cast<SyncPoint>(i)) return false;
  }
  return true;
}
static_assert(InOrder());

}  // namespace

bool NeedsChunks(SyncPoint moment) { return RuleOf(moment).chunks; }

void ParallelFile::Stop(Fallback reason) {
  if (stopped_) return;
  stopped_ = true;
  Count(reason);
  static_cast<void>(file_->drainer().Drain(Wait::kRanks));  // a failure is told by flush and close
}

void ParallelFile::SetAtomic(bool atomic) {
  if (atomic && !atomic_) Count(Fallback::kMpiAtomic);
  atomic_ = atomic;
}

Status ParallelFile::Before(SyncPoint moment) {
  const Rule& rule = RuleOf(moment);
  inside_ = true;
  if (MutationEnabled(rule.broken)) return {};
  const Waiting waiting(Wait::kRanks);
  Status status = file_->drainer().Drain(Wait::kRanks);
  if (status.ok()) places.Clear();
  if (!rule.all_before) return status;
  // Who has opened the file on another communicator does not meet us.
  file_->AwaitOthers(0, UINT64_MAX, DirtyRangeTable::Whose::kOutsiders);
  return Worst(std::move(status));
}

bool ParallelFile::Max(const uint64_t* values, uint64_t* greatest, int count) {
  return mpi_.Max(communicator_, values, greatest, count, waits);
}

bool ParallelFile::Gather(const std::vector<uint64_t>& values, std::vector<uint64_t>& all) {
  all.resize(values.size() * static_cast<size_t>(ranks_));
  return mpi_.Gather(communicator_, values.data(), all.data(), static_cast<int>(values.size()),
                     waits);
}

bool ParallelFile::Any(bool here) {
  const uint64_t mine = here ? 1 : 0;
  uint64_t greatest = 0;
  return !Max(&mine, &greatest, 1) || greatest != 0;
}

Status ParallelFile::Worst(Status here) {
  const bool failed = Any(!here.ok());
  if (!failed || !here.ok()) return here;
  return Status::Failed(EIO,
                        "go on where another rank of this program could not store its bytes in")
      .At(file_->path(), 0, 0);
}

}  // namespace tidelane::h5
