/// \file
/// Tidelane's library for programs: to say when a file's bytes are stored, and to wait for them.
///
/// No program needs it. It is for those that want more say than environment variables give, and for
/// programs written for the existing asynchronous connector, whose functions of the same names and
/// arguments these are. Each function is described in docs/library.md.
///
/// Everything works whether or not the plugin is loaded. Without it HDF5 stores everything before
/// its calls return, so there is nothing to wait for: waits return at once, tests say "stored", and
/// what was set on a list stays there and does nothing.
///
/// Errors are HDF5's: a negative result, and the reason on the error stack.
///
/// Thread safety: as HDF5's own functions. With a thread-safe HDF5 any thread may call; without one,
/// one thread at a time. A function that waits does so under HDF5's lock.
#ifndef TIDELANE_H
#define TIDELANE_H

#include <stdint.h>

#include <hdf5.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The connector ------------------------------------------------------------------------------ */

/* Has files that are opened with this list run asynchronously, as HDF5_VOL_CONNECTOR=tidelane would. */
herr_t H5Pset_vol_async(hid_t fapl_id);

/* Waiting ------------------------------------------------------------------------------------ */

/* Wait until everything written to the file so far is stored; fail if that cannot be done. */
herr_t H5Fwait(hid_t file_id, hid_t dxpl_id);
herr_t H5Dwait(hid_t dset_id, hid_t dxpl_id);

/* Tell whether it is, without waiting (1 or 0), and have what is not stored now. */
herr_t H5Ftest(hid_t file_id, int* completed);
herr_t H5Dtest(hid_t dset_id, int* completed);

/* When storing begins ------------------------------------------------------------------------ */

/* Store now what was written so far; end a pause. */
herr_t H5Fstart(hid_t file_id, hid_t dxpl_id);
herr_t H5Dstart(hid_t dset_id, hid_t dxpl_id);

/* Go on capturing, but store nothing until somebody wants it stored. */
herr_t H5Fpause(hid_t file_id, hid_t dxpl_id);
herr_t H5Dpause(hid_t dset_id, hid_t dxpl_id);

/* Bytes stay in memory so long before storing them begins; 0: as configured. */
herr_t H5Fset_delay_time(hid_t file_id, hid_t dxpl_id, uint64_t time_us);
herr_t H5Dset_delay_time(hid_t dset_id, hid_t dxpl_id, uint64_t time_us);

/* The same, from the opening of a file on, or with a write. */
herr_t H5Pset_fapl_pause(hid_t fapl_id, hbool_t is_pause);
herr_t H5Pget_fapl_pause(hid_t fapl_id, hbool_t* is_pause);
herr_t H5Pset_dxpl_pause(hid_t dxpl_id, hbool_t is_pause);
herr_t H5Pget_dxpl_pause(hid_t dxpl_id, hbool_t* is_pause);
herr_t H5Pset_fapl_delay(hid_t fapl_id, uint64_t time_us);
herr_t H5Pget_fapl_delay(hid_t fapl_id, uint64_t* time_us);
herr_t H5Pset_dxpl_delay(hid_t dxpl_id, uint64_t time_us);
herr_t H5Pget_dxpl_delay(hid_t dxpl_id, uint64_t* time_us);

/* What is asynchronous ----------------------------------------------------------------------- */

/* Calls without an event set store their bytes before they return: of a file, of a write. */
herr_t H5Pset_fapl_disable_async_implicit(hid_t fapl_id, hbool_t is_disable);
herr_t H5Pget_fapl_disable_async_implicit(hid_t fapl_id, hbool_t* is_disable);
herr_t H5Pset_dxpl_disable_async_implicit(hid_t dxpl_id, hbool_t is_disable);
herr_t H5Pget_dxpl_disable_async_implicit(hid_t dxpl_id, hbool_t* is_disable);

/* The same the other way round, as older programs say it. */
herr_t H5Pset_dxpl_async(hid_t dxpl_id, hbool_t is_async);
herr_t H5Pget_dxpl_async(hid_t dxpl_id, hbool_t* is_async);

/* Writes with an event set that are larger than this are not copied: the program keeps the buffer as
   it is until the set says that they are done. 0: none is copied. */
herr_t H5Pset_dxpl_async_cp_limit(hid_t dxpl_id, hsize_t size);
herr_t H5Pget_dxpl_async_cp_limit(hid_t dxpl_id, hsize_t* size);

/* GPU memory -------------------------------------------------------------------------------- */

/* The stream (CUstream, cudaStream_t, hipStream_t) that a buffer in a GPU's memory is written on, or was used on: copies from
   there, or to it, come after what is on it now. NULL, the default: the legacy default stream, with which streams synchronize
   that are not made otherwise. */
herr_t tidelane_set_dxpl_gpu_stream(hid_t dxpl_id, void* stream);
herr_t tidelane_get_dxpl_gpu_stream(hid_t dxpl_id, void** stream);

/* One file's close and flush ----------------------------------------------------------------- */

typedef enum tidelane_when_t {
  TIDELANE_AS_CONFIGURED = 0, /* as the connector's settings say */
  TIDELANE_WAIT = 1,          /* H5Fclose, H5Fflush return when the bytes are stored */
  TIDELANE_DEFERRED = 2       /* they return at once */
} tidelane_when_t;

herr_t tidelane_set_fapl_close(hid_t fapl_id, tidelane_when_t when);
herr_t tidelane_get_fapl_close(hid_t fapl_id, tidelane_when_t* when);
herr_t tidelane_set_fapl_flush(hid_t fapl_id, tidelane_when_t when);
herr_t tidelane_get_fapl_flush(hid_t fapl_id, tidelane_when_t* when);

/* How a file that is created comes to its name ------------------------------------------------ */

typedef enum tidelane_publish_t {
  TIDELANE_PUBLISH_AS_CONFIGURED = 0, /* as the connector's settings say */
  TIDELANE_PUBLISH_INPLACE = 1,       /* others see it from its first byte on */
  TIDELANE_PUBLISH_ATOMIC = 2         /* it replaces what has the name when it is whole */
} tidelane_publish_t;

herr_t tidelane_set_fapl_publish(hid_t fapl_id, tidelane_publish_t how);
herr_t tidelane_get_fapl_publish(hid_t fapl_id, tidelane_publish_t* how);

/* Which ends a file survives that is being written ------------------------------------------- */

typedef enum tidelane_journal_t {
  TIDELANE_JOURNAL_AS_CONFIGURED = 0, /* as the connector's settings say */
  TIDELANE_JOURNAL_OFF = 1,           /* none, as natively */
  TIDELANE_JOURNAL_PROCESS = 2,       /* the program's: the file is its last commit, or newer */
  TIDELANE_JOURNAL_POWER = 3          /* and the machine's */
} tidelane_journal_t;

herr_t tidelane_set_fapl_journal(hid_t fapl_id, tidelane_journal_t journal);
herr_t tidelane_get_fapl_journal(hid_t fapl_id, tidelane_journal_t* journal);

/* A file that cannot be journalled is not opened, instead of being written without. */
herr_t tidelane_set_fapl_journal_required(hid_t fapl_id, hbool_t is_required);
herr_t tidelane_get_fapl_journal_required(hid_t fapl_id, hbool_t* is_required);

/* H5Fflush commits every so many times, and when the last commit is so many seconds ago (with a fraction, to the microsecond);
   0: that does not count; both 0: as configured. */
herr_t tidelane_set_fapl_journal_commits(hid_t fapl_id, uint64_t flushes, double seconds);
herr_t tidelane_get_fapl_journal_commits(hid_t fapl_id, uint64_t* flushes, double* seconds);

/* H5Fflush of this file alone, which commits in any case. Without a journal a flush and nothing else. */
herr_t tidelane_commit(hid_t file_id);

#ifdef __cplusplus
}
#endif

#endif
