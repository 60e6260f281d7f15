#include "vol/ranks_filtered.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <new>
#include <utility>

#include "base/activity.h"
#include "base/incidents.h"
#include "engine/engine.h"
#include "extent/test_hooks.h"
#include "file/call_scope.h"
#include "h5/error.h"
#include "h5/parallel_driver.h"
#include "vol/call_inside.h"
#include "vol/chunk_insert.h"
#include "vol/chunk_write.h"
#include "vol/find_file.h"
#include "vol/fork.h"
#include "vol/object_info.h"
#include "vol/ranks_dataset.h"

namespace tidelane::vol {

namespace {

// What ranks tell one another once of a file.
enum Introduction { kDesk, kSubject, kFile, kNetwork, kIntroduction };

constexpr char kStoreChunks[] = "store chunks that were written to";

// Whether the program itself has it open, not only something in it: who closes that commits.
bool IsOpen(LibraryState& library, const h5::ParallelFile& file) {
  if (library.open_files == nullptr) return false;
  return std::ranges::any_of(*library.open_files, [&](void* object) {
    unsigned long serial = 0;
    return SerialOf(library, object, H5I_FILE, serial) &&
           h5::ParallelDriver().file_with_serial(library.slot, serial).get() == &file;
  });
}

bool SelectsNothing(LibraryState& library, const Writing& writing) {
  return writing.file_space != h5::kDefault &&
         library.hdf5().Sget_select_npoints(writing.file_space) == 0;
}

void Finish(const std::vector<RankChunks::Write>& writes, size_t count) {
  const auto done = [](const auto& job) { return job->done(); };
  const auto all_done = [&](const auto& write) { return std::ranges::all_of(write.jobs, done); };
  if (std::all_of(writes.begin(), writes.begin() + static_cast<ptrdiff_t>(count), all_done)) return;
  const Waiting waiting(Wait::kFilter);
  for (size_t i = 0; i < count; ++i) {
    for (const auto& job : writes[i].jobs) job->FilterHere();
  }
  for (size_t i = 0; i < count; ++i) {
    for (const auto& job : writes[i].jobs) job->Await();
  }
}

std::vector<uint64_t> Tell(const std::vector<RankChunks::Write>& writes, size_t count) {
  uint64_t most = 0;
  for (size_t i = 0; i < count; ++i) most += writes[i].most;
  std::vector<uint64_t> told;
  for (size_t i = 0; i < count; ++i) {
    for (const auto& job : writes[i].jobs) {
      const StoredChunk chunk = StoredOf(*job, writes[i].all_filters);
      for (const uint64_t word :
           {uint64_t{i}, job->number, uint64_t{chunk.size}, uint64_t{chunk.mask}}) {
        told.push_back(word);
      }
    }
  }
  told.resize(most * kToldWords);
  return told;
}

}  // namespace

bool RankChunks::MayTake(const h5::ParallelFile& file) const {
  const FileSettings settings = file.file()->settings();
  const auto held = held_.find(file.number());
  return !library_.closing && settings.mode != Mode::kSync && !settings.implicit_sync &&
         !file.file()->writes_through() && Engine::Get().lanes().threaded() && file.capturing() &&
         library_.hdf5().CanForgetLastChunk() && (held == held_.end() || !held->second.failed) &&
         IsOpen(library_, file);
}

// Where ranks read metadata together, one that will not take the write asks HDF5 what the others do: they would wait for it, or get the
// answer to something else.
RankChunks::Offer RankChunks::Look(h5::ParallelFile& file, const Writes& writes, hid_t dxpl) {
  Offer offer;
  const bool may = MayTake(file);
  if (!may && !file.metadata_together) return offer;
  uint64_t charge = 0;
  std::optional<Fallback> refusal;
  for (size_t i = 0; i < writes.count; ++i) {
    const std::optional<Fallback> one = LookAt(file, At(writes, i), dxpl, offer, charge);
    if (!refusal.has_value()) refusal = one;
    if (refusal.has_value() && !file.metadata_together) break;
  }
  if (!may) return offer;
  offer.refusal = refusal;
  if (refusal.has_value()) return offer;
  // What other files hold does not go by committing this one.
  const bool room = memory_.HasRoom(charge);
  offer.no_room = !room && charge <= ChunkMemory::Most() && Hold(file, 0);
  if (!offer.no_room && (!room || !MakeJobs(file, writes, offer)))
    offer.refusal = Fallback::kFilterNoRoom;
  return offer;
}

std::optional<Fallback> RankChunks::LookAt(const h5::ParallelFile& file, const Writing& writing,
                                           hid_t dxpl, Offer& offer, uint64_t& charge) {
  RankDataset& dataset = RankDatasetOf(library_, writing.dataset);
  if (dataset.filtered == nullptr || !HasSpace(library_, writing.dataset, dataset, dxpl) ||
      !FindExtent(library_, writing.dataset, dxpl, dataset.filtered->grid)) {
    return Fallback::kMpiDataset;
  }
  const ChunkedDataset& facts = *dataset.filtered;
  std::shared_ptr<void> handle = Open(file, writing.dataset, dataset.number);
  if (handle == nullptr) return Fallback::kMpiDataset;
  offer.writes.push_back(
      {{dataset.number, facts.grid}, std::move(handle), {}, dataset.all_filters, 0, {}, nullptr});
  offer.touched.emplace_back();
  if (SelectsNothing(library_, writing)) return std::nullopt;
  if (writing.buffer == nullptr) return Fallback::kMpiTransfer;
  Fallback reason{};
  const auto write = ChunksWritten(library_, facts, writing, dxpl, reason);
  if (!write.has_value()) return reason;
  offer.touched.back().emplace(facts.grid, write->box, write->memory);
  const uint64_t chunks = offer.touched.back()->count();
  const uint64_t bytes = facts.grid.ChunkBytes();
  offer.chunks += chunks;
  charge += chunks * (bytes + facts.pipeline->Bound(bytes));
  return std::nullopt;
}

// All that a write needs is allocated before the ranks agree on it.
bool RankChunks::MakeJobs(const h5::ParallelFile& file, const Writes& writes, Offer& offer) {
  try {
    memory_.Reserve();
    Held& held = held_[file.number()];
    held.writes.reserve(held.writes.size() + writes.count);
    board_->Reserve(file.number(), writes.count);
    if (held.reach == Held::Reach::kNotAsked) {
      const auto ranks = static_cast<size_t>(file.ranks());
      held.introduced.reserve(ranks * kIntroduction);
      held.peers.reserve(ranks);
    }
    for (size_t i = 0; i < writes.count; ++i) {
      if (!offer.touched[i].has_value()) continue;
      void* const object = writes.datasets[i];
      const ChunkedDataset& facts = *RankDatasetOf(library_, object).filtered;
      const uint64_t bytes = facts.grid.ChunkBytes();
      for (uint64_t c = 0; c < offer.touched[i]->count(); ++c) {
        auto job = std::make_shared<ChunkJob>(nullptr, facts, offer.touched[i]->At(c).chunk);
        job->bytes = memory_.Buffer(bytes);
        job->charge = bytes + facts.pipeline->Bound(bytes);
        offer.writes[i].jobs.push_back(std::move(job));
      }
      offer.writes[i].shown = offer.writes[i].jobs;
    }
    return file.ranks() == 1 || AnswersFor(offer);
  } catch (const std::bad_alloc&) {
    return false;
  }
}

// From before the ranks agree, so that who asks finds somebody.
bool RankChunks::AnswersFor(Offer& offer) {
  InquiryDesk& desk = InquiryDesk::Get();
  static_cast<void>(desk.number());
  if (!desk.Hold()) return false;
  try {
    const std::shared_ptr<void> held(
        &desk, [](void* const there) { static_cast<InquiryDesk*>(there)->LetGo(); });
    for (Write& write : offer.writes) write.desk = held;
  } catch (const std::bad_alloc&) {  // then it has been let go
    return false;
  }
  return true;
}

void RankChunks::MeetPeers(h5::ParallelFile& file) {
  if (file.ranks() == 1) return;
  Held& held = held_[file.number()];
  if (held.reach == Held::Reach::kNotAsked) FindPeers(file, held);
}

// What each rank says of itself. Processes that share /dev/shm may still be where one finds no socket of the other.
void RankChunks::FindPeers(h5::ParallelFile& file, Held& held) {
  const DirtyRangeTable* const ranges = file.file()->dirty_ranges();
  const bool together = ranges != nullptr && ranges->group().complete;
  struct stat network{};
  const bool known = stat("/proc/self/ns/net", &network) == 0;
  InquiryDesk& desk = InquiryDesk::Get();
  const bool answers = together && known && desk.Hold();
  std::vector<uint64_t> mine(kIntroduction);
  mine[kDesk] = answers ? desk.number() : 0;
  mine[kSubject] = board_->subject();
  mine[kFile] = file.number();
  mine[kNetwork] = network.st_ino;
  const bool told = file.Gather(mine, held.introduced);
  if (answers) desk.LetGo();
  bool all = told;
  for (size_t i = 0; told && i < held.introduced.size(); i += kIntroduction) {
    const uint64_t* const words = &held.introduced[i];
    all = all && words[kDesk] != 0 && words[kNetwork] == mine[kNetwork];
    held.peers.push_back({words[kDesk], words[kSubject], words[kFile]});
  }
  if (!all) held.peers.clear();
  held.reach = all ? Held::Reach::kAll : Held::Reach::kNone;
}

void RankChunks::Take(const std::shared_ptr<h5::ParallelFile>& file, const Writes& writes,
                      Offer offer, uint64_t most) {
  WatchEnds();
  Held& held = held_[file->number()];
  held.file = file;
  for (size_t i = 0; i < writes.count; ++i) {
    Write& write = offer.writes[i];
    write.most = most;
    const ChunkedDataset& facts = *RankDatasetOf(library_, writes.datasets[i]).filtered;
    for (size_t c = 0; c < write.jobs.size(); ++c) {
      const std::shared_ptr<ChunkJob>& job = write.jobs[c];
      CopyChunk(facts, *offer.touched[i], offer.touched[i]->At(c), writes.buffers[i],
                job->bytes.data());
      memory_.Charge(job->charge);
      try {
        Engine::Get().lanes().Schedule(job);
      } catch (const std::bad_alloc&) {  // the commit filters what no lane knows of
      }
    }
    board_->Add(file->number(), held.first + held.writes.size(), write.shared.dataset,
                write.all_filters, std::move(write.shown));
    held.writes.push_back(std::move(write));
  }
}

// What decides whether it comes to this is the dataset's, and so the same on all ranks: HDF5 may read metadata together.
std::shared_ptr<void> RankChunks::Open(const h5::ParallelFile& file, void* dataset,
                                       uint64_t number) {
  if (const auto held = held_.find(file.number()); held != held_.end()) {
    for (const Write& write : held->second.writes) {
      if (write.shared.dataset == number) return write.handle;
    }
  }
  const h5::KeepErrorStack keep(library_.hdf5());
  H5O_info2_t info{};
  if (!InfoOf(library_, dataset, H5I_DATASET, info)) return nullptr;
  H5VL_loc_params_t location{};
  location.obj_type = H5I_DATASET;
  location.type = H5VL_OBJECT_BY_TOKEN;
  location.loc_data.loc_by_token.token = &info.token;
  H5I_type_t type = H5I_BADID;
  const H5VL_class_t& native = library_.hdf5().native();
  void* const opened =
      native.object_cls.open(dataset, &location, &type, library_.default_dxpl, nullptr);
  if (opened == nullptr) return nullptr;
  return {opened, [this](void* object) {
            static_cast<void>(
                library_.hdf5().native().dataset_cls.close(object, library_.default_dxpl, nullptr));
          }};
}

uint64_t RankChunks::Finished(const h5::ParallelFile& file) const {
  const auto held = held_.find(file.number());
  if (held == held_.end()) return 0;
  const auto is_done = [](const std::shared_ptr<ChunkJob>& job) { return job->done(); };
  const auto unfinished = std::ranges::find_if_not(held->second.writes, [&](const Write& write) {
    return std::ranges::all_of(write.jobs, is_done);
  });
  return static_cast<uint64_t>(unfinished - held->second.writes.begin());
}

bool RankChunks::Hold(const h5::ParallelFile& file, uint64_t dataset) const {
  const auto held = held_.find(file.number());
  return held != held_.end() && std::ranges::any_of(held->second.writes, [&](const Write& write) {
           return dataset == 0 || write.shared.dataset == dataset;
         });
}

const ChunkGrid* RankChunks::GridOf(const h5::ParallelFile& file, uint64_t dataset) const {
  const auto held = held_.find(file.number());
  if (held == held_.end()) return nullptr;
  for (const Write& write : held->second.writes) {
    if (write.shared.dataset == dataset) return &write.shared.grid;
  }
  return nullptr;
}

std::optional<std::vector<HeldChunk>> RankChunks::Ask(const h5::ParallelFile& file,
                                                      ChunkQuestion question) {
  std::vector<HeldChunk> chunks;
  const auto found = held_.find(file.number());
  if (found == held_.end()) return chunks;
  const Held& held = found->second;
  question.first_write = held.first;
  question.end_write = held.first + held.writes.size();
  const bool elements = question.what == ChunkQuestion::What::kElements;
  for (size_t i = 0; i < held.writes.size(); ++i) {
    const Write& write = held.writes[i];
    if (write.shared.dataset != question.dataset) continue;
    if (!elements) FilterAll(write.jobs);
    for (const auto& job : write.jobs) {
      if (!question.Concerns(job->grid(), job->origin)) continue;
      HeldChunk& chunk = chunks.emplace_back();
      chunk.write = held.first + i;
      chunk.rank = file.rank();
      chunk.origin = job->origin;
      const StoredChunk stored = elements ? StoredChunk{job->bytes.data(), job->bytes.size()}
                                          : StoredOf(*job, write.all_filters);
      chunk.size = stored.size;
      chunk.mask = stored.mask;
      chunk.bytes = static_cast<const std::byte*>(stored.bytes);
    }
  }
  if (held.reach == Held::Reach::kAll && !MutationEnabled("ranks_peers")) {
    for (size_t rank = 0; rank < held.peers.size(); ++rank) {
      const int number = static_cast<int>(rank);
      if (number != file.rank() && !AskForChunks(held.peers[rank], number, question, chunks))
        return std::nullopt;
    }
  }
  std::ranges::stable_sort(chunks, [](const HeldChunk& one, const HeldChunk& other) {
    return one.write != other.write ? one.write < other.write : one.rank < other.rank;
  });
  return chunks;
}

Status RankChunks::Commit(h5::ParallelFile& file, uint64_t count) {
  const auto held = held_.find(file.number());
  if (held == held_.end()) return {};
  count = std::min<uint64_t>(count, held->second.writes.size());
  if (count == 0) return {};
  // A rank that cannot enter fails before it meets the others, who then wait for it: there is no way without HDF5.
  Status status = Status::Failed(ENOMEM, kStoreChunks).At(held->second.file->file()->path(), 0, 0);
  // With the default transfer list, and out of sight of a call that has another one.
  const auto commit = [&] { status = CommitNow(held->second, count); };
  static_cast<void>(Enter(library_, commit));
  return status;
}

// No rank goes on where another one cannot: each step is agreed upon before the next.
Status RankChunks::CommitNow(Held& held, size_t count) {
  h5::ParallelFile& file = *held.file;
  Finish(held.writes, count);
  Plan plan;
  Status status = Agree(held, count, plan);
  if (status.ok()) status = PutAll(held, plan);
  // What has been captured is this rank's to store; it may not hold anything if it captures no more.
  if (!file.capturing()) static_cast<void>(file.file()->drainer().Drain(Wait::kRanks));
  held.failed = !status.ok();
  if (held.failed) return status;
  held.first += count;
  const bool read = board_->Drop(file.number(), held.first);
  for (size_t i = 0; i < count; ++i) {
    for (const auto& job : held.writes[i].jobs)
      memory_.Release(job->charge, read ? RawBytes() : std::move(job->bytes));
  }
  held.writes.erase(held.writes.begin(), held.writes.begin() + static_cast<ptrdiff_t>(count));
  return {};
}

// Which chunks there are, of all ranks.
Status RankChunks::Agree(Held& held, size_t count, Plan& plan) {
  h5::ParallelFile& file = *held.file;
  const std::string& path = file.file()->path();
  const auto failed = [&](int code) { return Status::Failed(code, kStoreChunks).At(path, 0, 0); };
  std::vector<uint64_t> mine;
  std::vector<uint64_t> words;
  Status status;
  try {
    mine = Tell(held.writes, count);
    words.reserve(mine.size() * static_cast<size_t>(file.ranks()));
  } catch (const std::bad_alloc&) {
    status = failed(ENOMEM);
  }
  status = file.Worst(std::move(status));
  if (!status.ok() || mine.empty()) return status;
  if (!file.Gather(mine, words)) status = failed(EIO);
  try {
    std::vector<ToldChunk> told;
    for (size_t i = 0; i < words.size(); i += kToldWords)
      told.push_back({words[i], words[i + 1], words[i + 2], words[i + 3]});
    std::vector<SharedWrite> shared;
    for (size_t i = 0; i < count; ++i) shared.push_back(held.writes[i].shared);
    plan.chunks = OrderChunks(told, file.ranks(), shared);
    plan.old_sizes.reserve(plan.chunks.size());
  } catch (const std::bad_alloc&) {
    status = failed(ENOMEM);
  }
  return file.Worst(std::move(status));
}

// On to the last one even if one fails: other ranks do. Space that old chunks leave may be the next ones', and another
// rank's: what was there is stored before.
Status RankChunks::PutAll(Held& held, Plan& plan) {
  bool any_old = false;
  for (const OrderedChunk& chunk : plan.chunks) {
    void* const dataset = held.writes[chunk.told.write].handle.get();
    plan.old_sizes.push_back(SizeOfChunk(library_, dataset, chunk.origin, library_.default_dxpl));
    any_old = any_old || plan.old_sizes.back() != 0;
  }
  if (any_old || held.file->deleted_group) {
    Status stored = held.file->Before(h5::SyncPoint::kOverwrite);
    held.file->After();
    if (!stored.ok()) return stored;
  }
  Status all;
  for (size_t i = 0; i < plan.chunks.size(); ++i) {
    Status put = Put(held, plan.chunks[i], plan.old_sizes[i]);
    if (all.ok()) all = std::move(put);
  }
  return held.file->Worst(std::move(all));
}

Status RankChunks::Put(Held& held, const OrderedChunk& chunk, size_t old_size) {
  const Write& write = held.writes[chunk.told.write];
  void* const dataset = write.handle.get();
  const hid_t dxpl = library_.default_dxpl;
  StoredChunk stored{&chunk, chunk.told.size, static_cast<uint32_t>(chunk.told.mask)};
  const bool own = chunk.rank == held.file->rank();
  PreparedBytes* lent = nullptr;
  if (own) {
    const auto job = std::ranges::lower_bound(write.jobs, chunk.told.chunk, {}, &ChunkJob::number);
    stored = StoredOf(**job, write.all_filters);
    if (memory_.MayLend(stored.size)) lent = &(*job)->stored;
  }
  const RetainFailedWrites keep;
  bool put = true;
  if (old_size == stored.size) {  // it would keep its old mask
    const CallScope scope(CallScope::kOtherChunk);
    const size_t another = stored.size > 1 ? stored.size - 1 : 2;
    put = PutChunk(library_, dataset, chunk.origin, {&chunk, another, stored.mask}, dxpl);
  }
  const CallScope scope(own ? CallScope::kOwnChunk : CallScope::kOtherChunk);
  const HoldsBytes holds(lent);
  held.file->BeginCount();
  put = PutChunk(library_, dataset, chunk.origin, stored, dxpl) && put &&
        held.file->captured() == stored.size;
  if (lent != nullptr) memory_.CountLent(*lent);
  put = library_.hdf5().ForgetLastChunk(dataset) && put;
  if (!held.file->refused().ok()) return held.file->refused();
  return put ? Status() : Status::Failed(EIO, kStoreChunks).At(held.file->file()->path(), 0, 0);
}

void RankChunks::Forget(const h5::ParallelFile& file) {
  const auto held = held_.find(file.number());
  if (held == held_.end() || !held->second.writes.empty()) return;
  board_->Forget(file.number());
  held_.erase(held);
}

void RankChunks::End() {
  const h5::KeepErrorStack keep(library_.hdf5());
  for (auto& [key, held] : held_) {
    if (held.writes.empty()) continue;
    const std::string& path = held.file->file()->path();
    Status status = Status::Failed(ECANCELED, kStoreChunks).At(path, 0, 0);
    if (held.file->running()) status = CommitNow(held, held.writes.size());
    if (status.ok()) continue;
    std::fprintf(stderr, "tidelane: at exit: %s\n", status.Message().c_str());
    NoteError(status);
    NoteNotStored(path);
  }
  for (const auto& [key, held] : held_) board_->Forget(key);
  held_.clear();
  memory_.DropSpare();
}

bool CommitChunks(LibraryState& library, h5::ParallelFile& file) {
  if (library.rank_chunks == nullptr) return true;
  const Status status = library.rank_chunks->Commit(file);
  if (!status.ok()) h5::PushError(library.hdf5(), status);
  return status.ok();
}

bool HoldChunksOf(LibraryState& library, const h5::ParallelFile& file, size_t count,
                  void* datasets[]) {
  if (library.rank_chunks == nullptr || !library.rank_chunks->Hold(file, 0)) return false;
  return std::any_of(datasets, datasets + count, [&](void* dataset) {
    const uint64_t number = RankDatasetOf(library, dataset).number;
    return library.rank_chunks->Hold(file, number);
  });
}

bool CommitChunksOf(LibraryState& library, h5::ParallelFile& file, size_t count, void* datasets[]) {
  return !HoldChunksOf(library, file, count, datasets) || CommitChunks(library, file);
}

}  // namespace tidelane::vol
