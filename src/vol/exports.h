/// \file
/// What other languages call in the loaded plugin, in C and without HDF5's ids: python/ does, through
/// ctypes. Files are named by their paths.
///
/// Invariant: nothing here needs HDF5's lock but tidelane_settle, so that waits leave the program's
/// other threads, and an interpreter's lock, alone.
///
/// Thread safety: any thread may call.
#pragma once

#include <stddef.h>
#include <stdint.h>

extern "C" {

/// All texts are for tidelane_free. A failure's words are written to `why`, cut to `size` bytes.
void tidelane_free(char* text);

/// JSON: for each setting name, variable, accepted, default, meaning, and whether a file may have its own.
char* tidelane_settings(void);
/// Whether `item`, "close=deferred", could stand in a connector's info string: 0, or -1 with the reason.
int tidelane_check_setting(const char* item, char* why, size_t size);

/// How many copies of HDF5 have loaded this plugin.
int tidelane_libraries(void);
/// The summary (docs/summary.md) as it is now: JSON, or else the table.
char* tidelane_summary(int json);

/// From now on waits are recorded for the summary, even if none was asked for at the end; with `timeline` spans, too.
void tidelane_record(int timeline);
/// Writes the timeline so far, as TIDELANE_TRACE would: 0, or -1 with the reason.
int tidelane_write_timeline(const char* path, char* why, size_t size);

/// Puts what was filtered, or is about to be, into the file (decision 11) at `path`; nullptr: into all. 0, or -1 with the
/// reason if something of that file's could not be. Only the copies of HDF5 that hold such chunks are entered; one that is
/// not thread-safe by the thread that wrote them, or if the caller keeps all others out of it: `kept_out_of` is then an
/// address in it (else nullptr).
int tidelane_settle_chunks(const char* path, const void* kept_out_of, char* why, size_t size);
/// Waits until what was captured of the file (nullptr: of all) is stored, but at most `timeout_us`. 1: it is; 0: too
/// late; -1, with the reason: it cannot be. What runs natively or is not known here counts as stored.
int tidelane_wait(const char* path, int64_t timeout_us, char* why, size_t size);
/// Between 1 and 0 (they nest) flushes of this thread only start storing: it means to wait by tidelane_wait.
void tidelane_waits_itself(int begin);

/// Between 1 and 0 (they nest) flushes of this thread commit journalled files, whatever their journal_commits says.
void tidelane_commits_now(int begin);

/// The file of that path is not published (publish=atomic), as the program leaves it by an error; nullptr: all those that it leaves
/// open. What is published already, or written in place, stays. 1: there is such a file.
int tidelane_withhold(const char* path);

/// `schedule(tell, nullptr)` is called, from any thread and inside HDF5, when there are notices; it is
/// to return at once and see to it that `tell` is called where the program can be spoken to. nullptr: no more.
void tidelane_listen(int (*schedule)(int (*tell)(void*), void*), int (*tell)(void*));
/// JSON: path, reason and its words of each file that runs natively and was not told of before.
char* tidelane_take_notices(void);
}
