#include "base/settings.h"

#include <algorithm>
#include <limits>
#include <ranges>

namespace tidelane {
namespace {

constexpr uint64_t kAny = std::numeric_limits<uint64_t>::max();

#ifdef TIDELANE_BREAK
bool ParseRule(Config& config, std::string_view text) {
  static constexpr std::string_view kRules[] = {
      "overlay",         "truncate",         "order",          "adopt",           "failure",
      "ranks_write",     "ranks_fill",       "ranks_free",     "ranks_overwrite", "ranks_read",
      "ranks_flush",     "ranks_backoff",    "ranks_shrink",   "ranks_copy",      "ranks_atomic",
      "ranks_close",     "ranks_board",      "ranks_chunks",   "ranks_fields",    "ranks_threads",
      "ranks_mount",     "ranks_take",       "ranks_unlinked", "ranks_outside",   "ranks_bell",
      "ranks_different", "ranks_address",    "ranks_metadata", "ranks_asked",     "ranks_hard",
      "ranks_reopened",  "link_callback",    "publish",        "publish_close",   "whims",
      "reads_written",   "reads_together",   "reads_told",     "reads_pieces",    "reads_agree",
      "ranks_peers",     "ranks_peer_sizes", "ranks_turning",  "node_version",    "node_shared",
      "node_patience",   "ranks_joined",     "query_strict",   "query_tiles",     "query_stale",
      "query_late",      "late_close",       "ranks_end"};
  static constexpr std::string_view kLogRules[] = {"log_file_sync",
                                                   "log_commit_sync",
                                                   "log_header_sync",
                                                   "log_folder_sync",
                                                   "log_superblock_sync",
                                                   "log_move_sync",
                                                   "log_unmark_sync",
                                                   "log_created_sync",
                                                   "log_restore_sync",
                                                   "log_aside_sync",
                                                   "log_mark",
                                                   "log_high_water",
                                                   "log_id",
                                                   "log_note_sync",
                                                   "log_reuse",
                                                   "log_continue_cut",
                                                   "log_continue_space",
                                                   "log_progress",
                                                   "log_leave_moves",
                                                   "log_leave_mark",
                                                   "log_leave_sync",
                                                   "log_leave_behind",
                                                   "log_small_segments",
                                                   "log_small_reuse"};
  for (const auto& part : std::views::split(text, '+')) {
    const std::string_view rule(part.begin(), part.end());
    if (std::ranges::find(kRules, rule) == std::end(kRules) &&
        std::ranges::find(kLogRules, rule) == std::end(kLogRules))
      return false;
  }
  config.test_break = text;
  return true;
}

std::string ShowRule(const Config& config) { return config.test_break; }
#endif

bool ParseConfigFile(Config& config, std::string_view text) {
  config.config_file = text;
  return true;
}

std::string ShowConfigFile(const Config& config) { return config.config_file; }

constexpr char kCloseDetails[] =
    R"(`wait`: when `H5Fclose` returns, the operating system has every byte of the file. Other programs see all of it, and a crash of this
program afterwards loses none of it. (Like HDF5 itself, Tidelane does not ask the system to force it onto the disk.)

`deferred`: `H5Fclose` returns while bytes still wait in memory, and worker threads store them while the program goes on.

- *This process* sees no difference through HDF5: opening the file again continues with what it holds; creating over it waits until it is whole.
  Whatever goes to the file without HDF5 (its own `open`, netCDF's classic formats) is like another process that looks at no locks.
- *Other processes* find the file locked until it is whole, as if the program still had it open: HDF5 refuses to open it, instead of reading
  half of it. Programs that look at no locks (`cp`, HDF5 with `HDF5_USE_FILE_LOCKING=FALSE`, file systems without locks) can see an
  incomplete file meanwhile. (Creating a file over it is refused too, but HDF5 has cut the old one short before it looks at the lock, as with any
  file that is open.)
- *After a crash* (a signal, `_exit`, a power failure) between the close and the moment when the file is whole, the file is lost: it cannot be
  opened. The normal end of a program, and `fork`, wait until all files are whole. In a forked process, which may end by
  `_exit` (Python's `multiprocessing` does), closes wait whatever this setting says.
- *Compressed datasets*: a chunk enters a file by a call of HDF5's, which only the program's threads make. So HDF5 has the file open until worker threads have compressed
  its chunks, and one of the program's next calls of HDF5, whatever it is, or the end of the program closes it (`closes_late` in the summary). While the program calls nothing of HDF5 the file stays as it is. The close of a file that HDF5 may keep open for another one (mounted, in a cache of external files, as the source of a virtual dataset) waits.
- *A failure* to store the bytes comes after `H5Fclose` has returned: it is told on stderr and counted in the summary.

`tier`: `H5Fclose` and `H5Fflush` return when the [tier](#tier) has what was written. Where there is no tier, or it cannot have this file, as `wait`, and counted.

`tier_deferred`: as `deferred`, into the tier: `H5Fclose` returns before the tier has the file, which soon follows, and the mover goes on from there. So loops that write a compressed file a step wait for neither compression nor storage, and the program's end waits
for the tier alone. After a crash before that the file is what its last flush was; one that was created, and not flushed, is empty. (`H5Fflush` returns when the tier has what was written, as with `tier`.) Where there is no tier, as `deferred`, and counted.

`H5Fclose_async` is deferred whatever this setting says; its event set is where to wait for the file.)";

constexpr char kFlushDetails[] =
    R"(`wait`: when `H5Fflush` returns, the operating system has every byte written before it. Other programs can see them, and a crash of this
program afterwards does not lose them.

`deferred`: `H5Fflush` starts the writing and returns.

- *This process* reads what it wrote, as always.
- *Other processes* that read the file without its lock see some of the bytes, or none, until they are stored.
- *After a crash* what was not yet stored is lost, also what was flushed; the file may then not open. A program that flushes in order to survive
  its own crash needs `wait`.
- *A failure* to store the bytes is told by the next call that waits for this file, at the latest by its close.)";

constexpr char kForkedDetails[] =
    R"(Forked processes (workers of Python's `multiprocessing`) end with `_exit` as a rule, which stores nothing. `deferred` is for those that end
normally, such as daemons. A process that is forked from one that has used files already always waits.)";

constexpr char kPublishDetails[] =
    R"(`inplace`: as natively, a file that is created is seen by everybody from its first byte on, and one that is created anew loses the old
one's bytes at once.

`atomic`: what a program creates or truncates is written to a hidden file beside it (`.NAME.unpublished`), which takes the file's place when its last
handle is closed and everything is stored. Whoever opens the name finds the old whole file (or none), or the new whole one; programs that have the old one
open go on reading it. If the program is killed, ends by an error (an exit status that is not 0) with the file open, or cannot store all of it, the old file stays as it was;
what is left is removed by who creates the file next, or by `tidelane recover`. Mode, group, access list and extended attributes of the old file are kept.

In the program itself nothing changes: whatever opens the name with Tidelane gets the new file. Another program that creates the same name is told that the file is locked.
Files that are opened for writing without being created are written in place.

Written in place, as the summary says with the reason: files with hard links, of other users, mounted by themselves, or that are no regular ones; in folders that are sticky, or not
writable; where the old and the new file have no room together, or where there are no file locks; files for SWMR from their creation on (a file is published when
`H5Fstart_swmr_write` comes later); other drivers' but MPI's ([there](mpi.md#atomic-publication) also those of names with a prefix of MPI-IO's, on NFS, SMB or Lustre).
[More](publish.md).)";

constexpr char kJournalDetails[] =
    R"(`off`: as natively, a file that is open for writing when its program is killed, or crashes, is lost as a rule: it cannot be opened.

`process`: whatever ends the program (a signal, a crash, `_exit`, a kernel that is short of memory), the file is then what it was at its last *commit*, or newer. Commits are every
`H5Fflush` that has succeeded (or [some of them](#journal_commits)), and the last close. `H5Dflush`, what HDF5 writes because its caches are full, and `H5Fcreate` are none: a file that is created and killed
before its first commit is empty (0 bytes; before HDF5 has written anything of its own there it is no HDF5 file), and one that was opened and is killed before it is as it was.

`power`: the same whatever ends the machine (a power failure, a kernel that stops), as far as storage keeps what it says it has: a commit waits until it has said so, by `fdatasync`, of the file and of the log.

Bytes that a commit has are not overwritten in the file: what is to take their place goes to a log beside it (`NAME-wal.0`, `NAME-wal.1`), and from there to its place after a later commit. A file that was
closed is a plain file, with no log. One that was not closed is recovered by whoever opens it next with Tidelane, or by `tidelane recover`; other programs, and HDF5 without Tidelane, refuse it
until then, and it must not be copied, moved or renamed without its log.

A flush returns when what it flushes is committed, also with `flush=deferred`. A close may be deferred: the file is its last commit, if the program is killed before the file is whole.

Not journalled, as the summary says with the reason, and written as without it: files with hard links; in folders that are not writable, or whose names are too long for a log's; where there are no
file locks; files that SWMR readers follow; whose descriptor the program asks HDF5 for; that are created with `publish=atomic`, as nobody sees these before they are whole; that the ranks of an MPI program share; and those of other drivers. `journal_required=on` refuses them.
[More](survive.md); [the log's format](formats/log.md).)";

constexpr char kJournalRequiredDetails[] =
    R"(`off`: a file that cannot be journalled is opened all the same, and written as without a journal; the summary says how many, and why.

`on`: opening or creating it fails, with the reason, which the summary counts all the same. It says nothing where `journal` is `off`.)";

constexpr char kJournalCommitsDetails[] =
    R"(For programs that flush more often than they need a state to come back to: a commit costs a flush's time (with `power`, two syncs of the disk).

A number: every so many flushes one commits: `1` each, `10` the tenth. A time: a flush commits if the last commit is as long ago as that, or longer. No flush, no commit: nothing is committed by the time
alone. A flush that is not due returns when the operating system has its bytes, and a program that is killed then leaves the commit before. The last close always commits, and so does
`tidelane_commit` ([library.md](library.md)).)";

constexpr char kReserveDetails[] =
    R"(Without it, a disk that becomes full is told when the bytes are stored: by a flush, a close, an event set, or the next call that changes the
file. With `on`, the file system is asked for the space when a call hands the bytes over, in steps of 1 MiB, and that call fails as it would
natively. What was reserved beyond the end of the file is given back when it is closed. Where the file system cannot reserve, nothing changes, and
the summary says so.)";

constexpr char kCopyLimitDetails[] =
    R"(`H5Dwrite_async` allows the library to use the caller's buffer until the event set was waited for. Above this limit Tidelane does: no copy is
made, and the program must leave the buffer as it is until its `H5ESwait`. By default it copies, because programs that free their buffers right after
the call are common. What HDF5 converts, gathers or filters, pieces below 4 KiB, and writes without an event set are copied all the same
([decision 8](decisions/0008-lent-buffers.md)).)";

constexpr char kModeDetails[] =
    R"(`auto` chooses for each step of the program (an I/O phase and the computation after it), on each storage, whether its large writes are
handed over or written by the program, from what earlier steps have cost and what they would have cost otherwise
([decision 16](decisions/0016-choosing.md)). On slow storage everything is handed over. Where storage is as quick as memory (tmpfs, the
page cache of a local disk), a write is a copy, and handing it over costs a second one: that pays once the program pauses between its
steps and does not ask for its bytes at once. Every choice, with the times expected and taken, is in the JSON summary.

`async` defers every write, whatever storage is: for a program that is known to compute between its steps, from the first step on.

`sync` writes through on the calling thread, as native HDF5 does: to compare, or to rule Tidelane out.)";

constexpr char kGapDetails[] =
    R"(Two small writes with a gap between them become one request when the gap is read and written again. This is done only while we hold the file's
exclusive lock, and only inside one contiguous dataset or one chunk, or where the file as it was last flushed did not reach. Who writes the file all the same,
with locks off or past HDF5, can lose what he writes into the same part of the same dataset, as he can natively beside HDF5's sieve buffer, and nothing
else; `gap=0` rules that out, too.

`auto`: half of what storage takes in the time that a request costs there, from 4 to 64 KiB, learned from the requests of this run; 4 KiB before the
first one, and where storage is as quick as memory.)";

constexpr char kArenaDetails[] =
    R"(When it is full, a call that writes waits until storage has taken something: a small arena costs time, never memory. A crash loses at
most so much of what nobody has waited for.

Where address space is limited (`ulimit -v`, `-d`), a further part of the arena is taken only while eight times as much is left, and lanes are started only
where 512 MiB are: the program and HDF5 need it more. What then happens on the program's threads is counted (`arena_full`, `no_threads`).)";

constexpr char kReadAheadDetails[] =
    R"(From the reads of a file lanes tell the next ones (the same dataset's next slab, the next time step's datasets, the same again in the next
epoch, the same places of the next file of a series) and fetch them into the arena while the program computes
([decision 13](decisions/0013-read-ahead.md)). A file must be locked for it, as somebody else could change it
otherwise.)";

constexpr char kDeflateDetails[] =
    R"(Files are read by every HDF5 whatever this says, and are about as large. `libdeflate` is the fastest; its bytes are not those that native
HDF5 writes, though they decompress to the same. `isal` is Intel's ISA-L, which must be installed (Debian's `libisal2`): four to seven times as fast in
compressing, its files a tenth larger as a rule; where it is missing, that is said on stderr, and libdeflate does it. `zlib` writes native's very bytes (where
HDF5 has the same version of zlib). `native` leaves HDF5's own filter alone ([decision 10](decisions/0010-deflate.md)),
and so does every setting in MPI programs ([mpi.md](mpi.md)).)";

constexpr char kLanesDetails[] =
    R"(Threads start when there is something to do, and end when there is nothing for some seconds. `auto` are two for everything, and for filters (compression, and decompression) as many as there
are processors: those that the process may run on, or that its control group has the time of, shared by the ranks of an MPI program that are on the same node. A number is
that of all threads.)";

constexpr char kParallelReadsDetails[] =
    R"(A blocking read of many chunks with deflate, shuffle, fletcher32, LZF, LZ4, zstd, bitshuffle, Blosc or Blosc2 is decoded by the calling
thread and the `lanes` together. What they cannot read (a type conversion, another filter, scattered selections), and what HDF5 may still have
in its chunk cache, HDF5 reads itself (decisions [12](decisions/0012-parallel-reads.md) and [14](decisions/0014-registered-filters.md)).)";

constexpr char kParallelWritesDetails[] =
    R"(A write of whole chunks of a dataset with deflate, shuffle, fletcher32, LZF, LZ4, zstd,
bitshuffle or Blosc (in any order) returns when its bytes have been copied. The `lanes` run the filters, all of them at once; a thread of the program puts the results into the file inside one of its next calls
([decision 11](decisions/0011-parallel-filters.md)). A call that needs those chunks (a read, a flush, a close of the file) waits for their
filters, and helps. Writes of parts of chunks, with conversion, of chunks below 16 KiB or through other filters run as they do natively, and so do
those to a dataset that the program reads or writes again while HDF5's chunk cache has it; the
summary counts why. The copies take up to a quarter of `arena` besides it. What storage refuses is told by the next flush, close or read of that file,
as for other deferred writes. `off` leaves all filters to HDF5.

Of files that the ranks of an MPI program have open together those are collective writes, of chunks of any size: the ranks put their chunks into the file
together, at the latest in the next flush or close ([mpi.md](mpi.md), [decision 20](decisions/0020-ranks-filter.md)). `serial` leaves these to HDF5.)";

constexpr char kHistoryDetails[] =
    R"(A small file for each program and file system, read when a program opens its first file for writing, and written when it ends
([history.md](history.md)). With it, `mode=auto` knows from the first step on whether the program pauses between its steps. `auto` is
`$XDG_STATE_HOME/tidelane/history` or `~/.local/state/tidelane/history`; where that cannot be written, nothing is kept and nothing said.)";

constexpr char kSummaryDetails[] =
    R"(`1` prints a table on stderr when the program ends. A path receives the same as JSON; `%p` in it becomes the process id, which programs with
several processes need.)";

constexpr char kConsistencyDetails[] =
    R"(Of files that the ranks of an MPI program have open together; [mpi.md](mpi.md) says more. A rank always sees its own bytes, and every rank's in
collective reads, after a flush, and after the file was closed and opened again. The rest differs:

`auto`: where all ranks of the file run on one machine, every write is deferred, and a rank that reads or writes alone waits until the others have
stored what they hold there: as natively, a write that has returned is there for everybody who hears of it. Across machines only collective writes are
deferred; a rank that reads alone what others wrote collectively needs a flush in between.

`mpi`: what MPI-IO promises without atomic mode. Across machines, too, every write is deferred: a barrier alone is not enough for another rank to read
it, or to write there.

`strict`: every write has been stored when it returns. Only writes with an event set are deferred, as they are with the others.)";

constexpr char kCollectivePieceDetails[] =
    R"(A collective write whose pieces on a rank are smaller than this on average, and more than a few, is left to MPI's collective buffering, which
exchanges them between ranks and makes large requests of them; the summary counts such writes. `0` defers them, too. The same holds of collective reads of files that
all ranks only read, where other ranks' pieces lie between.

`auto`: as much as storage takes in the time that a request costs there, from 4 KiB to 1 MiB, learned from the requests of this run; before the first one 4 KiB
on file systems that write to memory, and 256 KiB on others. A program that computes for longer than its pieces take one by one waits less with a smaller
size: deferred they need more of storage's time, but none of its own.

With `auto` so are collective writes in a few pieces, or in larger ones, as long as other ranks' pieces lie between and the program has not been seen to pause for long enough to hide what MPI's
joining saves ([decision 18](decisions/0018-mpi.md)): the first phase of writes always is, on storage slower than memory. A size, whatever it is, or `mode=async`, defers all of those.)";

constexpr char kTierDetails[] =
    R"(With `close=tier`, `H5Fflush` and `H5Fclose` return when the tier has what was written, and another process, the *mover*, brings it to the file's own place afterwards, whatever becomes of the
program ([tier.md](tier.md)). `memory` is a folder under /dev/shm: it survives the program, not the machine. A folder on a fast local disk takes more; with `journal=power` it survives the machine, too.

Until the mover is done, HDF5 refuses the file where Tidelane is not loaded (its superblock says so), and programs with Tidelane read it through the tier.)";

constexpr char kTierSizeDetails[] =
    R"(`auto`: in memory, a quarter of what /dev/shm has free, and of the memory that this process may use (an eighth of a control group's limit), with what waits there already; in a folder, half of what its file system has free. What finds no room there is written to the file itself, and counted.)";

constexpr char kTierRateDetails[] =
    R"(Of all files of the tier together, so that other users of slow storage, and the program's own reads there, are left some of it; `0`: as fast as it goes. Whoever opens a file for writing that the mover is at
is not kept waiting for it. A mover serves all programs of the user whose files are in the tier: what the first one says holds, until it ends. `tidelane drain` knows no rate; it leaves a mover ten seconds, and then does the rest itself.)";

constexpr char kTierStreamsDetails[] =
    R"(A thread each. A second one fills the pauses in which storage answers the first, as one file is written by one request after another; each takes processor time beside the program. As with `tier_rate`, the first program's says it for all.)";

constexpr char kTierNiceDetails[] =
    R"(As `nice` has it; never less nice than the program itself. As with `tier_rate`, the first program's says it for all.)";

constexpr char kTierDrainedDetails[] =
    R"(Schedulers (Slurm, PBS, LSF, Flux, Cobalt) end the mover with the job, and systemd-logind may with the session; then files would stay in the tier, in a node that somebody else has next. Where that is so, closes wait
as with `close=wait`, and it is counted, unless this is `on`: the job's script ends with `tidelane drain`, or the program is started by `tidelane run`, which drains at its end and sets this by itself.)";

using When = WordOf<&Config::mode, kModes>;
using TierSize = SizeOrAutoOf<&Config::tier_bytes>;
using TierRate = SizeOf<&Config::tier_rate, 0, kAny>;
using TierStreams = NumberOf<&Config::tier_streams, 1, 16>;
using TierNice = NumberOf<&Config::tier_nice, 0, 19>;
using TierDrained = WordOf<&Config::tier_drained, kOffOrOn>;
using Flush = WordOf<&Config::flush_deferred, kWaitOrDeferred>;
using Forked = WordOf<&Config::forked_defers, kWaitOrDeferred>;
using Publish = WordOf<&Config::publish_atomic, kInPlaceOrAtomic>;
using JournalOf = WordOf<&Config::journal, kJournals>;
using JournalRequired = WordOf<&Config::journal_required, kOffOrOn>;
using JournalDue = FlushesOrTimeOf<&Config::journal_commits>;
using Reserve = WordOf<&Config::reserve, kOffOrOn>;
using Gap = LimitOf<&Config::gap_bytes, kAutomatic, (1u << 20)>;
using CopyLimit = LimitOf<&Config::copy_limit>;
using Consistency = WordOf<&Config::consistency, kConsistencies>;
using CollectivePiece = LimitOf<&Config::collective_piece, kAutomatic>;
using Arena = SizeOf<&Config::arena_bytes, (64u << 10), kAny>;
using Lanes = NumberOrAutoOf<&Config::lanes, kMostLanes>;
using Linger = TimeOf<&Config::linger_us, 10'000'000>;
using ReadAhead = WordOf<&Config::read_ahead, kAutoOnOff>;
using ReadAheadLimit = LimitOf<&Config::read_ahead_limit>;
using Deflate = WordOf<&Config::deflate, kDeflates>;
using ParallelReads = WordOf<&Config::parallel_reads, kOffOrOn>;
using ParallelWrites = WordOf<&Config::parallel_writes, kParallelWrites>;
using History = ReportOf<&Config::history, false>;
using Summary = ReportOf<&Config::summary, true>;
using Trace = ReportOf<&Config::trace, false>;

constexpr Setting kSettings[] = {
    {"close", Scope::kFile, CloseOf::kType, "", "",
     "whether `H5Fclose` waits until the bytes are stored", kCloseDetails},
    {"flush", Scope::kFile, Flush::kType, "", "",
     "whether `H5Fflush` waits until the bytes are stored", kFlushDetails},
    {"publish", Scope::kFile, Publish::kType, "", "",
     "`atomic`: a file that is created gets its name when it is whole", kPublishDetails},
    {"journal", Scope::kFile, JournalOf::kType, "", "",
     "whether a file that is being written survives any end of the program (`process`), or of the "
     "machine, too (`power`)",
     kJournalDetails},
    {"journal_required", Scope::kFile, JournalRequired::kType, "", "",
     "whether a file that cannot be journalled is refused", kJournalRequiredDetails},
    {"journal_commits", Scope::kFile, JournalDue::kType,
     "a number of flushes, such as 1 or 10, or a time, such as 5s", "",
     "which flushes of a journalled file commit: every so many, or the first after so long",
     kJournalCommitsDetails},
    {"mode", Scope::kFile, When::kType, "", "",
     "which writes are deferred: all, or those where it hides something, or none", kModeDetails},
    {"reserve", Scope::kFile, Reserve::kType, "", "",
     "ask for space on the disk when bytes are handed over, so that a full disk is told by that "
     "call",
     kReserveDetails},
    {"copy_limit", Scope::kFile, CopyLimit::kType, "a size, such as 0 or 1M, or unlimited", "",
     "explicit writes larger than this are written from the caller's own buffer, without a copy; "
     "`0`: all",
     kCopyLimitDetails},
    {"gap", Scope::kFile, Gap::kType,
     "a size up to 1M, such as 4096 or 64k, or auto; 0 turns it off", "",
     "largest gap that is read and written again to join small writes", kGapDetails},
    {"consistency", Scope::kFile, Consistency::kType, "", "",
     "MPI: which writes of a rank are deferred", kConsistencyDetails},
    {"collective_piece", Scope::kFile, CollectivePiece::kType,
     "a size, such as 4096 or 64k, or auto", "",
     "MPI: collective writes in pieces smaller than this, on average, are left to MPI",
     kCollectivePieceDetails},
    {"arena", Scope::kProcess, Arena::kType, "a size of at least 64k, such as 256M or 2G",
     "a quarter of the memory this process may use (an eighth of a control group's limit), divided "
     "by the ranks of the node; at most 4G",
     "how much may wait in memory", kArenaDetails},
    {"forked", Scope::kProcess, Forked::kType, "", "",
     "whether flushes and closes wait, whatever `close` and `flush` say, in a process that was "
     "forked before its first file",
     kForkedDetails},
    {"lanes", Scope::kProcess, Lanes::kType, "a number from 1 to 64, or auto", "", "worker threads",
     kLanesDetails},
    {"linger", Scope::kProcess, Linger::kType, "microseconds, or a time such as 2ms, up to 10s", "",
     "how long a small write waits for neighbours to be joined with", ""},
    {"readahead", Scope::kProcess, ReadAhead::kType, "", "",
     "read metadata in 64 KiB blocks, and fetch what the program will read next; `auto`: on "
     "storage "
     "slower than memory",
     kReadAheadDetails},
    {"readahead_limit", Scope::kProcess, ReadAheadLimit::kType,
     "a size, such as 64M, or unlimited; 0 fetches nothing", "",
     "how much may be fetched ahead; never more than half the arena", ""},
    {"deflate", Scope::kProcess, Deflate::kType, "", "",
     "which library compresses and decompresses chunks of HDF5's deflate filter", kDeflateDetails},
    {"parallel_reads", Scope::kProcess, ParallelReads::kType, "", "",
     "worker threads help to decode filtered chunks", kParallelReadsDetails},
    {"parallel_writes", Scope::kProcess, ParallelWrites::kType, "", "",
     "worker threads filter whole chunks that are written", kParallelWritesDetails},
    {"tier", Scope::kProcess, TierOf::kType, "off, memory, or a folder by its whole path", "",
     "a faster place where files wait that were closed with `close=tier`", kTierDetails},
    {"tier_size", Scope::kProcess, TierSize::kType, "a size, such as 4G, or auto", "",
     "how much may wait there", kTierSizeDetails},
    {"tier_rate", Scope::kProcess, TierRate::kType, "a size, such as 200M, or 0", "",
     "how many bytes a second the mover writes at most; `0`: as many as it can", kTierRateDetails},
    {"tier_streams", Scope::kProcess, TierStreams::kType, "a number from 1 to 16", "",
     "how many files the mover writes at once", kTierStreamsDetails},
    {"tier_nice", Scope::kProcess, TierNice::kType, "a number from 0 to 19", "",
     "the mover's niceness", kTierNiceDetails},
    {"tier_drained", Scope::kProcess, TierDrained::kType, "", "",
     "`on`: `tidelane drain` runs before the job ends", kTierDrainedDetails},
    {"history", Scope::kProcess, History::kType, "auto, a folder, or off", "",
     "where it is kept what earlier runs of the program learned", kHistoryDetails},
    {"summary", Scope::kProcess, Summary::kType, "1, 0 or a path", "",
     "what happened, at the end: `1` on stderr, a path receives JSON", kSummaryDetails},
    {"trace", Scope::kProcess, Trace::kType, "a path, or 0", "",
     "the timeline, at the end, as a Chrome trace; `%p` in the path becomes the process id", ""},
    {"config",
     Scope::kVariable,
     {ParseConfigFile, ShowConfigFile, NoWords},
     "a path",
     "none",
     "a file with settings",
     ""},
#ifdef TIDELANE_BREAK
    {"break",
     Scope::kVariable,
     {ParseRule, ShowRule, NoWords},
     "a rule's name",
     "none",
     "which rule this deliberately broken build breaks",
     ""},
#endif
};

// There a value of 0 means: no limit set.
bool MegabytesToSize(std::string_view value, std::string& text) {
  uint64_t megabytes = 0;
  if (!ParseNumber(value, megabytes) || megabytes > (kAny >> 20)) return false;
  text = megabytes == 0 ? "" : std::to_string(megabytes) + "M";
  return true;
}

bool Anything(std::string_view, std::string&) { return true; }

constexpr std::string_view kStartsAtOnce =
    "nothing to do here: storing begins at once, and never needs HDF5's lock";
constexpr std::string_view kNothingToKeepAwayFrom =
    "nothing to do here: there it keeps threads from HDF5's lock, which ours never take (a program "
    "that wants a delay asks with `H5Pset_fapl_delay`)";
constexpr std::string_view kRunsAtOnce =
    "nothing to do here: HDF5's calls run at once, on the thread that makes them";

constexpr Alias kAliases[] = {
    {"HDF5_ASYNC_MAX_MEM_MB", "arena", "a number of MiB", MegabytesToSize,
     "sets `arena`; `0` leaves it as it is"},
    {"HDF5_ASYNC_EXE_FCLOSE", "", "anything", Anything, kStartsAtOnce},
    {"HDF5_ASYNC_EXE_GCLOSE", "", "anything", Anything, kStartsAtOnce},
    {"HDF5_ASYNC_EXE_DCLOSE", "", "anything", Anything, kStartsAtOnce},
    {"HDF5_ASYNC_DELAY_MICROSECOND", "", "anything", Anything, kNothingToKeepAwayFrom},
    {"HDF5_ASYNC_DISABLE_DSET_GET", "", "anything", Anything, kRunsAtOnce},
    {"HDF5_ASYNC_DISABLE_IMPLICIT_NON_DSET_RW", "", "anything", Anything, kRunsAtOnce},
    {"HDF5_ASYNC_DISABLE_NONDSET_IMPLICIT", "", "anything", Anything, kRunsAtOnce},
};

}  // namespace

std::span<const Setting> Settings() { return kSettings; }

std::span<const Alias> Aliases() { return kAliases; }

const Setting* FindSetting(std::string_view name) {
  const auto found = std::ranges::find(kSettings, name, &Setting::name);
  return found == std::end(kSettings) ? nullptr : found;
}

std::vector<std::string_view> SettingNames() {
  std::vector<std::string_view> names;
  for (const Setting& setting : kSettings) names.push_back(setting.name);
  return names;
}

std::string VariableOf(std::string_view name) {
  std::string variable = "TIDELANE_";
  for (const char c : name) variable += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return variable;
}

std::string AcceptedBy(const Setting& setting) {
  if (!setting.accepted.empty()) return std::string(setting.accepted);
  const std::vector<std::string_view> words = setting.value.words();
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i != 0) text += i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

std::string DefaultOf(const Setting& setting) {
  return setting.default_text.empty() ? setting.value.show(Config())
                                      : std::string(setting.default_text);
}

}  // namespace tidelane
