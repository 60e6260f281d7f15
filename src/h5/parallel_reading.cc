#include "h5/parallel_reading.h"

#include <new>

#include "base/activity.h"
#include "content/node_blocks.h"
#include "extent/test_hooks.h"

namespace tidelane::h5 {

void ParallelReading::Look() {
  if (MutationEnabled("reads_written")) return;
  if (!written_ && table_ != nullptr && table_->joined() != joined_) {
    written_ = true;
    KeepNothing(*file_, Fallback::kMpiWritten);
  }
  file_->reads().ForgetIfChangedNow();
}

void ParallelReading::AwaitOthers(uint64_t begin, uint64_t end) {
  if (table_ == nullptr || !table_->OthersHold(begin, end) || MutationEnabled("reads_written"))
    return;
  const Waiting waiting(Wait::kRanks);
  table_->AwaitOthers(begin, end);
}

void ParallelReading::ReadMetadataApart() {
  metadata_together_ = false;
  if (job_.id == 0 || job_.processes < 2 || MutationEnabled("node_shared")) return;
  auto node = std::unique_ptr<NodeBlocks>(new (std::nothrow) NodeBlocks(file_->identity(), job_));
  if (node != nullptr) file_->reads().ShareBlocks(std::move(node));
}

bool ParallelReading::Agree(bool small) {
  const uint64_t mine = small ? 1 : 0;
  uint64_t any = 0;
  if (!mpi_.Max(communicator_, &mine, &any, 1, waits)) return false;
  by_mpi_ = any != 0;
  return true;
}

}  // namespace tidelane::h5
