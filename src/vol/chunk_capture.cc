#include "vol/chunk_capture.h"

#include <algorithm>
#include <cerrno>
#include <new>

#include "base/counters.h"
#include "engine/engine.h"
#include "file/call_scope.h"
#include "h5/error.h"
#include "vol/chunk_insert.h"
#include "vol/find_file.h"
#include "vol/object_info.h"
#include "vol/transfer_outcome.h"

namespace tidelane::vol {

namespace {

// So many small writes a dataset sees before it is looked at all the same: each asks how large it is.
constexpr unsigned kSmallWrites = 16;
constexpr const char* kStoreChunks = "store chunks that were written";

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

class ChunkCapture::Insertion final : public CallWork {
 public:
  Insertion(ChunkCapture& owner, std::shared_ptr<File> for_file, std::shared_ptr<ChunkJob> job)
      : CallWork(std::move(for_file)), owner_(owner), job_(std::move(job)) {}

  bool ready() const override { return job_->done() || job_->cancelled(); }
  bool unwanted() const override { return job_->cancelled(); }
  void Help() override { job_->FilterHere(); }
  void Await() override { job_->Await(); }
  uint64_t bytes() const override { return job_->grid().ChunkBytes(); }

  // The bytes of one that is part of a request are in an epoch of their own, whatever call we are in.
  bool Do(Attempt attempt) override {
    owner_.NoLongerNewest(*job_);
    const std::shared_ptr<ChunkBatch> late = std::move(job_->late);
    if (late == nullptr) return Insert(attempt);
    CallScope scope(CallScope::kNone, true);
    const bool inserted = Insert(attempt);
    const Status failed = Status::Failed(EIO, kStoreChunks).At(file->path(), 0, 0);
    late->Arrived(scope.TakeParts(), inserted ? Status() : failed);
    return inserted;
  }
  void Gone() override {
    owner_.NoLongerNewest(*job_);
    owner_.Gone(*job_);
  }
  const char* what(Attempt attempt) const override {
    return attempt == Attempt::kFirst ? "put a chunk into the index" : kStoreChunks;
  }

 private:
  bool Insert(Attempt attempt) {
    LibraryState& library = owner_.library_;
    const bool lends = owner_.memory_.MayLend(job_->stored.size());
    const HoldsBytes held(lends ? &job_->stored : nullptr);
    return attempt != Attempt::kBehindFailed &&
           InsertChunk(library, *job_, library.default_dxpl, attempt == Attempt::kAgain);
  }

  ChunkCapture& owner_;
  const std::shared_ptr<ChunkJob> job_;
};

FilteredDataset* ChunkCapture::Find(void* dataset) const {
  return DatasetCatalogue::Of(library_).Find<FilteredDataset>(dataset);
}

FilteredDataset& ChunkCapture::Known(void* dataset, hid_t dxpl) {
  DatasetEntry& entry = DatasetCatalogue::Of(library_).At(dataset);
  if (FilteredDataset* const known = entry.Find<FilteredDataset>(); known != nullptr) return *known;
  const DatasetFacts& facts = FactsOf(library_, dataset, dxpl);
  FilteredDataset& known = entry.Get<FilteredDataset>();
  known.written = LookAtWritten(facts);
  any_ours_ |= known.written.kind == WrittenDataset::Kind::kOurs;
  if (known.written.kind == WrittenDataset::Kind::kPlain)
    entry.filtered_chunks = DatasetEntry::FilteredChunks::kNone;
  return known;
}

bool ChunkCapture::IsPlain(void* dataset, hid_t dxpl) {
  using enum DatasetEntry::FilteredChunks;
  return DatasetCatalogue::Of(library_).At(dataset).filtered_chunks == kNone ||
         Known(dataset, dxpl).written.kind == WrittenDataset::Kind::kPlain;
}

void ChunkCapture::NoteProbablyPlain(void* dataset) {
  DatasetCatalogue::Of(library_).At(dataset).filtered_chunks =
      DatasetEntry::FilteredChunks::kProbablyNone;
}

// nullptr: whatever the dataset is, this write is HDF5's, and meets no chunk of ours.
FilteredDataset* ChunkCapture::LookAt(const Writing& writing, hid_t dxpl) {
  using enum DatasetEntry::FilteredChunks;
  DatasetEntry& entry = DatasetCatalogue::Of(library_).At(writing.dataset);
  if (entry.filtered_chunks == kNone ||
      (entry.filtered_chunks == kProbablyNone && !AnyCallWork(library_))) {
    return nullptr;
  }
  if (entry.Find<FilteredDataset>() == nullptr) {
    if (IsStoredInOnePiece(library_, writing.dataset, dxpl)) {
      entry.filtered_chunks = kNone;
      return nullptr;
    }
    if (!AnyCallWork(library_) && entry.small_writes < kSmallWrites &&
        IsSmallWrite(library_, writing)) {
      ++entry.small_writes;
      return nullptr;
    }
  }
  FilteredDataset& found = Known(writing.dataset, dxpl);
  return found.written.kind == WrittenDataset::Kind::kPlain ? nullptr : &found;
}

bool ChunkCapture::IsOpen(FilteredDataset& known) {
  if (known.open_as_of == file_closes_) return true;
  if (!IsOpenForWriting(library_, *known.written.file)) return false;
  known.open_as_of = file_closes_;
  return true;
}

bool ChunkCapture::Take(const Writing& writing, hid_t dxpl, bool& may_run,
                        const std::shared_ptr<ChunkBatch>& late) {
  may_run = true;
  FilteredDataset* const known = LookAt(writing, dxpl);
  if (known == nullptr) {
    DoReadyCallWork(library_, dxpl);
    return false;
  }
  if (TakeIfOurs(*known, writing, dxpl, late)) return true;
  may_run = !AnyCallWork(library_) || calls_.DoAll(writing.dataset, H5I_DATASET, dxpl);
  return false;
}

bool ChunkCapture::MayTake(FilteredDataset& known) {
  return known.written.kind == WrittenDataset::Kind::kOurs && Engine::Get().lanes().threaded() &&
         !calls_.Fails(*known.written.file) && IsOpen(known);
}

bool ChunkCapture::WouldTake(const Writing& writing, hid_t dxpl) {
  FilteredDataset* const known = LookAt(writing, dxpl);
  std::optional<Fallback> reason;
  return known != nullptr && MayTake(*known) &&
         AsChunkWrite(library_, known->written, writing, dxpl, reason).has_value();
}

bool ChunkCapture::TakeIfOurs(FilteredDataset& known, const Writing& writing, hid_t dxpl,
                              const std::shared_ptr<ChunkBatch>& late) {
  WrittenDataset& facts = known.written;
  std::optional<Fallback> reason = facts.reason;
  if (MayTake(known)) {
    const std::optional<ChunkWrite> write = AsChunkWrite(library_, facts, writing, dxpl, reason);
    if (!write.has_value()) {
      facts.reuse.NoteUse(library_.flushes);
    } else {
      const TouchedChunks touched(facts.grid, write->box, write->memory);
      facts.reuse.NoteWrite(touched, library_.flushes);
      if (facts.reuse.suits_cache()) {
        reason = Fallback::kFilterCached;
      } else {
        if (TakeChunks(known, writing, touched, late)) {
          const bool evicts = touched.count() > facts.reuse.room();
          SetTransferOutcome(library_, dxpl, {.cause = kFiltered, .mode = evicts ? kScalar : 0});
          return true;
        }
        if (!calls_.Fails(*known.written.file)) reason = Fallback::kFilterNoRoom;
      }
    }
  }
  if (reason.has_value()) Count(*reason);
  return false;
}

// All of its chunks, or those that there was room for: HDF5 then writes all of them once more, after them.
bool ChunkCapture::TakeChunks(FilteredDataset& known, const Writing& writing,
                              const TouchedChunks& touched,
                              const std::shared_ptr<ChunkBatch>& late) {
  calls_.DoReadyHere();
  uint64_t i = 0;
  for (; i < touched.count(); ++i) {
    const ChunkPiece piece = touched.At(i);
    const std::shared_ptr<ChunkJob> job = MakeJob(known, writing.dataset, piece.chunk);
    if (job == nullptr) break;
    job->late = late;
    if (!Fill(memory_, known.written, touched, piece, writing.buffer, *job) || !Queue(known, job))
      break;
  }
  if (i != 0) UseIndex(known, writing.dataset);
  return i == touched.count();
}

// HDF5 2 cannot begin to use a kind of index while it closes, when chunks may be left: the first one of each kind is put in at once.
void ChunkCapture::UseIndex(FilteredDataset& known, void* dataset) {
  if (library_.hdf5().major_version() < 2) return;
  const unsigned kind = 1u << (static_cast<unsigned>(IndexOf(library_, dataset)) & 31);
  if ((indexes_used_ & kind) != 0) return;
  const h5::KeepErrorStack keep(library_.hdf5());
  const size_t pending = known.pending;
  while (known.pending == pending && !calls_.empty()) calls_.DoOldest();
  indexes_used_ |= kind;
}

std::shared_ptr<ChunkJob> ChunkCapture::MakeJob(const FilteredDataset& known, void* dataset,
                                                uint64_t number) {
  const size_t size = known.written.grid.ChunkBytes();
  const uint64_t charge = size + known.written.pipeline->Bound(size);
  if (!MakeRoom(charge) || calls_.Fails(*known.written.file)) return nullptr;
  try {
    auto job = std::make_shared<ChunkJob>(dataset, known.written, number);
    job->charge = charge;
    return job;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

bool ChunkCapture::MakeRoom(uint64_t charge) {
  if (charge > ChunkMemory::Most()) return false;
  while (!memory_.HasRoom(charge)) {
    if (calls_.empty()) return false;  // what is left are failures
    const h5::KeepErrorStack keep(library_.hdf5());
    calls_.DoOldest();
  }
  return true;
}

// False: no memory. Whatever may run short does so here.
bool ChunkCapture::Queue(FilteredDataset& known, const std::shared_ptr<ChunkJob>& job) {
  try {
    memory_.Reserve();
    ChunkJob*& newest = known.newest[job->number];
    calls_.Add(std::make_unique<Insertion>(*this, known.written.file, job));
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

void ChunkCapture::NoLongerNewest(const ChunkJob& job) {
  FilteredDataset& known = *Find(job.dataset);
  const auto at = known.newest.find(job.number);
  if (at != known.newest.end() && at->second == &job) known.newest.erase(at);
}

void ChunkCapture::Gone(ChunkJob& job) {
  memory_.CountLent(job.stored);
  memory_.Release(job.charge, std::move(job.bytes));
  FilteredDataset& known = *Find(job.dataset);
  if (--known.pending != 0 || !known.closed) return;
  // HDF5 may write what it holds of the dataset now, and fail: nobody is there to be told.
  const std::shared_ptr<File> file = known.written.file;
  ForgetDataset(library_, job.dataset);
  const auto close = library_.hdf5().native().dataset_cls.close;
  if (close(job.dataset, library_.default_dxpl, nullptr) < 0)
    calls_.NoteLate(file, "close a dataset");
}

const ChunkGrid* ChunkCapture::GridOf(void* dataset) const {
  const FilteredDataset* const known = Find(dataset);
  const bool ours = known != nullptr && known->written.kind == WrittenDataset::Kind::kOurs;
  return ours ? &known->written.grid : nullptr;
}

bool ChunkCapture::InsertBefore(size_t count, void* datasets[], hid_t dxpl) {
  if (count == 1 && IsPlain(datasets[0], dxpl)) {
    calls_.DoReady(dxpl);
    return true;
  }
  return std::all_of(datasets, datasets + count,
                     [&](void* dataset) { return calls_.DoAll(dataset, H5I_DATASET, dxpl); });
}

bool ChunkCapture::OnlyAppends(void* dataset, const hsize_t extent[]) {
  FilteredDataset* const known = Find(dataset);
  if (known == nullptr || calls_.troubled()) return false;
  ChunkGrid& grid = known->written.grid;
  if (!FindExtent(library_, dataset, library_.default_dxpl, grid)) return false;
  return extent[0] >= grid.extent[0] &&
         std::equal(grid.extent.begin() + 1, grid.extent.begin() + grid.rank, extent + 1);
}

void ChunkCapture::End() {
  indexes_used_ = 0;  // HDF5 may open again
  ForgetDatasets(library_);
  memory_.DropSpare();
}

void ChunkCapture::NoteReads(size_t count, void* datasets[]) {
  if (!any_ours_) return;
  for (size_t i = 0; i < count; ++i) {
    FilteredDataset* const known = Find(datasets[i]);
    if (known != nullptr) known->written.reuse.NoteUse(library_.flushes);
  }
}

bool ChunkCapture::KeepOpen(void* dataset) {
  FilteredDataset* const known = Find(dataset);
  if (known == nullptr || known->pending == 0) return false;
  known->closed = true;
  return true;
}

bool ChunkCapture::IsKeptOpen(void* dataset) {
  const h5::KeepErrorStack keep(library_.hdf5());
  H5O_info2_t opened{}, kept{};
  if (dataset != nullptr && !InfoOf(library_, dataset, H5I_DATASET, opened)) return false;
  bool found = false;
  DatasetCatalogue::Of(library_).ForEach<FilteredDataset>(
      [&](void* candidate, const FilteredDataset& known) {
        found = found ||
                (known.closed &&
                 (dataset == nullptr ||
                  (InfoOf(library_, candidate, H5I_DATASET, kept) && kept.fileno == opened.fileno &&
                   std::ranges::equal(kept.token.__data, opened.token.__data))));
      });
  return found;
}

void ChunkCapture::NoteFileClose() {
  ++file_closes_;
  memory_.DropSpare();
}

}  // namespace tidelane::vol
