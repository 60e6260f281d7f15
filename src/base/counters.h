/// \file
/// What happened, counted: process-wide totals and the reasons for every fallback to synchronous
/// I/O.
///
/// Invariant: counters only grow (peaks included) from process start; they are the evidence in
/// tests and summaries.
///
/// Thread safety: all functions may be called from any thread; relaxed atomics.
#pragma once

#include <atomic>
#include <cstdint>

namespace tidelane {

// X(name): the enumerator is k##name in CamelCase, the JSON key the snake_case text.
#define TL_COUNTERS(X)                                                                             \
  X(BytesDeferred,                                                                                 \
    "bytes_deferred") /* bytes copied by a write call that returned before they were stored */     \
  X(WritesDeferred, "writes_deferred") /* driver-level writes so captured */                       \
  X(BytesSync, "bytes_sync")           /* bytes written through, on the caller's thread */         \
  X(WritesSync, "writes_sync")                                                                     \
  X(BytesWritten, "bytes_written")       /* bytes that lanes put on storage, gap bytes included */ \
  X(RequestsWritten, "requests_written") /* write requests that lanes made */                      \
  X(GapFillReads, "gap_fill_reads")                                                                \
  X(GapFillBytes, "gap_fill_bytes")                                                                \
  X(StorageReads, "storage_reads") /* read requests made to storage on behalf of the program */    \
  X(StorageReadBytes, "storage_read_bytes")                                                        \
  X(ReadAheadHits, "readahead_hits")                                                               \
  X(LaneBusyNs, "lane_busy_ns") /* time lanes spent writing */                                     \
  X(CopyNs, "copy_ns")          /* time callers spent inside captured writes, large ones only */   \
  X(WaitFlushNs, "wait_flush_ns")                                                                  \
  X(WaitCloseNs, "wait_close_ns")                                                                  \
  X(WaitRequestNs, "wait_request_ns")                                                              \
  X(WaitArenaNs, "wait_arena_ns")                                                                  \
  X(WaitReadNs, "wait_read_ns") /* reads that went to storage */                                   \
  X(WaitOpenNs, "wait_open_ns") /* opens that waited for a draining file */                        \
  X(ArenaPeakBytes, "arena_peak_bytes")                                                            \
  X(ArenaCapBytes, "arena_cap_bytes")                                                              \
  X(FilesOpened, "files_opened")                                                                   \
  X(FilesAdopted, "files_adopted") /* opens that took over a draining file */                      \
  X(ClosesDeferred, "closes_deferred")                                                             \
  X(Errors, "errors") /* failed writes, each attempt */

enum class Counter : unsigned {
#define X(name, key) k##name,
  TL_COUNTERS(X)
#undef X
      kCount
};

// Why something ran natively (synchronously).
#define TL_FALLBACKS(X)                                                                           \
  X(Driver, "driver")                /* the file uses another driver than sec2 */                 \
  X(SwmrWrite, "swmr_write")         /* single-writer-multiple-reader needs strict order */       \
  X(HandleOut, "handle_handed_out")  /* the program asked for the file descriptor */              \
  X(UnstableInode, "unstable_inode") /* the file system does not keep inode numbers */            \
  X(ModeSync, "mode_sync")           /* TIDELANE_MODE=sync */                                     \
  X(ArenaFull, "arena_full")         /* no room, and nothing left that could make room */         \
  X(QuickStorage, "quick_storage") /* pieces that storage takes as fast as a second copy would */ \
  X(Locking, "locking_off")        /* no lock held: no gap filling, no read-ahead */              \
  X(OneCore, "one_core") /* the program is bound to one core; lanes leave it if they may */       \
  X(ExternalRaw, "external_raw_file")  /* external raw data files bypass every driver */          \
  X(OtherConnector, "other_connector") /* a foreign VOL connector below us */                     \
  X(NoThreads, "no_threads")           /* the system refused threads: waiters do the lanes' work */

enum class Fallback : unsigned {
#define X(name, key) k##name,
  TL_FALLBACKS(X)
#undef X
      kCount
};

inline constexpr unsigned kCounterCount = static_cast<unsigned>(Counter::kCount);
inline constexpr unsigned kFallbackCount = static_cast<unsigned>(Fallback::kCount);

namespace internal {
extern std::atomic<uint64_t> counters[kCounterCount];
extern std::atomic<uint64_t> fallbacks[kFallbackCount];
}  // namespace internal

inline void Count(Counter counter, uint64_t n = 1) {
  internal::counters[static_cast<unsigned>(counter)].fetch_add(n, std::memory_order_relaxed);
}
inline void Count(Fallback reason) {
  internal::fallbacks[static_cast<unsigned>(reason)].fetch_add(1, std::memory_order_relaxed);
}
/// For peaks and caps: keeps the largest value seen.
void CountMax(Counter counter, uint64_t value);

inline uint64_t Read(Counter counter) {
  return internal::counters[static_cast<unsigned>(counter)].load(std::memory_order_relaxed);
}
inline uint64_t Read(Fallback reason) {
  return internal::fallbacks[static_cast<unsigned>(reason)].load(std::memory_order_relaxed);
}

/// The JSON keys.
const char* Name(Counter counter);
const char* Name(Fallback reason);

}  // namespace tidelane
