/// \file
/// One open file's pipeline: capture, pending map, lanes' work, reads, truncation, drain.
///
/// The program's side (Write, Read, Truncate, Flush, …) is called by the driver in HDF5's order; the lanes' side is
/// RunOne. What storage sees may come in another order, except:
///   1. The first superblock write of a session is stored before anything else, and before the open returns (it marks
///      the file as open for writing). A new file's is, where the file is not locked; otherwise it is as later ones.
///   2. Later superblock writes are stored after everything else, at a drain: extents, then truncation, then superblock.
///   3. Two writes of the same byte are stored in program order.
///   4. Cutting the file short happens at once; making it longer happens at the end of a drain.
///
/// Invariant: `eof()` and Read give what a synchronous driver would give, at every moment.
/// Thread safety: the program's side needs one caller at a time (HDF5's lock gives that); everything else may be called
/// from any thread. Lock order: mutex_, then lanes, then arena. Storage is asked with no lock held.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/activity.h"
#include "base/annotations.h"
#include "base/config.h"
#include "base/counters.h"
#include "base/status.h"
#include "content/content_view.h"
#include "content/read_path.h"
#include "device/device.h"
#include "extent/pending_map.h"
#include "file/call_scope.h"
#include "file/drain_state.h"
#include "file/epoch_source.h"
#include "file/failure_state.h"
#include "file/file_lock.h"
#include "file/flush_planner.h"
#include "file/open_epoch.h"
#include "file/reservation.h"
#include "file/slab_writer.h"
#include "file/superblock_order.h"
#include "file/write_mode.h"
#include "file/write_policy.h"
#include "lane/lanes.h"
#include "model/cost_model.h"
#include "ranks/dirty_range_table.h"
#include "store/store.h"

namespace tidelane {

class ExtentRead;

/// A deadline that does not come.
inline constexpr auto kForEver = std::chrono::steady_clock::time_point::max();

class File final : public LaneTask, public EpochSource, public std::enable_shared_from_this<File> {
 public:
  /// What a file needs of its surroundings; configuration, arena and lanes outlive it.
  struct Environment {
    const Config& config;
    Arena& arena;
    Lanes& lanes;
    /// Asked when the arena is full: give back what idle files hold.
    std::function<void()> relieve_arena = [] {};
    /// Of all files: a program's habits are its own, not its files'.
    std::shared_ptr<model::CostModel> cost_model = std::make_shared<model::CostModel>();
    /// Told when a large write went through because storage is as quick as memory.
    std::function<void(uint64_t file_bytes)> wrote_through = [](uint64_t) {};
    /// Of all files; nullptr: nothing is read ahead.
    std::shared_ptr<PrefetchBudget> prefetch_budget = nullptr;
    /// Where the bytes of a file rest.
    std::function<std::unique_ptr<Store>(const std::shared_ptr<Device>&)> make_store =
        DirectStoreOn;
  };

  enum class Kind {
    kOwn,     ///< while we hold its lock, nobody else writes it
    kShared,  ///< other processes write other bytes of it all the time (the ranks of an MPI program)
  };

  /// Of a shared file only the bytes that are captured are ours: its size, its superblock, its gaps and its lock are
  /// not, nothing of it is kept to be read again, and its close waits.
  File(Environment environment, std::unique_ptr<Device> device, FileIdentity identity,
       std::string path, bool writable, Kind kind = Kind::kOwn);
  ~File() override;

  const FileIdentity& identity() const { return identity_; }
  const std::string& path() const { return path_; }
  bool writable() const { return writable_; }
  /// The process's, unless the file was given its own when it was opened.
  FileSettings settings() const TL_EXCLUDES(mutex_);
  void SetSettings(const FileSettings& settings) TL_EXCLUDES(mutex_);
  /// Bytes that its storage takes in the time of a request (model/cost_model.h).
  uint64_t WorthARequest() const { return costs_.WorthARequest(); }

  // The program's side ------------------------------------------------------------------------------------------

  /// Where HDF5's superblock is (the user block's size); changes are rare and come before the first superblock write.
  void SetBaseAddress(uint64_t address) { superblock_.SetBase(address); }

  /// Of a shared file, before the first write: from now on other processes on this machine see what is pending, and this
  /// one waits for theirs in AwaitOthers.
  void SetDirtyRanges(std::unique_ptr<DirtyRangeTable> table) TL_EXCLUDES(mutex_);
  /// Whether all ranks that have opened the file together see one another's bytes.
  bool shares_dirty_ranges() const {
    return dirty_ranges_ != nullptr && dirty_ranges_->group().complete;
  }
  /// Until no other process holds bytes there that it wrote before this call. Nothing where there is no table.
  using Whose = DirtyRangeTable::Whose;
  void AwaitOthers(uint64_t address, uint64_t size, Whose whose = Whose::kOthers);
  /// Whether those hold any bytes that ranks which have opened this file together do not know of.
  bool OutsidersHold() const {
    return dirty_ranges_ != nullptr && dirty_ranges_->OthersHold(0, UINT64_MAX, Whose::kOutsiders);
  }

  /// Whether so many bytes in small pieces, between which other ranks write, had better be written by the program itself:
  /// they cannot be joined, and behind no pause nothing hides them. Then, and only then, EndScattered when it has.
  bool BeginScattered(uint64_t begin_ns, uint64_t bytes) TL_EXCLUDES(mutex_);
  void EndScattered(uint64_t begin_ns, uint64_t bytes, uint64_t pieces) TL_EXCLUDES(mutex_);

  // `call` is what the call in progress permits.

  /// Captures the bytes and returns; or writes through when it must. Bytes may be reused at once.
  Status Write(uint64_t address, uint64_t size, const void* bytes, const CallContext& call = {})
      TL_EXCLUDES(mutex_);
  /// `raw`: dataset elements rather than metadata.
  Status Read(uint64_t address, uint64_t size, void* buffer, bool raw, const CallContext& call = {})
      TL_EXCLUDES(mutex_);
  /// How it is read. A read of dataset elements into memory that its call has named for it becomes a deferred one.
  ReadPath& reads() { return reads_; }
  DeferredReads& deferred_reads() { return reads_.deferred_reads(); }
  /// The same, for reads that go on by themselves, and keep the file.
  std::shared_ptr<ReadPath> SharedReads() { return {shared_from_this(), &reads_}; }
  /// What was captured since lanes last stored some of it is counted now, for who reads the counters.
  void CountCaptured() TL_EXCLUDES(mutex_);
  /// The size this file has, or will have when drained.
  uint64_t eof() const { return eof_.load(std::memory_order_relaxed); }
  Status Truncate(uint64_t size) TL_EXCLUDES(mutex_);

  /// Waits until everything captured is stored (as native's write calls promise; no fsync), after asking for a retry
  /// of what failed. When the call lets flush return early: starts the drain and returns; when it lets
  /// flush be skipped: does nothing.
  /// `closing`: as a part of a close, whose wait it then is.
  Status Flush(bool closing = false, const CallContext& call = {}) TL_EXCLUDES(mutex_);

  /// For programs that ask about a file: whether everything captured is stored. Starts the work; never waits.
  Status Test(bool& stored) TL_EXCLUDES(mutex_);
  /// Whether a write failed in the background, in any file, since a blocking call last said so.
  static bool AnyUnreported() { return FailureState::AnyUnreported(); }
  /// If it was in this file: tries again, and says how that went. For calls that change the file.
  Status RetryAndReport() TL_EXCLUDES(mutex_);

  /// While paused, bytes are captured and stay: until a flush, a close, a request or the arena wants them stored.
  void SetPaused(bool paused) TL_EXCLUDES(mutex_);
  /// Bytes stay at least so long, unless wanted as above; 0: as the process's settings say.
  void SetDelay(uint64_t us) TL_EXCLUDES(mutex_);
  /// Ends a pause, and has lanes store at once what is queued.
  void Start() TL_EXCLUDES(mutex_);

  Status Lock(bool exclusive) TL_EXCLUDES(mutex_);
  Status Unlock(const CallContext& call = {}) TL_EXCLUDES(mutex_);

  /// From now on every write goes through, in order. `reason` is counted once.
  Status WriteThrough(Fallback reason) TL_EXCLUDES(mutex_);

  /// Nothing is deferred here: somebody else looks at the file while it is open, or Tidelane is to keep out of it.
  bool writes_through() const { return mode_.through(); }

  /// The descriptor as HDF5's get_handle returns it. Drains and writes through from now on if the call says that it
  /// goes to the program.
  Status Descriptor(int*& descriptor, const CallContext& call = {}) TL_EXCLUDES(mutex_);

  // For the engine ----------------------------------------------------------------------------------------------

  /// Whether it has a lock of the file system's, which keeps others out.
  bool locked() const { return lock_.held(); }
  /// Whether the call's close may return before everything is stored.
  bool CloseMayBeDeferred(const CallContext& call) const TL_EXCLUDES(mutex_);
  /// Waits until everything is stored; retries what failed first. `why` says on whose account.
  Status Drain(Wait why) TL_EXCLUDES(mutex_);
  /// As Drain, and a closed file's device is closed as well; but no longer than until `deadline`. `stored`: it came to that.
  Status WaitStored(std::chrono::steady_clock::time_point deadline, bool& stored)
      TL_EXCLUDES(mutex_);
  /// The file was closed; it drains on its own and then calls `finished` once, unless Adopt comes first.
  void DrainInBackground(std::function<void(const std::shared_ptr<File>&)> finished,
                         const CallContext& call = {}) TL_EXCLUDES(mutex_);
  /// The file was opened again while draining. False when it has just finished.
  bool Adopt() TL_EXCLUDES(mutex_);
  /// After DrainInBackground: drains, then waits until the device is closed as well.
  Status WaitClosed(Wait why) TL_EXCLUDES(mutex_);
  /// As WaitClosed, but what failed is not tried again, and its failure not told. False: it failed, or the file was not closed.
  bool AwaitClosed(Wait why) TL_EXCLUDES(mutex_);
  /// Somebody has taken it on to close the device.
  bool being_closed() const TL_EXCLUDES(mutex_);
  /// Nothing more can be stored without a retry.
  bool stuck() const TL_EXCLUDES(mutex_);
  /// Something could not be stored at the last attempt.
  bool failing() const TL_EXCLUDES(mutex_);
  /// No path leads to it any more.
  bool nameless() const;
  /// What is not stored never will be. What is on storage stays as it is: others may have the file open. For files that
  /// are stuck, or that nobody wants.
  void GiveUp() TL_EXCLUDES(mutex_);
  /// The same, and the descriptor is closed: reads and writes fail from now on. The program's side.
  void Abandon() TL_EXCLUDES(mutex_);
  bool abandoned() const { return *device_->descriptor() < 0; }
  /// Whether nothing is pending, a truncation included.
  bool drained() const TL_EXCLUDES(mutex_);
  /// Whether bytes of [address, address + size) are.
  bool HasPending(uint64_t address, uint64_t size) const TL_EXCLUDES(mutex_);
  /// The arena is full: store what is queued, let go of an idle slab.
  void RelieveArena() TL_EXCLUDES(mutex_);
  /// Closes the device after checking that nobody cut the file short meanwhile. Nothing may be pending.
  Status CloseDevice() TL_EXCLUDES(mutex_);

  /// fork: hold the lock across it.
  void LockForFork() TL_NO_ANALYSIS;
  void UnlockAfterFork(bool child) TL_NO_ANALYSIS;

  // For completions ---------------------------------------------------------------------------------------------

  Epochs::State Poll(uint64_t epoch, bool and_older, Status& error) override TL_EXCLUDES(mutex_);
  Epochs::State WaitFor(uint64_t epoch, bool and_older,
                        std::chrono::steady_clock::time_point deadline, Status& error) override
      TL_EXCLUDES(mutex_);
  void EndLoans() override TL_EXCLUDES(mutex_);

  // The lanes' side ---------------------------------------------------------------------------------------------

  void RunOne() override TL_EXCLUDES(mutex_);

 private:
  Status WriteOrKeep(uint64_t address, uint64_t size, const std::byte* bytes, Fallback reason,
                     const CallContext& call) TL_EXCLUDES(mutex_);
  Status StoreOrKeep(Run& direct, const std::byte* bytes, Fallback reason, const CallContext& call)
      TL_EXCLUDES(mutex_);
  // This thread writes storage itself: first nobody else does in that range, then what was pending there is void.
  void BeginDirectLocked(const Run& direct) TL_REQUIRES(mutex_);
  Status StoreDirect(Run& direct, const void* bytes, Fallback reason) TL_EXCLUDES(mutex_);
  Status WriteAsNatively(uint64_t address, uint64_t size, const void* bytes) TL_EXCLUDES(mutex_);
  WriteCosts::WriteBudget BeginLarge(uint64_t now_ns, uint64_t size) const {
    return costs_.Begin(now_ns, path_, mode_.mode(), env_.arena.cap(), env_.arena.in_use(), size);
  }
  Status WriteAtSuperblock(uint64_t address, uint64_t size, const std::byte* bytes, bool through,
                           const CallContext& call) TL_EXCLUDES(mutex_);
  Status Capture(uint64_t address, uint64_t size, const std::byte* bytes, const CallContext& call)
      TL_EXCLUDES(mutex_);
  // One write on its way into memory, or past it, piece by piece.
  struct BufferedWrite {
    const uint64_t bytes;  // of all of it
    const CallContext& call;
    WriteCosts::WriteBudget may_wait{};
    uint64_t piece_ns = 0;  // when the piece before was done; of small writes 0: nothing is timed
    uint64_t copy_ns = 0;   // waits have accounts of their own
    uint64_t through_bytes = 0;
    bool went_through = false;
    uint64_t uncounted = 1;  // this write, until a part of it is captured
    bool enough = false;     // is gathered to be stored
  };
  Status CapturePieces(uint64_t address, uint64_t size, const std::byte* from,
                       BufferedWrite& capturing) TL_EXCLUDES(mutex_);
  void CapturedLocked(const SlabWriter::Space& space, uint64_t address, BufferedWrite& capturing)
      TL_REQUIRES(mutex_);
  bool CaptureSuperblock(uint64_t address, uint64_t size, const std::byte* bytes,
                         const CallContext& call) TL_EXCLUDES(mutex_);
  bool CaptureLent(uint64_t address, uint64_t size, const std::byte* bytes, const CallContext& call)
      TL_EXCLUDES(mutex_);
  bool MakeRoom(uint64_t wanted) TL_EXCLUDES(mutex_);
  void FindSuperblock(uint64_t address, uint64_t size, const void* bytes) TL_EXCLUDES(mutex_);
  // Flushes and closes of a new file will return before it is stored: whoever looks at its first bytes meanwhile (netCDF does)
  // finds an HDF5 file. What storage refuses of them is counted, and fails where the rest of the superblock does.
  void StoreSignature() TL_EXCLUDES(mutex_);
  void AwaitFirstSuperblock() TL_EXCLUDES(mutex_);
  void AwaitFirstSuperblockLocked() TL_REQUIRES(mutex_);
  void AwaitInFlightLocked(uint64_t begin, uint64_t end) TL_REQUIRES(mutex_);
  void InsertLocked(const SlabWriter::Space& space, uint64_t address, const CallContext& call)
      TL_REQUIRES(mutex_);
  uint64_t CurrentEpochLocked(const CallContext& call) TL_REQUIRES(mutex_);
  /// A request is about to be told of a failure: from then on the program may free what it lent us.
  void EndLoansLocked() TL_REQUIRES(mutex_);
  void TallyLocked() TL_REQUIRES(mutex_);
  void ScheduleFlushLocked() TL_REQUIRES(mutex_);
  void MaybeScheduleFlushLocked() TL_REQUIRES(mutex_);
  bool WorthwhileLocked() const TL_REQUIRES(mutex_);
  bool ShouldStoreInlineLocked() const TL_REQUIRES(mutex_);
  void StoreInline() TL_EXCLUDES(mutex_);
  bool CallIsSynchronous(const CallContext& call) const;
  void LingerLocked(std::chrono::steady_clock::duration linger) TL_REQUIRES(mutex_);
  Status DrainUntil(Wait why, std::chrono::steady_clock::time_point deadline, bool& drained)
      TL_EXCLUDES(mutex_);
  DrainState::Facts FactsLocked() const TL_REQUIRES(mutex_) {
    return {pending_, order_.order(), TooShort(), failures_.extend_failed()};
  }
  bool DrainedLocked() const TL_REQUIRES(mutex_) { return drain_.IsDrained(FactsLocked()); }
  bool StuckLocked() const TL_REQUIRES(mutex_) { return drain_.IsStuck(FactsLocked()); }
  /// How to wait for lanes: doing their next piece of work where that is quicker than waking one; making sure that one comes;
  /// or for what is on its way already.
  enum class By : uint8_t { kHelping, kKicking, kSleeping };
  /// Until `done()`, asked once a turn under the lock. False: too late.
  template <typename Done>
  bool AwaitLocked(By by, std::chrono::steady_clock::time_point deadline, Done done)
      TL_REQUIRES(mutex_) {
    bool in_time = true;
    bool is_done = done();
    while (!is_done && in_time) {
      if (by == By::kHelping) {
        in_time = StoreOrWaitLocked(deadline);
      } else {
        if (by == By::kKicking) ScheduleFlushLocked();
        in_time = WaitLocked(deadline);
      }
      is_done = done();
    }
    if (by == By::kHelping) HandOverLocked();
    return is_done;
  }
  /// Until something changed. False: too late.
  bool WaitLocked(std::chrono::steady_clock::time_point deadline) TL_REQUIRES(mutex_);
  /// Stores a run on this thread, if storage takes a write for a copy and nobody else stores. False: it did not.
  bool StoreHereLocked() TL_REQUIRES(mutex_);
  /// One step of a wait for lanes: until something changed, or by doing their next piece of work. False: too late.
  bool StoreOrWaitLocked(std::chrono::steady_clock::time_point deadline) TL_REQUIRES(mutex_);
  /// A wait is over: while it stored, lanes were told of nothing, and take over what is left.
  void HandOverLocked() TL_REQUIRES(mutex_);
  /// Without memory what is queued fails, as on storage that refuses it: it stays, is told, and is tried again.
  void StoreOne() noexcept TL_EXCLUDES(mutex_);
  void StoreNext() TL_EXCLUDES(mutex_);
  void NoMemoryLocked() TL_REQUIRES(mutex_);
  void GoOnLocked(const Run& run, int error) TL_REQUIRES(mutex_);
  void WantLocked(bool and_older) TL_REQUIRES(mutex_);
  Epochs::State StateLocked(uint64_t epoch, bool and_older, Status& error) const
      TL_REQUIRES(mutex_);
  bool TooShort() const {
    return !shared_ && store_->size() < eof_.load(std::memory_order_relaxed);
  }
  void TruncateUp() TL_EXCLUDES(mutex_);
  bool TakeRunLocked(Run& run) TL_REQUIRES(mutex_);
  int WriteRun(Run& run) TL_EXCLUDES(mutex_);
  void AfterRun(Run& run, int error) TL_EXCLUDES(mutex_);
  void NoteProgressLocked() TL_REQUIRES(mutex_);
  void DowngradeIfDrained() TL_EXCLUDES(mutex_);
  void Finish() TL_EXCLUDES(mutex_);
  /// Nobody else can write the file now.
  bool HasExclusiveAccess() const { return !shared_ && lock_.alone(); }
  /// What readers see of it, and what of that is not stored yet.
  class Content final : public ByteSource, public PendingBytes {
   public:
    explicit Content(File& file) : file_(file) {}
    Status Read(Reader reader, uint64_t address, uint64_t size, void* buffer,
                ReadTimes& times) override {
      return ReadContent(*this, *file_.store_, file_.env_.lanes, file_.path_, reader, address, size,
                         buffer, times);
    }
    uint64_t size() const override { return file_.eof(); }
    const std::string& path() const override { return file_.path_; }
    Keep keep() const override;
    std::optional<FileVersion> watched() const override;
    void Overlay(uint64_t address, uint64_t size, std::byte* out, Pieces& pieces, bool& lent,
                 uint64_t& stored) override;

   private:
    File& file_;
  };
  bool DeferRead(uint64_t address, uint64_t size, void* buffer, const CallContext& call);

  const Environment env_;
  const std::shared_ptr<Device> device_;
  const std::unique_ptr<Store> store_;
  const FileIdentity identity_;
  const std::string path_;
  const bool writable_;
  const bool shared_;
  std::unique_ptr<DirtyRangeTable> dirty_ranges_;  // set before it is used by several threads
  std::atomic<uint64_t> eof_{0};
  SuperblockPlace superblock_;  // the program's side's
  Reservation reservation_;     // likewise
  FileLock lock_;
  WriteMode mode_;
  const WriteCosts costs_;

  Content content_{*this};
  ReadPath reads_;

  mutable Mutex mutex_;
  Condition changed_;
  WritePolicy policy_ TL_GUARDED_BY(mutex_);
  PendingMap pending_ TL_GUARDED_BY(mutex_);
  SlabWriter writer_ TL_GUARDED_BY(mutex_);
  FailureState failures_ TL_GUARDED_BY(mutex_);
  struct Loans {
    bool any = false;   // a lent buffer was captured since EndLoansLocked
    bool over = false;  // a failure was seen, which may be told later: lend nothing more
  };
  Loans loans_ TL_GUARDED_BY(mutex_);
  OpenEpoch epoch_ TL_GUARDED_BY(mutex_);
  // What was captured and is not yet among the counters: those are told with each run, and before anyone reads them.
  struct Tally {
    uint64_t writes = 0;
    uint64_t bytes = 0;
  };
  Tally tally_ TL_GUARDED_BY(mutex_);
  SuperblockOrder order_ TL_GUARDED_BY(mutex_);
  FlushPlanner planner_ TL_GUARDED_BY(mutex_);
  DrainState drain_ TL_GUARDED_BY(mutex_);
  bool scheduled_ TL_GUARDED_BY(mutex_) = false;
  bool storing_here_ TL_GUARDED_BY(mutex_) =
      false;  // who waits does the lanes' work: they need not come before it hands over
  struct Closing {
    bool begun = false;   // closed by the program, device not yet closed
    bool waited = false;  // a close has waited
    std::function<void(const std::shared_ptr<File>&)> finished;
  };
  Closing closing_ TL_GUARDED_BY(mutex_);
};

}  // namespace tidelane
