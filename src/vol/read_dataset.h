/// \file
/// What is known of the datasets that are read, so that HDF5 is asked once.
///
/// Invariant: nothing is known of a dataset after its close.
/// Thread safety: used inside callbacks, under HDF5's lock.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "engine/chunk_read.h"
#include "vol/chunked_dataset.h"
#include "vol/instance.h"

namespace tidelane::vol {

/// What H5Dread was asked for, of one dataset.
struct Reading {
  void* dataset;
  hid_t memory_type;
  hid_t memory_space;
  hid_t file_space;
  hid_t dxpl;
  void* buffer;
};

struct ReadDataset : ChunkedDataset {
  uint64_t number = 0;  ///< no other entry ever had it
  std::weak_ptr<File> file;
  bool direct =
      false;  ///< elements lie in a file of ours as they do in memory, or filtered chunks of them
  bool chunks = false;                  ///< and they can be read chunk by chunk, without HDF5
  uint64_t cache_bytes = 0;             ///< what HDF5's chunk cache holds
  uint64_t version = UINT64_MAX;        ///< of the extent
  std::shared_ptr<const ChunkMap> map;  ///< as of `version`; nullptr: not made
  uint64_t touched = 0;                 ///< chunks that were wanted while there was none
};

class ReadDatasets {
 public:
  static ReadDatasets& Of(Instance& instance);

  ReadDataset* Find(void* dataset) {
    const auto found = known_.find(dataset);
    return found == known_.end() ? nullptr : &found->second;
  }
  /// Found, or looked at now.
  ReadDataset& Know(Instance& instance, const Reading& reading);
  /// For a map of `chunks`: if it were too much with the others, those go. They are made again when they are wanted.
  void MakeRoom(uint64_t chunks);
  void Forget(void* dataset) { known_.erase(dataset); }
  void ForgetAll() { known_.clear(); }

 private:
  std::unordered_map<void*, ReadDataset> known_;
  uint64_t numbers_ = 0;
};

/// A close that gives no request is a wait: HDF5's own tests look at what they read right after it.
inline void EndReadsOf(Instance& instance, void* dataset) {
  if (instance.read_datasets == nullptr) return;
  const ReadDataset* const known = instance.read_datasets->Find(dataset);
  if (known == nullptr) return;
  if (const auto file = known->file.lock(); file != nullptr) file->deferred_reads().AwaitAll();
}
/// `dataset` is closed; another one may come to live at its address.
inline void ForgetRead(Instance& instance, void* dataset) {
  if (instance.read_datasets != nullptr) instance.read_datasets->Forget(dataset);
}
inline void ForgetAllRead(Instance& instance) {
  if (instance.read_datasets != nullptr) instance.read_datasets->ForgetAll();
}

}  // namespace tidelane::vol
