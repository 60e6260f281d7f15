/// \file
/// Who writes a file, or a log of it: a lock of the open file description on one byte that no file has. It is not HDF5's kind of lock, which
/// may be off, or gone before the writer is; and MPI-IO, which locks what it reads and rewrites, does not wait for it. Like that one it belongs
/// to what was opened, and ends with it.
///
/// Invariant: a claim changes nothing but who may claim.
/// Thread safety: all functions may be called from any thread.
#pragma once

namespace tidelane {

/// 0; EWOULDBLOCK: somebody else has it; another errno: there are no such locks there.
int Claim(int fd);
void GiveUpClaim(int fd);
/// Whether somebody else has it.
bool IsClaimed(int fd);

/// Who brings a closed file to its own place has it for a while that ends by itself (tier/drain.h): whoever needs the file can wait for that.
/// 0 or an errno, as Claim; a claim of its own, beside the other.
int ClaimMove(int fd);
void GiveUpMove(int fd);
/// Waits until nobody moves it any more. Whether somebody did. Whoever does can know that he is waited for.
bool AwaitMove(int fd);
bool IsMoveAwaited(int fd);
/// As openat(2), which with O_NONBLOCK, that a name needs that may be anything's, is refused a file that somebody moves. -1, and errno.
int OpenAfterMove(int folder, const char* name, int flags);
/// Claim, after whoever moves it has ended.
int ClaimAfterMove(int fd);

}  // namespace tidelane
