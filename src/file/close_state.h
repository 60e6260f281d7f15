/// \file
/// How far the close of a file is whose program need not wait for it (file/closing.h).
///
/// Invariant: from Begin until the device is closed, or the file is opened again, it has *begun*; until somebody takes it on to close the
/// device it is *unfinished*.
/// Thread safety: none; guarded by the file's mutex.
#pragma once

#include <functional>
#include <memory>
#include <utility>

namespace tidelane {

class File;

class CloseState {
 public:
  using Finished = std::function<void(const std::shared_ptr<File>&)>;

  /// The program has closed the file. `finished` is to be called when it is drained.
  void Begin(Finished finished) {
    begun_ = true;
    finished_ = std::move(finished);
  }
  /// Who takes it closes the device, or gives it back.
  Finished Take() { return std::exchange(finished_, nullptr); }
  void GiveBack(Finished finished) {
    if (begun_) finished_ = std::move(finished);
  }
  /// The program has opened the file again.
  void Cancel() {
    begun_ = false;
    finished_ = nullptr;
  }
  /// The device is closed.
  void End() { begun_ = false; }
  /// A close waits. False: it has waited before; a close waits in steps (its flush, the last superblock), and counts once.
  bool BeginWait() { return !std::exchange(waited_, true); }

  /// HDF5 could not flush it when the program closed it, or could this time.
  void SetRefused(bool refused) { refused_ = refused; }

  /// The program's last close has failed.
  bool refused() const { return refused_; }
  bool begun() const { return begun_; }
  bool unfinished() const { return finished_ != nullptr; }

 private:
  bool begun_ = false;
  bool waited_ = false;
  bool refused_ = false;
  Finished finished_;
};

}  // namespace tidelane
