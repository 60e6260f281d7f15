/// \file
/// Reading ahead in one file: what the program has read tells what it will read, and lanes fetch it.
///
/// The program's thread pays some comparisons after each large read; memory is taken, and storage
/// asked, by lanes. Nothing is fetched where storage is as quick as memory, unless the settings ask for it.
///
/// Invariant: after Stop nobody calls `fetch` any more.
/// Thread safety: `Note` belongs to the program's side of the file, `Stop` to whoever closes it; RunOne to lanes.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "cache/access_predictor.h"
#include "cache/prefetch_buffer.h"
#include "lane/lanes.h"

namespace tidelane {

/// Whether storage is slower than memory, from how long the last reads took.
class ReadSpeed {
 public:
  void Note(uint64_t size, uint64_t ns) {
    const bool slow = ns > kRequestNs + size / kBytesPerNs;
    const int score = score_.load(std::memory_order_relaxed);
    score_.store(slow ? (score < kMost ? score + 1 : kMost) : (score > -kMost ? score - 1 : -kMost),
                 std::memory_order_relaxed);
  }
  bool slow() const { return score_.load(std::memory_order_relaxed) > 0; }

 private:
  static constexpr uint64_t kRequestNs = 20'000;
  static constexpr uint64_t kBytesPerNs = 2;
  static constexpr int kMost = 4;
  std::atomic<int> score_{0};
};

/// Fetches the wanted pieces of one file, one slab of memory at a time.
class AheadFetcher final : public LaneTask, public std::enable_shared_from_this<AheadFetcher> {
 public:
  /// Reads bytes of the file; false: it could not.
  using Fetch = std::function<bool(uint64_t address, uint64_t size, std::byte* to)>;

  AheadFetcher(Lanes& lanes, std::shared_ptr<PrefetchBudget> room,
               std::shared_ptr<PrefetchBuffer> pieces, Fetch fetch)
      : lanes_(lanes),
        room_(std::move(room)),
        pieces_(std::move(pieces)),
        fetch_(std::move(fetch)) {}

  /// Something is wanted.
  void Start();
  void RunOne() override;

 private:
  Lanes& lanes_;
  const std::shared_ptr<PrefetchBudget> room_;
  const std::shared_ptr<PrefetchBuffer> pieces_;
  const Fetch fetch_;
  std::atomic<bool> scheduled_{false};
};

class ReadAhead {
 public:
  ReadAhead(Lanes& lanes, std::shared_ptr<PrefetchBudget> room,
            std::shared_ptr<PrefetchBuffer> pieces, AheadFetcher::Fetch fetch);

  /// The program has read these bytes of dataset elements, of a file that now ends at `eof`.
  void Note(uint64_t address, uint64_t size, uint64_t eof);
  /// Forgets all bytes and waits for lanes that are fetching some.
  void Stop();

  PrefetchBuffer& pieces() { return *pieces_; }
  /// It belongs to this process, and not to the one that this one was forked from.
  bool ours() const;

 private:
  const std::shared_ptr<PrefetchBudget> room_;
  const std::shared_ptr<PrefetchBuffer> pieces_;
  const std::shared_ptr<AheadFetcher> fetcher_;
  const pid_t process_;
  AccessPredictor predictor_;
  std::vector<ByteRange> next_;
  uint64_t planned_ = 0;  // bytes, by the last plan
  uint64_t since_ = 0;    // bytes read since
};

}  // namespace tidelane
