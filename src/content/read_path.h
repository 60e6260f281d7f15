/// \file
/// How one file is read: small reads through blocks, large ones from what lanes fetched ahead or by several of them together, everything
/// else as it comes.
///
/// Invariant: what Read gives is what the source gives at that moment; nothing is kept where the source says that it may
/// not be.
/// Thread safety: Read, Share and what changes bytes (Written, CutFrom, Forget …) belong to the program's side;
/// ReadAlongside, and DropFetched, may be called from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/config.h"
#include "base/trace.h"
#include "content/blocks.h"
#include "content/byte_source.h"
#include "content/deferred_reads.h"
#include "content/file_watch.h"
#include "content/node_blocks.h"
#include "content/noted_places.h"
#include "content/parallel_read_source.h"
#include "content/prefetch.h"
#include "content/read_ahead.h"
#include "content/read_costs.h"
#include "lane/lanes.h"

namespace tidelane {

class ExtentRead;

class ReadPath final : public ParallelReadSource {
 public:
  /// Smaller reads tell nothing of what comes next: looking at them would take as long as they do.
  static constexpr uint64_t kLarge = uint64_t{16} * 1024;
  /// Below this one request is as good as two.
  static constexpr uint64_t kLeastShared = 2u << 20;

  struct Surroundings {
    const Config& config;
    Lanes& lanes;
    ReadCosts costs;
    std::shared_ptr<PrefetchBudget> prefetch_budget;
    bool watched = false;  ///< the source says whether others have changed it
  };
  /// `source` and what Surroundings refers to outlive it.
  ReadPath(ByteSource& source, Surroundings surroundings);

  /// `raw`: dataset elements rather than metadata.
  Status Read(uint64_t address, uint64_t size, void* buffer, bool raw);
  /// Copies it, if it is all in blocks.
  bool Find(uint64_t address, uint64_t size, void* buffer) {
    ForgetIfChanged();
    return blocks_.Find(address, size, buffer);
  }
  /// For a read of `bytes` dataset elements in large pieces, all of which are added to it and then read by Finish, the
  /// program's thread and lanes together; nullptr: storage is as quick as memory, or it is too little, so that Read is as
  /// good. `self`: this, with whom it lives in.
  std::shared_ptr<ExtentRead> Share(const std::shared_ptr<ReadPath>& self, uint64_t bytes,
                                    uint64_t pieces);

  Status ReadAlongside(Reader reader, uint64_t address, uint64_t size, void* buffer) override;
  uint64_t size() const override { return source_.size(); }
  const std::string& path() const override { return source_.path(); }
  DeferredReads& deferred_reads() override { return deferred_reads_; }
  void NoteRead(uint64_t address, uint64_t size) override;
  void BeginShared() override { around_.costs.Begin(NowNs()); }
  void EndShared(uint64_t bytes) override {
    around_.costs.End({.end_ns = NowNs(), .bytes = bytes});
  }
  void TellDeferred(uint64_t bytes) override;
  void TellWaited(uint64_t ns) override { around_.costs.Waited(ns); }

  /// Before the first read: what is read of metadata is shared with other processes that only read this file.
  void ShareBlocks(std::unique_ptr<NodeBlocks> node) { blocks_.Share(std::move(node)); }

  /// These bytes are written, before anybody is told of it.
  void Written(uint64_t address, uint64_t size, const void* bytes) {
    blocks_.Written(address, size, bytes);
    prefetch_.Drop(address, address + size);
  }
  /// What blocks hold may not be what the file has: a write failed of which Written was told, or others may write.
  void ForgetBlocks() { blocks_.Clear(); }
  void CutFrom(uint64_t size) {
    blocks_.CutFrom(size);
    prefetch_.Drop(size, UINT64_MAX);
  }
  /// What was read is forgotten: somebody may change the file past us.
  void Forget() {
    prefetch_.Drop(0, UINT64_MAX);
    blocks_.Clear();
  }
  /// The same, if storage says that the file was changed. Of a file without a lock this is asked before each call's reads: the program
  /// may have heard of a change a moment ago.
  void ForgetIfChangedNow() {
    if (around_.watched && watch_.Changed(source_, FileWatch::Look::kNow)) Forget();
  }
  /// What was fetched is given back.
  void DropFetched() { prefetch_.Drop(0, UINT64_MAX); }
  Prefetch& prefetch() { return prefetch_; }
  /// As Prefetch::TakeOver.
  void TakeOverAhead(std::shared_ptr<PrefetchBuffer> pieces, const FileVersion& version) {
    prefetch_.TakeOver(std::move(pieces), version, Fetcher());
  }

  /// The file is locked, or will not be: what was taken over is its if it is still the same.
  void CheckTakenOver() { prefetch_.CheckTakenOver(source_); }

  /// From now on the places that are read are noted, for as long as they are few.
  void RecordRanges() { places_.Start(may_fetch_); }
  /// What was noted; nothing where storage is too quick for it to matter.
  std::vector<ByteRange> TakeRecordedRanges();
  /// Storage has lately taken longer for a read than memory does.
  bool slow() const { return speed_.slow(); }
  /// The file is only read, and nobody was seen to change it. The program's side.
  bool unchanged() const { return around_.watched && watch_.unchanged(); }

 private:
  AheadFetcher::Fetch Fetcher();
  void ForgetIfChanged() {
    if (around_.watched && watch_.Changed(source_)) Forget();
  }
  bool FetchedAhead(uint64_t address, uint64_t size, bool raw) const;
  Status ReadFetched(Reader reader, uint64_t address, uint64_t size, void* buffer,
                     ReadTimes& times);
  Status ReadAfterFetching(uint64_t address, uint64_t size, void* buffer, bool large,
                           ReadTimes& times);
  Status ReadPlainly(uint64_t address, uint64_t size, void* buffer, bool large, ReadTimes& times);
  bool ReadBlock(uint64_t address, uint64_t size, void* buffer, bool raw);
  void NoteSpeed(uint64_t size, uint64_t ns);
  // To the model, of large reads.
  void TellAnswered(Reader reader, const ReadTimes& times);
  void TellRead(uint64_t begin_ns, uint64_t size, const ReadTimes& times);
  void TellFetched(uint64_t begin_ns, uint64_t size, const ReadTimes& times);
  void TellSmall(const ReadTimes& times) {
    if (times.bytes != 0) around_.costs.Small(times.begin_ns, times.end_ns);
  }

  ByteSource& source_;
  const Surroundings around_;
  Prefetch prefetch_;
  const bool may_fetch_;
  DeferredReads deferred_reads_;
  ReadSpeed speed_;
  NotedPlaces places_;
  Blocks blocks_;
  FileWatch watch_;
};

}  // namespace tidelane
