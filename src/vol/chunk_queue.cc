#include "vol/chunk_queue.h"

#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <thread>

#include "base/activity.h"
#include "base/counters.h"
#include "base/trace.h"
#include "engine/engine.h"
#include "file/call_scope.h"
#include "h5/error.h"
#include "vol/call_inside.h"
#include "vol/chunk_holders.h"
#include "vol/chunk_insert.h"
#include "vol/find_file.h"
#include "vol/fork.h"
#include "vol/insert_chunks.h"
#include "vol/object_info.h"
#include "vol/transfer_outcome.h"

namespace tidelane::vol {

namespace {

// So many small writes a dataset sees before it is looked at all the same: each asks how large it is.
constexpr unsigned kSmallWrites = 16;
// Who waits for lanes, but not for ever, looks again after that.
constexpr auto kLook = std::chrono::microseconds(100);

constexpr const char* kStoreChunks = "store chunks that were written";

Status CannotStore(const File& file) {
  return Status::Failed(EIO, kStoreChunks).At(file.path(), 0, 0);
}

// That was taken, until it is given back.
class Reference {
 public:
  explicit Reference(Slab* slab) : slab_(slab) {}
  ~Reference() { Arena::Unref(slab_); }
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;

 private:
  Slab* const slab_;
};

// From memory of ours whoever filters the chunk copies it: this thread only waits until its elements are there. False: they will
// not be.
bool Fill(ChunkMemory& buffers, const ChunkedDataset& facts, const TouchedChunks& touched,
          const ChunkPiece& piece, const void* memory, ChunkJob& job) try {
  const auto* const from = static_cast<const std::byte*>(memory);
  const size_t size = facts.grid.ChunkBytes();
  if (HeldBytes* const held = HoldsBytes::current(); held != nullptr) {
    uint64_t begin = UINT64_MAX;
    uint64_t end = 0;
    touched.ForEachRun(piece, [&](uint64_t, uint64_t in_memory, uint64_t bytes) {
      begin = std::min(begin, in_memory);
      end = std::max(end, in_memory + bytes);
    });
    if (!held->Await(from + begin, end - begin).ok()) return false;
    Slab* const slab = held->SlabOf(from + begin, end - begin);
    if (slab != nullptr) {
      const Reference reference(slab);
      job.bytes = buffers.Spare(size);
      job.source = std::make_unique<ChunkSource>(slab, facts, touched, piece, from);
      return true;
    }
  }
  job.bytes = buffers.Buffer(size);
  CopyChunk(facts, touched, piece, from, job.bytes.data());
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

}  // namespace

void ChunkQueue::NotePending() {
  instance_.chunks_pending.store(!queue_.empty() || !failed_.empty() || !late_errors_.empty(),
                                 std::memory_order_relaxed);
}

FilteredDataset* ChunkQueue::Find(void* dataset) const {
  return DatasetCatalogue::Of(instance_).Find<FilteredDataset>(dataset);
}

const std::shared_ptr<File>& ChunkQueue::FileOfJob(const ChunkJob& job) const {
  return Find(job.dataset)->written.file;
}

FilteredDataset& ChunkQueue::Known(void* dataset, hid_t dxpl) {
  DatasetEntry& entry = DatasetCatalogue::Of(instance_).At(dataset);
  if (FilteredDataset* const known = entry.Find<FilteredDataset>(); known != nullptr) return *known;
  const DatasetFacts& facts = FactsOf(instance_, dataset, dxpl);
  FilteredDataset& known = entry.Get<FilteredDataset>();
  known.written = LookAtWritten(facts);
  any_ours_ |= known.written.kind == WrittenDataset::Kind::kOurs;
  if (known.written.kind == WrittenDataset::Kind::kPlain)
    entry.filtered_chunks = DatasetEntry::FilteredChunks::kNone;
  return known;
}

bool ChunkQueue::IsPlain(void* dataset, hid_t dxpl) {
  using enum DatasetEntry::FilteredChunks;
  return DatasetCatalogue::Of(instance_).At(dataset).filtered_chunks == kNone ||
         Known(dataset, dxpl).written.kind == WrittenDataset::Kind::kPlain;
}

void ChunkQueue::NoteProbablyPlain(void* dataset) {
  DatasetCatalogue::Of(instance_).At(dataset).filtered_chunks =
      DatasetEntry::FilteredChunks::kProbablyNone;
}

// nullptr: whatever the dataset is, this write is HDF5's, and meets no chunk of ours.
FilteredDataset* ChunkQueue::LookAt(const Writing& writing, hid_t dxpl) {
  using enum DatasetEntry::FilteredChunks;
  DatasetEntry& entry = DatasetCatalogue::Of(instance_).At(writing.dataset);
  if (entry.filtered_chunks == kNone ||
      (entry.filtered_chunks == kProbablyNone && !AnyChunksPending(instance_))) {
    return nullptr;
  }
  if (entry.Find<FilteredDataset>() == nullptr) {
    if (IsStoredInOnePiece(instance_, writing.dataset, dxpl)) {
      entry.filtered_chunks = kNone;
      return nullptr;
    }
    if (!AnyChunksPending(instance_) && entry.small_writes < kSmallWrites &&
        IsSmallWrite(instance_, writing)) {
      ++entry.small_writes;
      return nullptr;
    }
  }
  FilteredDataset& found = Known(writing.dataset, dxpl);
  return found.written.kind == WrittenDataset::Kind::kPlain ? nullptr : &found;
}

bool ChunkQueue::IsOpen(FilteredDataset& known) {
  if (known.open_as_of == file_closes_) return true;
  if (!IsOpenForWriting(instance_, *known.written.file)) return false;
  known.open_as_of = file_closes_;
  return true;
}

bool ChunkQueue::Take(const Writing& writing, hid_t dxpl, bool& may_run,
                      const std::shared_ptr<ChunkBatch>& late) {
  may_run = true;
  FilteredDataset* const known = LookAt(writing, dxpl);
  if (known == nullptr) {
    vol::InsertFinished(instance_, dxpl);
    return false;
  }
  if (TakeIfOurs(*known, writing, dxpl, late)) return true;
  may_run = vol::InsertChunks(instance_, writing.dataset, H5I_DATASET, dxpl);
  return false;
}

bool ChunkQueue::MayTake(FilteredDataset& known) {
  return known.written.kind == WrittenDataset::Kind::kOurs && Engine::Get().lanes().threaded() &&
         !Fails(known) && IsOpen(known);
}

bool ChunkQueue::WouldTake(const Writing& writing, hid_t dxpl) {
  FilteredDataset* const known = LookAt(writing, dxpl);
  std::optional<Fallback> reason;
  return known != nullptr && MayTake(*known) &&
         AsChunkWrite(instance_, known->written, writing, dxpl, reason).has_value();
}

bool ChunkQueue::TakeIfOurs(FilteredDataset& known, const Writing& writing, hid_t dxpl,
                            const std::shared_ptr<ChunkBatch>& late) {
  WrittenDataset& facts = known.written;
  std::optional<Fallback> reason = facts.reason;
  if (MayTake(known)) {
    const std::optional<ChunkWrite> write = AsChunkWrite(instance_, facts, writing, dxpl, reason);
    if (!write.has_value()) {
      facts.reuse.NoteUse(instance_.flushes);
    } else {
      const TouchedChunks touched(facts.grid, write->box, write->memory);
      facts.reuse.NoteWrite(touched, instance_.flushes);
      if (facts.reuse.suits_cache()) {
        reason = Fallback::kFilterCached;
      } else {
        if (TakeChunks(known, writing, touched, late)) {
          const bool evicts = touched.count() > facts.reuse.room();
          SetTransferOutcome(instance_, dxpl, {.cause = kFiltered, .mode = evicts ? kScalar : 0});
          return true;
        }
        if (!Fails(known)) reason = Fallback::kFilterNoRoom;
      }
    }
  }
  if (reason.has_value()) Count(*reason);
  return false;
}

// All of its chunks, or those that there was room for: HDF5 then writes all of them once more, after them.
bool ChunkQueue::TakeChunks(FilteredDataset& known, const Writing& writing,
                            const TouchedChunks& touched, const std::shared_ptr<ChunkBatch>& late) {
  WatchForks();
  InsertFinishedNow();
  writer_ = pthread_self();
  uint64_t i = 0;
  for (; i < touched.count(); ++i) {
    const ChunkPiece piece = touched.At(i);
    const std::shared_ptr<ChunkJob> job = MakeJob(known, writing.dataset, piece.chunk);
    if (job == nullptr) break;
    job->late = late;
    if (!Fill(memory_, known.written, touched, piece, writing.buffer, *job) || !Queue(known, job))
      break;
  }
  NotePending();
  return i == touched.count();
}

std::shared_ptr<ChunkJob> ChunkQueue::MakeJob(const FilteredDataset& known, void* dataset,
                                              uint64_t number) {
  const size_t size = known.written.grid.ChunkBytes();
  const uint64_t charge = size + known.written.pipeline->Bound(size);
  if (!MakeRoom(charge) || Fails(known)) return nullptr;
  try {
    auto job = std::make_shared<ChunkJob>(dataset, known.written, number);
    job->charge = charge;
    return job;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

bool ChunkQueue::MakeRoom(uint64_t charge) {
  if (charge > ChunkMemory::Most()) return false;
  while (!memory_.HasRoom(charge)) {
    if (queue_.empty()) return false;  // what is left are failures
    const h5::KeepErrorStack keep(instance_.hdf5());
    InsertOldest();
  }
  return true;
}

// False: no memory. Whatever may run short does so here: what is in the queue can be inserted, or kept as failed.
bool ChunkQueue::Queue(FilteredDataset& known, const std::shared_ptr<ChunkJob>& job) {
  try {
    const size_t jobs = queue_.size() + failed_.size() + 1;
    if (failed_.capacity() < jobs) failed_.reserve(2 * jobs);
    memory_.Reserve();
    ChunkJob*& newest = known.newest[job->number];
    queue_.push_back(job);
    try {
      NoteChunkHeld(instance_.slot, known.written.file);
    } catch (const std::bad_alloc&) {
      queue_.pop_back();
      throw;
    }
    ++known.pending;
    memory_.Charge(job->charge);
    if (job->late != nullptr) ++job->late->on_their_way;
    // Older bytes of the same chunk need not be filtered any more, unless somebody has begun, or will ask for them.
    if (newest != nullptr && newest->late == nullptr) newest->Cancel();
    newest = job.get();
    Engine::Get().lanes().Schedule(job);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

// With the default transfer list, and out of sight of a call that has another one. False: it did not run.
template <typename Work>
bool ChunkQueue::Insert(hid_t dxpl, Work work) {
  const bool ran = Aside(instance_, dxpl, work);
  NotePending();
  return ran;
}

void ChunkQueue::InsertFinishedNow() {
  const auto ready = [this] {
    return !queue_.empty() && (queue_.front()->done() || queue_.front()->cancelled());
  };
  if (!ready()) return;
  const h5::KeepErrorStack keep(instance_.hdf5());
  while (ready()) InsertOldest();
}

void ChunkQueue::InsertFinished(hid_t dxpl) {
  if (queue_.empty() || !(queue_.front()->done() || queue_.front()->cancelled())) return;
  static_cast<void>(Insert(dxpl, [this] { InsertFinishedNow(); }));  // else one of the next calls
}

void ChunkQueue::InsertAll() {
  if (queue_.empty()) return;
  const h5::KeepErrorStack keep(instance_.hdf5());
  while (!queue_.empty()) InsertOldest();
}

// While a lane does the oldest one, this thread does others that nobody has begun.
void ChunkQueue::FinishOldest() {
  ChunkJob& oldest = *queue_.front();
  if (oldest.done() || oldest.cancelled()) return;
  const Waiting waiting(Wait::kFilter, oldest.grid().ChunkBytes());
  for (const std::shared_ptr<ChunkJob>& job : queue_) {
    if (oldest.done()) return;
    job->FilterHere();
  }
  oldest.Await();
}

void ChunkQueue::InsertOldest() {
  FinishOldest();
  const std::shared_ptr<ChunkJob> job = queue_.front();
  queue_.pop_front();
  FilteredDataset& known = *Find(job->dataset);
  if (const auto at = known.newest.find(job->number); at->second == job.get()) {
    known.newest.erase(at);
  }
  if (job->cancelled()) return Drop(*job);
  const bool in_line = Fails(known);
  if (InsertNow(*job, !in_line)) return Drop(*job);
  failed_.push_back(job);
  if (in_line) return;
  // To be told even if a second attempt succeeds: HDF5 may have lost other chunks (dividing a node of its index, say).
  late_errors_.Note(known.written.file, "put a chunk into the index");
}

// The bytes of one that is part of a request are in an epoch of their own, whatever call we are in.
bool ChunkQueue::InsertNow(ChunkJob& job, bool may_try) {
  const std::shared_ptr<ChunkBatch> late = std::move(job.late);
  if (late == nullptr) return may_try && InsertChunk(instance_, job, instance_.default_dxpl);
  CallScope scope(CallScope::kNone, true);
  const bool inserted = may_try && InsertChunk(instance_, job, instance_.default_dxpl);
  late->Arrived(scope.TakeParts(), inserted ? Status() : CannotStore(*FileOfJob(job)));
  return inserted;
}

bool ChunkQueue::InsertFor(const ChunkBatch& late, uint64_t timeout_ns) {
  const bool for_ever = timeout_ns == UINT64_MAX;
  const uint64_t begin_ns = NowNs();
  const auto insert = [&] {
    while (late.on_their_way != 0) {
      if (for_ever) {
        InsertOldest();
        continue;
      }
      InsertFinishedNow();
      if (late.on_their_way == 0 || NowNs() - begin_ns >= timeout_ns) break;
      std::this_thread::sleep_for(kLook);
    }
  };
  const bool ran = Enter(instance_, insert);
  NotePending();
  return ran;
}

// It is in, or never will be.
void ChunkQueue::Drop(ChunkJob& job) {
  memory_.Release(job.charge, std::move(job.bytes));
  FilteredDataset& known = *Find(job.dataset);
  NoteChunkGone(instance_.slot, known.written.file);
  if (--known.pending != 0) return;
  if (!known.closed) return;
  // HDF5 may write what it holds of the dataset now, and fail: nobody is there to be told.
  const std::shared_ptr<File> file = known.written.file;
  ForgetDataset(instance_, job.dataset);
  const auto close = instance_.hdf5().native().dataset_cls.close;
  if (close(job.dataset, instance_.default_dxpl, nullptr) < 0)
    late_errors_.Note(file, "close a dataset");
}

const ChunkGrid* ChunkQueue::GridOf(void* dataset) const {
  const FilteredDataset* const known = Find(dataset);
  const bool ours = known != nullptr && known->written.kind == WrittenDataset::Kind::kOurs;
  return ours ? &known->written.grid : nullptr;
}

bool ChunkQueue::InsertChunksOf(size_t count, void* datasets[], hid_t dxpl) {
  if (count == 1 && IsPlain(datasets[0], dxpl)) {
    InsertFinished(dxpl);
    return true;
  }
  for (size_t i = 0; i < count; ++i) {
    if (!InsertChunks(datasets[i], H5I_DATASET, dxpl)) return false;
  }
  return true;
}

bool ChunkQueue::OnlyAppends(void* dataset, const hsize_t extent[]) {
  FilteredDataset* const known = Find(dataset);
  if (known == nullptr || !failed_.empty() || !late_errors_.empty()) return false;
  ChunkGrid& grid = known->written.grid;
  if (!FindExtent(instance_, dataset, instance_.default_dxpl, grid)) return false;
  return extent[0] >= grid.extent[0] &&
         std::equal(grid.extent.begin() + 1, grid.extent.begin() + grid.rank, extent + 1);
}

void ChunkQueue::NoteReads(size_t count, void* datasets[]) {
  if (!any_ours_) return;
  for (size_t i = 0; i < count; ++i) {
    FilteredDataset* const known = Find(datasets[i]);
    if (known != nullptr) known->written.reuse.NoteUse(instance_.flushes);
  }
}

bool ChunkQueue::InsertChunks(void* object, H5I_type_t type, hid_t dxpl) {
  if (!Insert(dxpl, [this] { InsertAll(); })) {
    h5::PushError(instance_.hdf5(),
                  Status::Failed(ENOMEM, "put chunks that were written into the file"));
    return false;
  }
  if (!AnyChunksPending(instance_) || object == nullptr) return true;
  const std::shared_ptr<File> file = FileOf(instance_, object, type);
  if (file == nullptr) return true;
  bool all = false;
  const auto retry = [&] { all = RetryFailed(*file); };
  if (!Insert(dxpl, retry) || !all) h5::PushError(instance_.hdf5(), CannotStore(*file));
  const bool late = late_errors_.Tell(instance_.hdf5(), *file);
  NotePending();
  return all && !late;
}

// One dataset may have several handles: what was written through one of them is not to overtake what stays of another.
bool ChunkQueue::Fails(const FilteredDataset& known) const {
  return std::ranges::any_of(failed_, [&](const std::shared_ptr<ChunkJob>& job) {
    return FileOfJob(*job) == known.written.file;
  });
}

// What HDF5 says of it stays on the error stack.
bool ChunkQueue::RetryFailed(const File& file) {
  size_t kept = 0;
  bool all = true;
  for (const std::shared_ptr<ChunkJob>& job : failed_) {
    const bool ours = FileOfJob(*job).get() == &file;
    if (ours && all && InsertChunk(instance_, *job, instance_.default_dxpl, true)) {
      Drop(*job);
    } else {
      all = all && !ours;
      failed_[kept++] = job;
    }
  }
  failed_.resize(kept);
  return all;
}

bool ChunkQueue::KeepOpen(void* dataset) {
  FilteredDataset* const known = Find(dataset);
  if (known == nullptr || known->pending == 0) return false;
  known->closed = true;
  return true;
}

bool ChunkQueue::IsKeptOpen(void* dataset) {
  const h5::KeepErrorStack keep(instance_.hdf5());
  H5O_info2_t opened{}, kept{};
  if (dataset != nullptr && !InfoOf(instance_, dataset, H5I_DATASET, opened)) return false;
  bool found = false;
  DatasetCatalogue::Of(instance_).ForEach<FilteredDataset>([&](void* candidate,
                                                               const FilteredDataset& known) {
    found = found ||
            (known.closed &&
             (dataset == nullptr ||
              (InfoOf(instance_, candidate, H5I_DATASET, kept) && kept.fileno == opened.fileno &&
               std::ranges::equal(kept.token.__data, opened.token.__data))));
  });
  return found;
}

void ChunkQueue::NoteFileClose() {
  ++file_closes_;
  memory_.DropSpare();
}

bool ChunkQueue::HasChunksOf(const File& file) const {
  const auto of_file = [&](const std::shared_ptr<ChunkJob>& job) {
    return FileOfJob(*job).get() == &file;
  };
  return std::ranges::any_of(queue_, of_file) || std::ranges::any_of(failed_, of_file);
}

void ChunkQueue::End() {
  InsertAll();
  const h5::KeepErrorStack keep(instance_.hdf5());
  const std::vector<std::shared_ptr<ChunkJob>> failed = std::move(failed_);
  failed_.clear();
  for (const std::shared_ptr<ChunkJob>& job : failed) {
    const std::shared_ptr<File> file = FileOfJob(*job);
    if (!InsertChunk(instance_, *job, instance_.default_dxpl, true)) {
      late_errors_.Note(file, kStoreChunks);
    }
    Drop(*job);
  }
  late_errors_.TellAtExit();
  ForgetDatasets(instance_);
  memory_.DropSpare();
  NotePending();
}

namespace internal {

bool InsertChunks(Instance& instance, void* object, H5I_type_t type, hid_t dxpl) {
  return instance.chunk_queue->InsertChunks(object, type, dxpl);
}

bool InsertChunksOf(Instance& instance, size_t count, void* datasets[], hid_t dxpl) {
  return instance.chunk_queue->InsertChunksOf(count, datasets, dxpl);
}

void InsertFinished(Instance& instance, hid_t dxpl) { instance.chunk_queue->InsertFinished(dxpl); }

bool OnlyAppends(Instance& instance, void* dataset, const hsize_t extent[]) {
  return instance.chunk_queue->OnlyAppends(dataset, extent);
}

}  // namespace internal

}  // namespace tidelane::vol
