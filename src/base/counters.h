/// \file
/// What happened, counted: process-wide totals and the reasons for every fallback to synchronous
/// I/O. The two tables below are also what the summary's keys, texts and schema are made of.
///
/// Invariant: counters only grow (peaks included) from process start, or from the fork that made
/// this process; they are the evidence in tests and summaries.
///
/// Thread safety: all functions may be called from any thread; relaxed atomics.
#pragma once

#include <atomic>
#include <cstdint>

namespace tidelane {

// X(name, key, text): the enumerator is k##name, the JSON key snake_case, the text the schema's.
#define TL_COUNTERS(X)                                                                            \
  X(BytesDeferred, "bytes_deferred",                                                              \
    "bytes copied by write calls that returned before the bytes were stored")                     \
  X(BytesLent, "bytes_lent",                                                                      \
    "of these, bytes stored from the program's own buffer, without a copy")                       \
  X(BytesHeld, "bytes_held",                                                                      \
    "likewise, bytes stored from where they lay in memory of ours: filtered chunks, staged "      \
    "elements of GPUs")                                                                           \
  X(WritesDeferred, "writes_deferred", "driver-level writes so captured")                         \
  X(BytesSync, "bytes_sync", "bytes written through, on the caller's thread")                     \
  X(WritesSync, "writes_sync", "write requests so made")                                          \
  X(BytesWritten, "bytes_written", "bytes that lanes put on storage, gap bytes included")         \
  X(RequestsWritten, "requests_written", "write requests that lanes made")                        \
  X(GapFillReads, "gap_fill_reads", "reads made to fill gaps between writes")                     \
  X(GapFillBytes, "gap_fill_bytes", "bytes in such gaps, read and written back")                  \
  X(StorageReads, "storage_reads", "read requests made to storage on behalf of the program")      \
  X(StorageReadBytes, "storage_read_bytes", "bytes so read")                                      \
  X(ChunksFilteredByLanes, "chunks_filtered_by_lanes",                                            \
    "chunks that lanes took through their dataset's filters")                                     \
  X(ChunksFilteredByCaller, "chunks_filtered_by_caller",                                          \
    "chunks that a thread of the program took through them, because it needed them")              \
  X(FilterBytesIn, "filter_bytes_in", "bytes that went into filters so")                          \
  X(FilterBytesOut, "filter_bytes_out", "bytes that came out of them")                            \
  X(ReadBytesByLanes, "read_bytes_by_lanes", "of these, bytes that lanes read")                   \
  X(ReadsDeferred, "reads_deferred",                                                              \
    "asynchronous reads that returned before their elements were there")                          \
  X(ReadBytesDeferred, "read_bytes_deferred", "bytes that they read")                             \
  X(ReadAheadHits, "readahead_hits", "small reads answered from a block that was read before")    \
  X(NodeHits, "node_hits",                                                                        \
    "small reads answered from memory in which ranks of this machine share what they read")       \
  X(AheadHits, "ahead_hits", "reads answered from what lanes fetched before they were made")      \
  X(AheadMisses, "ahead_misses",                                                                  \
    "large reads of such files that storage was asked for all the same")                          \
  X(AheadBytes, "ahead_bytes", "bytes that lanes fetched before they were asked for")             \
  X(AheadBytesWasted, "ahead_bytes_wasted", "of these, bytes that nobody asked for")              \
  X(ChunksByCallers, "chunks_by_callers",                                                         \
    "chunks that reading threads of the program read and decoded themselves")                     \
  X(ChunksByLanes, "chunks_by_lanes", "chunks that lanes read and decoded for them")              \
  X(ChunkBytesRead, "chunk_bytes_read", "bytes of both, decoded")                                 \
  X(BytesMoved, "bytes_moved",                                                                    \
    "bytes moved together because what had been replaced kept their memory from being used")      \
  X(GpuBytesDown, "gpu_bytes_down", "bytes copied from the memory of GPUs for writes")            \
  X(GpuBytesUp, "gpu_bytes_up", "bytes copied to the memory of GPUs for reads")                   \
  X(GpuCopyNs, "gpu_copy_ns", "time that calls waited for such copies")                           \
  X(LaneBusyNs, "lane_busy_ns", "time lanes spent on storage, summed over lanes")                 \
  X(CopyNs, "copy_ns", "time callers spent on capturing large writes, waits left out")            \
  X(WaitFlushNs, "wait_flush_ns", "time that flushes waited for bytes to be stored")              \
  X(WaitCloseNs, "wait_close_ns", "time that closes waited for bytes to be stored")               \
  X(WaitRequestNs, "wait_request_ns", "time that event sets waited for requests")                 \
  X(WaitArenaNs, "wait_arena_ns", "time that writes waited for room in the arena")                \
  X(WaitFilterNs, "wait_filter_ns", "time that calls waited for chunks to be filtered")           \
  X(WaitReadNs, "wait_read_ns", "time that reads took that went to storage")                      \
  X(WaitOpenNs, "wait_open_ns", "time that opens and deletes waited for a file still draining")   \
  X(WaitWriteNs, "wait_write_ns", "time that synchronous writes took")                            \
  X(WaitExitNs, "wait_exit_ns", "time that the end of HDF5 waited for bytes to be stored")        \
  X(WaitForkNs, "wait_fork_ns", "time that forks waited for bytes to be stored")                  \
  X(WaitRanksNs, "wait_ranks_ns",                                                                 \
    "time that collective calls of MPI programs waited for bytes and for other ranks")            \
  X(WaitOtherNs, "wait_other_ns", "time waited elsewhere: truncation, turning synchronous")       \
  X(WaitsFlush, "waits_flush", "flushes that really waited")                                      \
  X(WaitsClose, "waits_close", "files whose close really waited")                                 \
  X(WaitsRequest, "waits_request", "waits for requests that were not done")                       \
  X(WaitsArena, "waits_arena", "times a write found no room in the arena")                        \
  X(WaitsFilter, "waits_filter", "chunks that a call really waited for")                          \
  X(WaitsRead, "waits_read", "reads that went to storage")                                        \
  X(WaitsOpen, "waits_open", "opens and deletes that really waited")                              \
  X(WaitsWrite, "waits_write", "synchronous writes")                                              \
  X(WaitsExit, "waits_exit", "files that the end of HDF5 waited for")                             \
  X(WaitsFork, "waits_fork", "files that forks waited for")                                       \
  X(WaitsRanks, "waits_ranks", "collective calls that really waited")                             \
  X(WaitsOther, "waits_other", "waits elsewhere")                                                 \
  X(ArenaPeakBytes, "arena_peak_bytes", "most bytes of the arena in use at one moment")           \
  X(ArenaCapBytes, "arena_cap_bytes", "most bytes that the arena may use")                        \
  X(FilesOpened, "files_opened", "files opened by our driver")                                    \
  X(FilesAdopted, "files_adopted", "opens that took over a file still draining")                  \
  X(FilesPublished, "files_published", "files that got their name when they were whole")          \
  X(FilesRecovered, "files_recovered", "files that an end of a program had left, recovered")      \
  X(Commits, "commits", "commits of journalled files, closes included")                           \
  X(Checkpoints, "checkpoints", "times that what a log had committed was moved into its file")    \
  X(BytesLogged, "bytes_logged", "bytes written to logs")                                         \
  X(BytesInHugePages, "bytes_in_huge_pages", "bytes of them copied into huge pages")              \
  X(ClosesDeferred, "closes_deferred", "closes that returned before the bytes were stored")       \
  X(ClosesLate, "closes_late", "closes that returned while chunks were compressed")               \
  X(ClosesInTier, "closes_in_tier", "closes that returned when the tier had the file")            \
  X(LogsContinued, "logs_continued",                                                              \
    "files opened again for writing whose log in the tier went on where it was")                  \
  X(BytesPastTier, "bytes_past_tier", "bytes for which the tier had no room")                     \
  X(RankExchanges, "rank_exchanges", "reductions and barriers among the ranks of MPI programs")   \
  X(CollectivesDeferred, "collectives_deferred", "collective writes that each rank stored alone") \
  X(CollectiveReadsAlone, "collective_reads_alone", "collective reads that each rank made alone") \
  X(ChunksDeflated, "chunks_deflated", "chunks that HDF5 had compressed by our deflate")          \
  X(ChunksInflated, "chunks_inflated", "chunks that HDF5 had decompressed by our deflate")        \
  X(Errors, "errors", "failed writes, each attempt")

enum class Counter : unsigned {
#define X(name, key, text) k##name,
  TL_COUNTERS(X)
#undef X
      kCount
};

// Why something ran natively (synchronously). X(name, key, unit, text): the unit is what is counted
// (empty: the process), the text completes "2 files: …".
#define TL_FALLBACKS(X)                                                                            \
  X(Driver, "driver", "file", "another driver than sec2, HDF5's default")                          \
  X(SwmrWrite, "swmr_write", "file", "single-writer-multiple-reader needs strict order")           \
  X(HandleOut, "handle_handed_out", "file",                                                        \
    "the program asked for the file descriptor, or where a dataset is")                            \
  X(UnstableInode, "unstable_inode", "file", "the file system does not keep inode numbers")        \
  X(PublishKind, "publish_kind", "file", "written in place: it is no regular file")                \
  X(PublishLinked, "publish_linked", "file", "written in place: it has other names (hard links)")  \
  X(PublishOwner, "publish_owner", "file", "written in place: it is another user's")               \
  X(PublishMount, "publish_mount", "file", "written in place: it is mounted by itself")            \
  X(PublishFolder, "publish_folder", "file",                                                       \
    "written in place: its folder is sticky, or takes no hidden file")                             \
  X(PublishRoom, "publish_room", "file", "written in place: no room for the old and the new one")  \
  X(PublishLocks, "publish_locks", "file", "written in place: the file system has no locks")       \
  X(PublishAttributes, "publish_attributes", "file",                                               \
    "written in place: a new file cannot have its group, access list or attributes")               \
  X(PublishSwmr, "publish_swmr", "file", "written in place: readers are to follow it")             \
  X(PublishMpi, "publish_mpi", "file",                                                             \
    "written in place: only MPI-IO knows what its name or file system means")                      \
  X(TierUnusable, "tier_unusable", "file", "not in the tier: it cannot be used")                   \
  X(TierFull, "tier_full", "file", "not in the tier: it is full")                                  \
  X(TierEnded, "tier_ended", "file",                                                               \
    "not in the tier: its mover would end with the job or session")                                \
  X(TierFile, "tier_file", "file",                                                                 \
    "not in the tier: it has hard links, gets its name later, readers follow it, or is no file")   \
  X(JournalLinks, "journal_links", "file", "not journalled: it has other names (hard links)")      \
  X(JournalFolder, "journal_folder", "file",                                                       \
    "not journalled: its folder takes no log of that name")                                        \
  X(JournalLocks, "journal_locks", "file", "not journalled: the file system has no locks")         \
  X(JournalSwmr, "journal_swmr", "file", "not journalled: readers are to follow it")               \
  X(JournalHandle, "journal_handle", "file",                                                       \
    "not journalled: the program asked for the file descriptor")                                   \
  X(JournalPublish, "journal_publish", "file",                                                     \
    "not journalled: it has no name before it is whole (publish=atomic)")                          \
  X(JournalMpi, "journal_mpi", "file", "not journalled: ranks share it")                           \
  X(JournalAddress, "journal_address", "call",                                                     \
    "committed, and moved into the file: the program asked where chunks lie in it")                \
  X(JournalFlush, "journal_flush", "call",                                                         \
    "flushes that were to return early waited: they commit")                                       \
  X(ModeSync, "mode_sync", "file", "the setting mode=sync")                                        \
  X(ImplicitOff, "implicit_off", "write", "the program wants such calls synchronous")              \
  X(ArenaFull, "arena_full", "write", "no room in the arena, and nothing that could make room")    \
  X(QuickStorage, "quick_storage", "write",                                                        \
    "storage as quick as memory: a second copy is no gain")                                        \
  X(CostModel, "cost_model", "write", "handing writes over was found to take longer than writing") \
  X(Locking, "locking_off", "file", "not locked: no gap filling, no read-ahead")                   \
  X(OneCore, "one_core", "", "the program is bound to one core; lanes leave it if they may")       \
  X(ExternalRaw, "external_raw_file", "dataset", "external raw data files bypass every driver")    \
  X(OtherConnector, "other_connector", "file", "a foreign VOL connector below us")                 \
  X(NoReservation, "no_reservation", "file", "the file system cannot reserve space")               \
  X(ReadFilter, "read_filter", "dataset", "filters or types that only HDF5 can read")              \
  X(ReadIndex, "read_index", "dataset", "chunks of which HDF5 does not say where they are")        \
  X(ReadShape, "read_shape", "read", "selections of chunks that only HDF5 can read")               \
  X(ReadConverted, "read_converted", "read", "elements that HDF5 converts on the way")             \
  X(ReadFailed, "read_failed", "read", "a chunk could not be read: HDF5 says why")                 \
  X(ReadCached, "read_cached", "read", "asynchronous, of what HDF5's chunk cache may have")        \
  X(ReadNow, "read_now", "read", "asynchronous reads that only HDF5 can make, at once")            \
  X(QueryNow, "query_now", "dataset",                                                              \
    "asynchronous queries over elements that only HDF5 can read, at once")                         \
  X(FilterUnknown, "filter_unknown", "write", "filters or types that only HDF5 can write")         \
  X(FilterSmall, "filter_small", "write",                                                          \
    "chunks of less than 16 KiB (256 where none of their filters compresses) are HDF5's")          \
  X(FilterPartial, "filter_partial", "write", "parts of filtered chunks: HDF5 filters them")       \
  X(FilterType, "filter_type", "write", "filtered chunks whose elements HDF5 converts")            \
  X(FilterMemory, "filter_memory", "write", "elements for filtered chunks, scattered in memory")   \
  X(FilterTransfer, "filter_transfer", "write", "a transfer list of its own, for filtered chunks") \
  X(FilterPageBuffer, "filter_page_buffer", "write", "filtered chunks above HDF5's page buffer")   \
  X(FilterReserved, "filter_reserved", "write",                                                    \
    "filtered chunks, whose size nobody knows yet, where space is reserved")                       \
  X(FilterCached, "filter_cached", "write",                                                        \
    "the program comes back to filtered chunks that HDF5's cache has")                             \
  X(FilterNoRoom, "filter_no_room", "write", "no memory for chunks that wait for their filters")   \
  X(MpiUnknown, "mpi_unknown", "file", "an MPI library that we do not know")                       \
  X(MpiDriver, "mpi_driver", "file", "an mpio driver that is not as we know it")                   \
  X(MpiWritten, "mpi_written", "file", "opened by MPI for reading, while others write it")         \
  X(MpiFileSystem, "mpi_file_system", "file",                                                      \
    "ranks on file systems like NFS, or behind a prefix, may not see each other's bytes")          \
  X(MpiHints, "mpi_hints", "file", "MPI-IO hints that forbid ranks to write alone")                \
  X(MpiRanks, "mpi_ranks", "file", "another rank could not defer")                                 \
  X(MpiNodeMemory, "mpi_node_memory", "file",                                                      \
    "metadata that ranks could not share: no memory for it in /dev/shm")                           \
  X(MpiTwice, "mpi_twice", "file", "the same file, opened twice at the same time")                 \
  X(MpiMounted, "mpi_mounted", "file", "ranks' file, mounted in another one or with one in it")    \
  X(MpiAtomic, "mpi_atomic", "file", "MPI's atomic mode")                                          \
  X(MpiSmallPieces, "mpi_small_pieces", "write",                                                   \
    "collective writes in many small pieces, which MPI exchanges and joins")                       \
  X(MpiReadPieces, "mpi_read_pieces", "read",                                                      \
    "collective reads in many small pieces, which MPI joins and hands out")                        \
  X(MpiDataset, "mpi_dataset", "write",                                                            \
    "by MPI to a dataset that is filtered, compact, virtual, or has no space yet")                 \
  X(MpiUnlinked, "mpi_unlinked", "write", "by MPI to a dataset that nothing links to")             \
  X(MpiConverted, "mpi_converted", "write", "by MPI, of elements that HDF5 converts")              \
  X(MpiTransfer, "mpi_transfer", "write", "by MPI, with a transfer list that we do not know")      \
  X(MpiPeers, "mpi_peers", "write", "collective writes that another rank could not defer")         \
  X(MpiAlone, "mpi_alone", "write",                                                                \
    "a rank alone, where ranks of other machines may read it at once, or consistency=strict")      \
  X(Forked, "forked", "file", "a forked process may end by _exit: its flushes and closes wait")    \
  X(GpuUnpinned, "gpu_unpinned", "call",                                                           \
    "GPU memory copied through memory that is not pinned: no room in what is")                     \
  X(NoThreads, "no_threads", "",                                                                   \
    "no threads, or no address space for them: waiters do the lanes' work")

enum class Fallback : unsigned {
#define X(name, key, unit, text) k##name,
  TL_FALLBACKS(X)
#undef X
      kCount
};

inline constexpr unsigned kCounterCount = static_cast<unsigned>(Counter::kCount);
inline constexpr unsigned kFallbackCount = static_cast<unsigned>(Fallback::kCount);

namespace internal {
extern std::atomic<uint64_t> counters[kCounterCount];
extern std::atomic<uint64_t> fallbacks[kFallbackCount];
extern std::atomic<uint64_t> fallback_bytes[kFallbackCount];
}  // namespace internal

inline void Count(Counter counter, uint64_t n = 1) {
  internal::counters[static_cast<unsigned>(counter)].fetch_add(n, std::memory_order_relaxed);
}
inline void Count(Fallback reason) {
  internal::fallbacks[static_cast<unsigned>(reason)].fetch_add(1, std::memory_order_relaxed);
}
/// A synchronous write of `bytes`, and why it was one.
void CountSync(Fallback reason, uint64_t bytes);
/// For peaks and caps: keeps the largest value seen.
void CountMax(Counter counter, uint64_t value);

inline uint64_t Read(Counter counter) {
  return internal::counters[static_cast<unsigned>(counter)].load(std::memory_order_relaxed);
}
inline uint64_t Read(Fallback reason) {
  return internal::fallbacks[static_cast<unsigned>(reason)].load(std::memory_order_relaxed);
}
/// Bytes written synchronously for this reason.
inline uint64_t ReadBytes(Fallback reason) {
  return internal::fallback_bytes[static_cast<unsigned>(reason)].load(std::memory_order_relaxed);
}

/// In a forked child: what the parent did is the parent's to tell. Caps stay.
void ResetCountersAfterFork();

/// The JSON keys.
const char* Name(Counter counter);
const char* Name(Fallback reason);
/// What they mean, for a person.
const char* Text(Counter counter);
const char* Text(Fallback reason);
/// What a fallback counts: "file"; empty when it is the process.
const char* Unit(Fallback reason);

}  // namespace tidelane
