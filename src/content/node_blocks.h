/// \file
/// Blocks of a file that all ranks of a communicator only read: those of one machine read each block once (ranks/shared_blocks.h).
///
/// The file is not locked. What is shared was read of a version of it that nobody can have changed without another time: it was not changed
/// within the last tick of the file system's clock (content/file_watch.h). Who takes it asks for the version again.
///
/// The memory is made when the first block is to be read: on storage that is as quick as memory there is none.
///
/// Invariant: what is read here is what storage had at a moment after the call began.
/// Thread safety: all functions may be called from any thread, with no lock held.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/annotations.h"
#include "content/byte_source.h"
#include "device/identity.h"
#include "ranks/shared_blocks.h"

namespace tidelane {

class NodeBlocks {
 public:
  NodeBlocks(const FileIdentity& file, const SharedBlocks::Job& job) : file_(file), job_(job) {}

  /// Copies it, if it lies in one block, which another rank has read.
  bool Read(const ByteSource& source, uint64_t address, uint64_t size, void* buffer) const;
  /// Of the block that begins at `start`: as SharedBlocks::Take.
  SharedBlocks::Turn Take(const ByteSource& source, uint64_t start) TL_EXCLUDES(mutex_);
  void Put(const std::byte* bytes, uint64_t size) { shared_.load()->Put(bytes, size); }
  void GiveUp() { shared_.load()->GiveUp(); }

 private:
  SharedBlocks* Join() TL_EXCLUDES(mutex_);
  void CountOnce();

  const FileIdentity file_;
  const SharedBlocks::Job job_;
  std::atomic<SharedBlocks*> shared_{nullptr};
  std::atomic<bool> counted_{false};
  Mutex mutex_;
  bool tried_ TL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<SharedBlocks> owned_ TL_GUARDED_BY(mutex_);
};

/// One block's turn, from before it is read to when it is shared.
class NodeTurn {
 public:
  /// `node`: nullptr where nothing is shared.
  NodeTurn(NodeBlocks* node, const ByteSource& source, uint64_t start)
      : node_(node),
        turn_(node == nullptr ? SharedBlocks::Turn::kAlone : node->Take(source, start)) {}
  ~NodeTurn() {
    if (turn_ == SharedBlocks::Turn::kMine) node_->GiveUp();
  }
  NodeTurn(const NodeTurn&) = delete;
  NodeTurn& operator=(const NodeTurn&) = delete;

  bool here() const { return turn_ == SharedBlocks::Turn::kHere; }
  void Put(const std::byte* bytes, uint64_t size) {
    if (std::exchange(turn_, SharedBlocks::Turn::kAlone) == SharedBlocks::Turn::kMine)
      node_->Put(bytes, size);
  }

 private:
  NodeBlocks* const node_;
  SharedBlocks::Turn turn_;
};

}  // namespace tidelane
