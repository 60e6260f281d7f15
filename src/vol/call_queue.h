/// \file
/// Work that only a thread inside HDF5 can do: prepared by lanes, done inside one of the program's next calls.
///
/// Lanes never call HDF5. So what they have prepared for it waits here, and the program's threads do it when they come by: a call that
/// could see the result, or depend on it, does all of it first (it *settles*); others do what happens to be ready. Which is which, the
/// table of callbacks says (vol/table.h). Filtered chunks are such work (vol/chunk_capture.h).
///
/// Whether a dataset's elements depend on some work is for its kind to say: of chunks, ChunkCapture::InsertBefore (before transfers) and
/// OnlyAppends (before an extent grows) do. Work of a kind that says nothing there is done by flushes, closes and all other calls that settle.
///
/// Queries that are answered after their calls (vol/late_query.h) are no such work: what they read is guarded below, so that transfers need not wait for
/// them. All other calls that settle have them answered first.
///
/// Invariants:
///  1. Work is done in the order in which it was added, whatever file it is for.
///  2. What fails stays, with what is behind it of the same file, and is tried again by each call that settles that file, which
///     fails if it fails again; the first of them fails even if it does not. When the library closes, what is left is told on stderr.
///  3. There is work only for files that the program itself has open, or whose close is the last of it (vol/late_close.h): what else closes such a
///     file is a call that settles.
///
/// Cost: one relaxed load a call as long as there is none.
/// Thread safety: used inside callbacks, under HDF5's lock; a fork asks AnyCallWork without.
#pragma once

#include <pthread.h>

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "file/file.h"
#include "vol/late_errors.h"
#include "vol/late_query.h"
#include "vol/library_state.h"

namespace tidelane::vol {

/// A piece of it.
class CallWork {
 public:
  enum class Attempt : uint8_t {
    kFirst,
    kBehindFailed,  ///< older work of the file has failed: it is not done, and fails
    kAgain,
  };

  explicit CallWork(std::shared_ptr<File> for_file) : file(std::move(for_file)) {}
  virtual ~CallWork() = default;

  const std::shared_ptr<File> file;

  /// Whether it closes the file.
  virtual bool closes() const { return false; }
  /// Whether lanes have prepared it, or nobody wants it any more.
  virtual bool ready() const = 0;
  virtual bool unwanted() const = 0;
  /// Prepares it here, if nobody has begun to.
  virtual void Help() = 0;
  /// Until it is ready; somebody has begun to prepare it.
  virtual void Await() = 0;
  /// Bytes that it is about.
  virtual uint64_t bytes() const = 0;
  /// Inside HDF5, with the default transfer list. False: it failed, and HDF5 may say on the error stack why.
  virtual bool Do(Attempt attempt) = 0;
  /// It is done, or unwanted, or lost: nobody asks for it any more.
  virtual void Gone() = 0;
  /// For messages, of an attempt that failed: cannot `what`.
  virtual const char* what(Attempt attempt) const = 0;
};

class CallQueue {
 public:
  explicit CallQueue(LibraryState& library) : library_(library) {}
  static CallQueue& Of(LibraryState& library);

  /// Last. May throw std::bad_alloc: then it was not added.
  void Add(std::unique_ptr<CallWork> work);
  bool empty() const { return queue_.empty(); }
  /// Whether work for this file has failed, or for any.
  bool Fails(const File& file) const;
  bool troubled() const { return !failed_.empty() || !late_errors_.empty(); }
  /// Whether there is any for it.
  bool Has(const File& file) const;
  /// The thread that added the last, or has left something else.
  pthread_t writer() const { return writer_; }
  void NoteWriter();

  /// What is ready. `dxpl` is the transfer list of the call in progress.
  void DoReady(hid_t dxpl);
  /// All of it. False, with the failure on the error stack, if something for the file that `object` is in (of HDF5's kind `type`)
  /// failed; never for a null object.
  bool DoAll(void* object, H5I_type_t type, hid_t dxpl);
  /// In a call whose list is the default one: what is ready; the oldest, whoever has to prepare it.
  void DoReadyHere();
  void DoOldest();
  /// From outside the library's calls: until `enough()`, or there is no work, or for so long; prepares work if it may take for ever (UINT64_MAX). False:
  /// HDF5 could not be entered, so nothing has been done.
  bool DoUntil(const std::function<bool()>& enough, uint64_t timeout_ns);
  /// From within a call whose list is the default one: all that there is for a file, and what failed of it once more; or for each file that is to be closed.
  void FinishAllOf(const File& file);
  void FinishCloses();
  /// The library closes. Call from within a call of HDF5.
  void End();

  /// The next call that settles `file` fails: cannot `what`.
  void NoteLate(const std::shared_ptr<File>& file, const char* what);

 private:
  bool IsReady() const;
  void DoAllHere();
  void FinishOldest();
  bool Retry(const File& file, const char*& what);
  void Drop(CallWork& work);
  template <typename Work>
  bool DoAside(hid_t dxpl, Work work);
  void NotePending();

  LibraryState& library_;
  std::deque<std::unique_ptr<CallWork>> queue_;
  std::vector<std::unique_ptr<CallWork>> failed_;
  LateErrors late_errors_;
  pthread_t writer_{};
};

/// Whether there is any, or a query that has not been answered.
inline bool AnyCallWork(const LibraryState& library) {
  return library.call_work.load(std::memory_order_relaxed) != 0;
}
/// As CallQueue::DoAll; queries are answered first.
inline bool DoCallWork(LibraryState& library, void* object, H5I_type_t type, hid_t dxpl) {
  if (!AnyCallWork(library)) return true;
  AnswerQueries(library, dxpl);
  return CallQueue::Of(library).DoAll(object, type, dxpl);
}
/// All files of this library whose closes have returned, before something that must find them closed.
void FinishCloses(LibraryState& library);
/// For a call that has nothing to do with any of it: what is ready is done while we are here.
inline void DoReadyCallWork(LibraryState& library, hid_t dxpl) {
  if (!AnyCallWork(library)) return;
  AnswerReadyQueries(library, dxpl);
  CallQueue::Of(library).DoReady(dxpl);
}

}  // namespace tidelane::vol
