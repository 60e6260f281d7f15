/// \file
/// What the top of the library tells the bottom: what the call in progress is, permits and asks for, and its request.
///
/// The VOL face puts a CallScope on the stack around a native call; the driver, called from inside it on the same
/// thread, reads it by `CallContext::Current()`. Without a scope the driver obeys flush, unlock and close like any honest driver: what
/// a scope permits is never needed for correctness. What it orders is (kWriteThrough, kHandOutDescriptor, kStartSwmr, kOtherChunk).
///
/// Invariant: scopes nest like the calls; an inner scope hides the outer one.
/// Thread safety: a scope belongs to the thread that made it.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "base/config.h"
#include "file/completion.h"
#include "file/element_places.h"
#include "file/held_bytes.h"

namespace tidelane {

class EpochSource;
class File;
class ExtentRead;
class ParallelRead;
class ParallelReadSource;
struct Slab;

class CallScope {
 public:
  // What the call permits, what it is, and what it asks for.
  enum Flag : unsigned {
    kNone = 0,
    kFlushMayReturnEarly =
        1,  ///< flush starts the drain and need not wait for it (H5Fflush_async, flush=deferred)
    kFlushMayBeSkipped =
        16,  ///< flush need do nothing (HDF5 flushes the superblock at the end of create and open)
    kCloseMayBeDeferred =
        2,  ///< close may return while the file drains; it keeps its lock until it is whole
    kHandOutDescriptor =
        4,  ///< the program may look past HDF5 (it gets the descriptor): drain, write through from now on
    kStartSwmr = 8,       ///< the file becomes a SWMR file: drain, write through from now on
    kFlushAsSet = 32,     ///< flush may return early if the file's settings say so
    kWriteThrough = 128,  ///< what this call writes is to be stored when it returns
    kForClose = 256,      ///< a flush is the first step of a close: its wait is the close's
    // Of files that MPI programs share (vfd/mpio.cc), where HDF5 was given an independent transfer:
    kCaptureAlone = 512,      ///< elements that it writes may be captured
    kCaptureTogether = 1024,  ///< likewise, and none of them is held by another rank: they agreed
    kReadAlone = 2048,        ///< elements that it reads may be held by another rank
    // Of their filtered chunks, which all ranks put into the file (vol/ranks_filtered.h):
    kOwnChunk = 4096,    ///< what it writes is a chunk of this rank's: captured in any case
    kOtherChunk = 8192,  ///< what it writes is another rank's, and not written here
  };

  /// `track`: remember which bytes this call captured, for a request.
  explicit CallScope(unsigned flags, bool track = false);
  ~CallScope();
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

  static CallScope* current();
  static bool Has(Flag flag) {
    const CallScope* scope = current();
    return scope != nullptr && scope->has(flag);
  }
  bool has(Flag flag) const { return (flags_ & flag) != 0; }
  /// Whether another thread of this process that is still there has ever made a call: it may be inside HDF5 now.
  static bool OthersMayBeInside();

  // Driver side -------------------------------------------------------------------------------------------------
  bool tracks() const { return track_; }
  /// This call captured bytes of `file` in `epoch`, its newest, or asked for a barrier on it.
  void Touch(const std::shared_ptr<EpochSource>& file, uint64_t epoch, bool and_older);
  /// The last epoch this call opened on `file`, 0 if none yet.
  uint64_t EpochOf(const EpochSource* file) const;
  /// A loan (buffer/loan.h) that `bytes` lie in, with a reference for the extent to be; nullptr: they must be copied.
  Slab* LoanOf(const std::byte* bytes, uint64_t size);
  /// Whether bytes that are read into [to, to + size) may come after the call.
  bool MayComeLater(const std::byte* to, uint64_t size) const;
  /// What of `file` this call reads later, so far; nullptr: nothing yet.
  std::shared_ptr<ExtentRead> PiecesOf(const ParallelReadSource& file) const;
  void AddPieces(std::shared_ptr<ExtentRead> read);
  /// This call closed `file`, whose bytes could not be stored: the engine keeps it for another attempt.
  void Keep(std::shared_ptr<File> file) { kept_ = std::move(file); }
  /// This call opened `file`, which was closed and still draining: if it closes it again, nothing has happened.
  void SetAdopted(const File* file) { adopted_ = file; }
  const File* adopted() const { return adopted_; }
  /// HDF5 has flushed `file` in this call.
  void NoteFlushed(std::shared_ptr<File> file);
  /// The settings for files that this call opens; nullptr: the process's.
  const FileSettings* file_settings() const { return file_settings_; }

  // VOL side ----------------------------------------------------------------------------------------------------
  /// The bytes that were captured, to be waited for together with those of other calls.
  std::vector<Completion::Part> TakeParts() { return std::exchange(parts_, {}); }
  /// What to wait for; nullptr when nothing is pending (the call is already complete).
  std::shared_ptr<Completion> TakeCompletion();
  /// Files that HDF5 has flushed, each once, in the order of that.
  std::vector<std::shared_ptr<File>> TakeFlushed() { return std::exchange(flushed_, {}); }
  /// The file that the engine kept when its close failed, if it did.
  std::shared_ptr<File> TakeKept() { return std::move(kept_); }
  /// The program keeps `size` bytes at `begin` as they are until the request of this call has completed: they need not
  /// be copied. Only for calls that leave a request: if none is taken, they are copied when the scope ends.
  void Lend(const void* begin, uint64_t size);
  /// The program leaves these bytes alone until the request of this call has completed, and nobody else looks at them
  /// during the call: elements may be read into them later. If no request is taken, they are read when the scope ends.
  void AcceptLater(std::byte* begin, uint64_t size) { accepted_.push_back({begin, size}); }
  /// A part of this call that goes on after it.
  void AddRead(std::shared_ptr<ParallelRead> read, uint64_t bytes);
  /// One flag more.
  void Set(Flag flag) { flags_ |= flag; }
  /// `settings` must outlive the scope.
  void SetFileSettings(const FileSettings* settings) { file_settings_ = settings; }

 private:
  struct Memory {
    const std::byte* begin;
    uint64_t size;
  };

  unsigned flags_;
  const bool track_;
  CallScope* const outer_;
  std::vector<Completion::Part> parts_;
  std::vector<Memory> accepted_;
  std::vector<std::shared_ptr<ExtentRead>> pieces_;  // grow until the call is over
  std::vector<std::shared_ptr<ParallelRead>> reads_;
  const std::byte* lent_begin_ = nullptr;
  uint64_t lent_size_ = 0;
  Slab* loan_ = nullptr;
  const FileSettings* file_settings_ = nullptr;
  std::shared_ptr<File> kept_;
  const File* adopted_ = nullptr;
  std::vector<std::shared_ptr<File>> flushed_;
};

/// What the call in progress permits and asks for, as a file needs it. The driver reads it once a callback (Current) and
/// passes it down: nothing below asks the thread. Default-constructed it permits nothing: a file then obeys flush, unlock and close
/// like that of any honest driver. Valid as long as the CallScope it came from, on its thread.
class CallContext {
 public:
  CallContext() = default;
  /// Of the calling thread's innermost CallScope; permits nothing where there is none.
  static CallContext Current();

  /// A flush need do nothing: it is the one at the end of HDF5's create and open.
  bool is_flush_of_open() const { return has(CallScope::kFlushMayBeSkipped); }
  /// A flush may return before the bytes are stored.
  bool MayFlushEarly(const FileSettings& settings) const {
    return has(CallScope::kFlushMayReturnEarly) || waits_itself_ ||
           (has(CallScope::kFlushAsSet) && settings.flush_deferred);
  }
  /// A close may return while the file drains.
  bool MayDeferClose() const { return has(CallScope::kCloseMayBeDeferred); }
  /// A flush is the first step of a close.
  bool is_close() const { return has(CallScope::kForClose); }
  /// Whoever flushes early has a request to wait for, or waits by itself.
  bool is_awaited() const { return waits_itself_ || request() != nullptr; }
  /// What is written is to be stored when the call returns.
  bool writes_through() const { return has(CallScope::kWriteThrough); }
  /// What storage refuses is kept and tried again, and the write succeeds (RetainFailedWrites).
  bool keeps_refused() const { return keeps_refused_; }
  bool hands_out_descriptor() const { return has(CallScope::kHandOutDescriptor); }
  bool starts_swmr() const { return has(CallScope::kStartSwmr); }
  // Of files that the ranks of an MPI program share, as CallScope::Flag says.
  bool captures_alone() const { return has(CallScope::kCaptureAlone); }
  bool captures_together() const { return has(CallScope::kCaptureTogether); }
  bool reads_alone() const { return has(CallScope::kReadAlone); }
  bool writes_own_chunk() const { return has(CallScope::kOwnChunk); }
  bool writes_other_chunk() const { return has(CallScope::kOtherChunk); }

  /// Where the dataset or chunk begins whose elements are written to `address`; 0: that is not known.
  uint64_t PlaceOf(uint64_t address) const { return places_ == nullptr ? 0 : places_->Of(address); }
  /// The same call, for what it writes beside elements.
  CallContext ForMetadata() const {
    CallContext context = *this;
    context.places_ = nullptr;
    return context;
  }
  /// Memory of ours that the elements lie in which the call writes; nullptr: they lie in the program's.
  HeldBytes* held() const { return held_; }

  /// The call, where a request will wait for what it leaves pending; else nullptr.
  CallScope* request() const { return scope_ != nullptr && scope_->tracks() ? scope_ : nullptr; }
  /// The call; nullptr: there is none.
  CallScope* scope() const { return scope_; }
  /// The settings for files that the call opens; nullptr: the process's.
  const FileSettings* file_settings() const {
    return scope_ == nullptr ? nullptr : scope_->file_settings();
  }

 private:
  bool has(CallScope::Flag flag) const { return scope_ != nullptr && scope_->has(flag); }

  CallScope* scope_ = nullptr;
  const ElementPlaces* places_ = nullptr;
  HeldBytes* held_ = nullptr;
  bool waits_itself_ = false;
  bool keeps_refused_ = false;
};

/// Between Begin and End, which nest, flushes that this thread calls need not wait: it will wait itself.
class ExplicitWaitScope {
 public:
  static void Begin();
  static void End();
};

/// While one lives, what this thread writes and storage refuses is kept like what was captured: the call succeeds, and the
/// next flush, close or change of the file tries again and tells. For calls of HDF5's that leave a file's books wrong when
/// a write fails half-way.
class RetainFailedWrites {
 public:
  RetainFailedWrites();
  ~RetainFailedWrites();
  RetainFailedWrites(const RetainFailedWrites&) = delete;
  RetainFailedWrites& operator=(const RetainFailedWrites&) = delete;
};

}  // namespace tidelane
