#include "content/read_ahead.h"

#include <unistd.h>

#include <new>

#include "base/activity.h"
#include "base/counters.h"

namespace tidelane {

void AheadFetcher::Start() {
  if (!scheduled_.exchange(true, std::memory_order_acq_rel)) lanes_.Schedule(shared_from_this());
}

void AheadFetcher::RunOne() {
  scheduled_.store(false, std::memory_order_release);
  if (!pieces_->AnyWanted()) return;
  const std::shared_ptr<Slab> slab = PrefetchBudget::TakeSlab(room_);
  if (slab == nullptr) return pieces_->GiveUp();
  const std::vector<PrefetchBuffer::Fetch> batch = pieces_->TakeBatch(slab);
  if (pieces_->AnyWanted()) Start();  // another lane may join
  for (const PrefetchBuffer::Fetch& fetch : batch) {
    Working working(fetch.size);
    bool fetched = false;
    try {
      fetched = fetch_(fetch.begin, fetch.size, fetch.to);
    } catch (const std::bad_alloc&) {
      // As any failure: the read that needs these bytes will say so.
    }
    working.Stop();
    if (fetched) Count(Counter::kAheadBytes, fetch.size);
    pieces_->End(fetch, fetched);
  }
}

ReadAhead::ReadAhead(Lanes& lanes, std::shared_ptr<PrefetchBudget> room,
                     std::shared_ptr<PrefetchBuffer> pieces, AheadFetcher::Fetch fetch)
    : room_(std::move(room)),
      pieces_(std::move(pieces)),
      fetcher_(std::make_shared<AheadFetcher>(lanes, room_, pieces_, std::move(fetch))),
      process_(getpid()) {}

bool ReadAhead::ours() const { return getpid() == process_; }

void ReadAhead::Note(uint64_t address, uint64_t size, uint64_t eof) {
  const bool jumped = predictor_.Observe(address, size);
  since_ += size;
  if (!jumped && since_ < planned_ / 4) return;
  predictor_.Predict(room_->most(), eof, next_);
  since_ = planned_ = 0;
  if (next_.empty()) return;
  for (const ByteRange& range : next_) planned_ += range.size();
  if (pieces_->Want(next_, room_->most())) fetcher_->Start();
}

void ReadAhead::Stop() {
  pieces_->DropAll();
  pieces_->AwaitLanes();
}

}  // namespace tidelane
