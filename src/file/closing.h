/// \file
/// How one file ends: at once, or it drains by itself after the program's close, is opened again before that is over, or waited for.
///
/// Invariant: of a file that drains by itself the device is closed once, by who took it on (CloseState), and only when nothing is pending.
/// Thread safety: all functions may be called from any thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "base/activity.h"
#include "base/status.h"
#include "content/read_path.h"
#include "file/drainer.h"
#include "file/file_epochs.h"

namespace tidelane {

class Closing {
 public:
  Closing(FileContext& file, Drainer& drainer, FileEpochs& epochs, ReadPath& reads)
      : file_(file), drainer_(drainer), epochs_(epochs), reads_(reads) {}

  /// Whether the call's close may return before everything is stored.
  bool MayBegin(const CallContext& call) const {
    return file_.traits.may_defer_close && call.MayDeferClose();
  }
  /// The file was closed; it drains on its own and then calls `finished` once, unless Adopt comes first.
  void Begin(CloseState::Finished finished, const CallContext& call = {});
  /// The file was opened again while draining. False when it has just finished.
  bool Adopt();
  /// Drains, then waits until the device is closed as well.
  Status WaitClosed(Wait why);
  /// The same, but what failed is not tried again, and its failure not told. False: it failed, or the file was not closed.
  bool AwaitClosed(Wait why);
  /// Waits until everything is stored, and the device of a closed file closed; but no longer than until `deadline`. `stored`: it
  /// came to that.
  Status WaitStored(std::chrono::steady_clock::time_point deadline, bool& stored);
  /// Somebody has taken it on to close the device.
  bool being_closed() const;
  /// Readers are to follow it: it is published before it is closed.
  Status PublishNow() { return file_.store->Publish(Publishing::kNow); }
  /// HDF5 could not flush it when the program closed it, or could this time: what the end of the program closes after a refusal is not
  /// published.
  void SetRefused(bool refused);
  /// It is not published.
  void Withhold(Withholding why) { file_.store->Withhold(why); }
  /// Closes the device after checking that nobody cut the file short meanwhile. Nothing may be pending.
  Status CloseDevice();

 private:
  FileContext& file_;
  Drainer& drainer_;
  FileEpochs& epochs_;
  ReadPath& reads_;
};

}  // namespace tidelane
