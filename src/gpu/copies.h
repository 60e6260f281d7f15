/// \file
/// Copies between a device's memory and host memory, on a stream of our own in the memory's context.
///
/// They come after what the program has put into a stream of its (CUDA's legacy stream, unless it names another one), and are made
/// in pieces, each of which can be waited for: who stores or filters the first ones does so while the next ones are copied. Few bytes
/// go through the program's stream itself: a stream of our own that follows it takes longer than they do, and nothing else of the
/// program's is held up by so short a copy.
///
/// Copies that go on after the call (When::kLater) always have a stream of their own, so that they wait for nothing that the program
/// puts into its stream after the call. Their context may have ended when somebody comes back to them, or the process may be a
/// fork's child: they then fail, and the driver is asked about nothing that has gone with the context.
///
/// Invariant: when a Copies has gone no copy of its is on its way.
/// Cost: a mutex, some microseconds of the driver's, two events and one more a piece.
/// Thread safety: one thread uses a Copies; several may have one each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gpu/boxes.h"
#include "gpu/runtime.h"

namespace tidelane::gpu {

/// Whether all copies are waited for inside the call that makes the Copies.
enum class When : bool { kInCall, kLater };

class Copies {
 public:
  /// Of `bytes` in all. `after`: the program's stream that they come after; nullptr: the legacy one.
  Copies(const Memory& memory, Stream after, uint64_t bytes, When when = When::kInCall);
  ~Copies();
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;

  /// Begins to copy boxes of device memory, as they lie behind `device`, into `host`, one behind the other; pinned memory may be
  /// pinned in parts that begin at multiples of `aligned` bytes of its addresses. 0, or the driver's error.
  int Down(std::byte* host, const void* device, std::span<const PlacedBox> boxes, uint64_t aligned);
  /// Likewise the other way.
  int Up(void* device, const std::byte* host, std::span<const PlacedBox> boxes, uint64_t aligned);
  /// Where the piece ends that has the byte at `at`.
  uint64_t EndOfPiece(uint64_t at) const;
  /// Waits until the first `bytes` have been copied. 0, or the driver's error, for good.
  int Await(uint64_t bytes);
  int AwaitAll() { return Await(UINT64_MAX); }
  /// Whether all that was begun has been copied, or has failed (error), as it is now.
  bool Poll();
  /// How long the device has copied, as far as has been waited for and since this was asked last; 0 of few bytes.
  uint64_t TakeDeviceNs();

  int error() const { return error_; }
  /// All that was begun has been waited for.
  bool done() const { return error_ == 0 && awaited_ == pieces_.size() && marked_ == begun_; }
  std::string Describe() const;

 private:
  struct Piece {
    uint64_t end;  // of all bytes that were begun until then
    Event event;
  };

  template <typename Each>
  int InPieces(std::span<const PlacedBox> boxes, const std::byte* host, uint64_t aligned,
               Each each);
  int Mark();
  int MarkBegin();
  void MakeOwnStream(Stream after);
  void End();
  bool HasContext() const;
  int CheckContext() { return HasContext() ? 0 : Fail(kNoContext); }
  int Fail(int error) { return error_ = error_ != 0 ? error_ : error; }

  static constexpr int kNoContext = -1;  // no driver's error

  const Memory memory_;
  uint64_t context_ = 0;  // its number; 0: nobody knows it
  const uint64_t piece_;
  const When when_;
  const bool own_;  // the stream is
  int error_ = 0;
  Stream stream_ = nullptr;
  Event start_ = nullptr;  // of what is timed
  std::vector<Piece> pieces_;
  size_t awaited_ = 0;  // pieces
  size_t timed_ = 0;
  uint64_t begun_ = 0;  // bytes
  uint64_t marked_ = 0;
};

}  // namespace tidelane::gpu
