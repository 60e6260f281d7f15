#include "h5/parallel_publication.h"

#include <cerrno>
#include <climits>
#include <iterator>
#include <map>
#include <new>
#include <utility>

#include "base/annotations.h"
#include "base/counters.h"
#include "base/notices.h"
#include "extent/test_hooks.h"
#include "publish/unpublished.h"

namespace tidelane::h5 {
namespace {

constexpr int kMostTries = 64;       // against others who replace the file meanwhile
constexpr mode_t kMode = 0666;       // MPI-IO's, less the umask
constexpr size_t kBytesOfAWord = 7;  // what Mpi::Max takes is below 2^63
constexpr uint64_t kInodeBits = UINT64_MAX >> 1;

// Files that this process has created with others, by what is found by their names (publish/unpublished.h).
class Created {
 public:
  static Created& Get() {
    static auto* const created = new Created;  // never destroyed: HDF5 may close files late
    return *created;
  }
  void Add(const Publication* publication, const std::shared_ptr<ParallelPublication>& file)
      TL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    files_[publication] = file;
  }
  void Remove(const Publication* publication) TL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    files_.erase(publication);
  }
  std::shared_ptr<ParallelPublication> Of(const Publication* publication) TL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const auto at = files_.find(publication);
    return at == files_.end() ? nullptr : at->second.lock();
  }

 private:
  Mutex mutex_;
  std::map<const Publication*, std::weak_ptr<ParallelPublication>> files_ TL_GUARDED_BY(mutex_);
};

enum class Outcome : uint64_t { kUnknown, kNatively, kInPlace, kHidden, kFailed };

// What rank 0 tells.
struct Decision {
  static constexpr size_t kPathWords = PATH_MAX / kBytesOfAWord + 1;

  uint64_t words[3 + kPathWords] = {};

  void Set(Outcome outcome, uint64_t detail) {
    words[0] = static_cast<uint64_t>(outcome);
    words[1] = detail;
  }
  Outcome outcome() const { return static_cast<Outcome>(words[0]); }
  uint64_t detail() const { return words[1]; }
  uint64_t inode() const { return words[2]; }
  bool SetHidden(uint64_t inode, const std::string& path) {
    if (path.empty() || path.size() >= PATH_MAX) return false;
    Set(Outcome::kHidden, 0);
    words[2] = inode & kInodeBits;
    for (size_t i = 0; i < path.size(); ++i) {
      words[3 + i / kBytesOfAWord] |= uint64_t{static_cast<unsigned char>(path[i])}
                                      << (8 * (i % kBytesOfAWord));
    }
    return true;
  }
  std::string path() const {
    std::string path;
    for (size_t i = 0; i < PATH_MAX; ++i) {
      const auto c = static_cast<char>(words[3 + i / kBytesOfAWord] >> (8 * (i % kBytesOfAWord)));
      if (c == '\0') break;
      path += c;
    }
    return path;
  }
};

// Rank 0's part, without the others.
void Decide(const char* name, bool only_new, std::shared_ptr<Publication>& publication,
            Decision& decision) try {
  if (const auto hidden = Unpublished::Get().At(name); hidden != nullptr)
    return decision.Set(Outcome::kFailed, only_new ? EEXIST : EWOULDBLOCK);
  if (IsBeingWritten(name)) return decision.Set(Outcome::kFailed, EWOULDBLOCK);
  for (int tries = 0; tries < kMostTries; ++tries) {
    Publication::Begun begun;
    const Publication::Beginning beginning = Publication::Begin(name, only_new, kMode, begun);
    publication = std::move(begun.publication);  // it keeps the claim; MPI-IO opens the file itself
    switch (beginning) {
      case Publication::Beginning::kNatively: return decision.Set(Outcome::kNatively, 0);
      case Publication::Beginning::kLocked: return decision.Set(Outcome::kFailed, EWOULDBLOCK);
      case Publication::Beginning::kAgain: continue;
      case Publication::Beginning::kFailed:
        return decision.Set(Outcome::kFailed, static_cast<uint64_t>(begun.error));
      case Publication::Beginning::kInPlace:
        return decision.Set(Outcome::kInPlace, static_cast<uint64_t>(begun.why));
      case Publication::Beginning::kHidden:
        if (!decision.SetHidden(publication->identity().inode, publication->HiddenPath()))
          decision.Set(Outcome::kInPlace, static_cast<uint64_t>(Fallback::kPublishFolder));
        return;
    }
  }
  decision.Set(Outcome::kFailed, ESTALE);
} catch (const std::bad_alloc&) {  // the others wait for this rank's answer all the same
  decision.Set(Outcome::kFailed, ENOMEM);
  try {
    if (publication == nullptr) SweepHidden(name);
  } catch (const std::bad_alloc&) {  // whoever creates the file next removes what is left
  }
}

// Nothing was done with what rank 0 has made.
void GiveUp(const std::shared_ptr<Publication>& publication) {
  if (publication == nullptr) return;
  publication->Join();
  publication->Withhold(true);
  static_cast<void>(publication->Leave(false, {}));
}

// Every rank's own part of step 1, once rank 0 has told the others. Whatever fails, it says so to them.
bool Prepare(Library& library, const char* name, bool only_new, bool may_hide,
             const Decision& decision, std::shared_ptr<Publication>& publication,
             std::unique_ptr<ParallelOpening>& opening) try {
  if (!may_hide) return false;
  const std::string path = decision.path();
  if (publication == nullptr) {
    if (Publication::Follow(name, only_new, decision.inode(), publication) != 0) return false;
    const std::optional<FileIdentity> found = IdentityAt(path.c_str());
    if (!found.has_value() || (found->inode & kInodeBits) != decision.inode()) return false;
  }
  WatchExit(library.slot());
  auto made = std::make_unique<ParallelOpening>();
  made->library = &library;
  made->name = name;
  made->publication = std::make_shared<ParallelPublication>(name, path, publication);
  Created::Get().Add(publication.get(), made->publication);
  opening = std::move(made);
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

Status InPlace(Fallback reason, const char* name) {
  Count(reason);
  NoteNative(reason, name);
  return {};
}

Status CannotCreate(int error, const char* name) {
  return Status::Failed(error, error == EWOULDBLOCK ? "lock" : "create").At(name, 0, 0);
}

}  // namespace

OwnCommunicator::OwnCommunicator(Library& library, hid_t fapl) {
  const Mpi* const mpi = library.mpi();
  if (mpi != nullptr && mpi->running() && library.Pget(fapl, "mpi_params_comm", &handle_.bits) >= 0)
    mpi_ = mpi;
}

OwnCommunicator::~OwnCommunicator() {
  if (mpi_ != nullptr && mpi_->running()) mpi_->Free(handle_);
}

// What a rank says of a file that it has closed; the greatest counts.
enum class ParallelPublication::State : uint64_t {
  kStored,
  kDeleted,
  kWithheld,
  kWrittenAlone,
  kFailed,
};

ParallelPublication::ParallelPublication(std::string name, std::string hidden,
                                         std::shared_ptr<Publication> publication)
    : name_(std::move(name)), path_(std::move(hidden)), publication_(std::move(publication)) {
  publication_->Join();
}

ParallelPublication::~ParallelPublication() {
  Created::Get().Remove(publication_.get());
  if (!ended_) End(!opened_);
}

// It is not published by this rank.
void ParallelPublication::End(bool useless) {
  ended_ = true;
  publication_->Withhold(useless);
  static_cast<void>(publication_->Leave(false, name_));
  publication_->NoteEnd();
}

Status ParallelPublication::Create(Library& library, hid_t fapl, const char* name, bool only_new,
                                   bool may_hide, std::unique_ptr<ParallelOpening>& opening) {
  if (library.mpi() == nullptr) return InPlace(Fallback::kPublishMpi, name);
  OwnCommunicator communicator(library, fapl);
  int rank = 0;
  int ranks = 0;
  // Then HDF5 cannot do without it, either.
  if (!communicator.valid() || !communicator.Place(rank, ranks)) return {};

  Decision mine;
  Decision decision;
  std::shared_ptr<Publication> publication;
  if (rank == 0 && may_hide) Decide(name, only_new, publication, mine);
  if (rank == 0 && !may_hide)
    mine.Set(Outcome::kInPlace, static_cast<uint64_t>(Fallback::kPublishMpi));
  const bool told = communicator.Max(mine.words, decision.words, std::size(mine.words));
  if (!told || decision.outcome() != Outcome::kHidden) GiveUp(publication);
  if (!told) return CannotCreate(EIO, name);
  switch (decision.outcome()) {
    case Outcome::kHidden: break;
    case Outcome::kInPlace: return InPlace(static_cast<Fallback>(decision.detail()), name);
    case Outcome::kFailed: return CannotCreate(static_cast<int>(decision.detail()), name);
    default: return {};
  }

  const bool able = Prepare(library, name, only_new, may_hide, decision, publication, opening);
  const uint64_t unable = able ? 0 : 1;
  uint64_t any_unable = 1;
  if (communicator.Max(&unable, &any_unable, 1) && any_unable == 0) {
    ParallelPublication& made = *opening->publication;
    made.communicator_ = std::move(communicator);
    made.rank_ = rank;
    made.ranks_ = ranks;
    return {};
  }
  if (!able && rank == 0) GiveUp(publication);
  opening = nullptr;
  return InPlace(Fallback::kPublishMpi, name);
}

void ParallelPublication::Open(Library& library, const char* name, bool writable,
                               std::unique_ptr<ParallelOpening>& opening) {
  const std::shared_ptr<Publication> hidden = Unpublished::Get().At(name);
  if (hidden == nullptr) return;
  std::shared_ptr<ParallelPublication> file = Created::Get().Of(hidden.get());
  if (file == nullptr) return;
  opening = std::make_unique<ParallelOpening>();
  opening->library = &library;
  opening->name = name;
  opening->writable = writable;
  opening->publication = std::move(file);
}

void ParallelPublication::Join(const ParallelOpening& opening) {
  opened_ = true;
  if (opening.together)
    ++open_together_;
  else if (opening.writable)
    ++writing_alone_;
}

Status ParallelPublication::Leave(const ParallelOpening& opening, bool closed) {
  failed_ |= !closed || opening.spoiled || opening.cut_refused || !opening.refused.empty();
  if (!opening.together) {
    if (opening.writable) --writing_alone_;
    return {};
  }
  return --open_together_ == 0 ? Publish() : Status();
}

ParallelPublication::State ParallelPublication::Now() const {
  if (failed_) return State::kFailed;
  if (writing_alone_ != 0) return State::kWrittenAlone;
  if (publication_->withheld() || ExitsByError()) return State::kWithheld;
  return publication_->discarded() ? State::kDeleted : State::kStored;
}

// Nothing is thrown between the exchanges.
Status ParallelPublication::Publish() {
  const State here = Now();
  // Rank 0 does not wait for what the others say.
  if (MutationEnabled("publish_close") && rank_ == 0)
    static_cast<void>(publication_->PublishNow(name_));
  const auto mine = static_cast<uint64_t>(here);
  auto worst = static_cast<uint64_t>(State::kFailed);
  const bool told = communicator_.Max(&mine, &worst, 1);
  if (!told) worst = static_cast<uint64_t>(State::kFailed);
  if (worst != static_cast<uint64_t>(State::kStored)) {
    communicator_ = OwnCommunicator();
    End(false);
    return WhyNot(static_cast<State>(worst), here, told);
  }

  Status status;
  uint64_t error = 0;
  if (rank_ == 0) {
    ended_ = true;
    try {
      status = publication_->Leave(true, name_);
      error = status.ok() ? 0 : static_cast<uint64_t>(status.code());
    } catch (const std::bad_alloc&) {
      error = ENOMEM;
    }
  }
  uint64_t any_error = 0;
  if (!communicator_.Max(&error, &any_error, 1)) any_error = EIO;
  communicator_ = OwnCommunicator();
  if (!ended_) End(false);
  if (!status.ok() || any_error == 0) return status;
  return Status::Failed(static_cast<int>(any_error), "publish " + path_ + " as").At(name_, 0, 0);
}

// What this rank wants so is no failure.
Status ParallelPublication::WhyNot(State worst, State here, bool told) const {
  const auto failed = [this](int error, const char* why) {
    return Status::Failed(error, "publish " + path_ + why).At(name_, 0, 0);
  };
  if (worst == State::kDeleted || (worst == State::kWithheld && here == worst)) return {};
  if (worst == State::kWithheld) return failed(ECANCELED, ", which another rank withholds, as");
  if (worst == State::kWrittenAlone)
    return failed(EBUSY, ", which some ranks still have open to write to it alone, as");
  if (!told) return failed(EIO, " without an answer of the other ranks, as");
  if (here == State::kFailed) return failed(EIO, ", part of which storage refused, as");
  return failed(EIO, ", part of which storage refused to another rank, as");
}

}  // namespace tidelane::h5
