/// \file
/// Work for HDF5 that has not been done yet (vol/call_queue.h: chunks on their way) when the program forks, or ends.
///
/// Both sides of a fork must find its result in the file: a child that only reads would otherwise write. So
/// it is done before, by the thread that forks.
///
///   - A thread-safe HDF5: if no other thread is inside it. A fork waits only a moment for one that
///     is: that thread may wait for what the forking one has (an interpreter's lock). The child of
///     such a fork cannot use HDF5 anyway, whose lock stays taken there.
///   - Any other HDF5: only by the thread that left it, and where no other thread that is still there has ever called it
///     through us: such a one could be inside HDF5 now.
///
/// Otherwise it stays with the parent, and the child forgets it.
///
/// The same is done when the program ends, before HDF5 does: it begins to use nothing then that it has not used before. What is left is done when
/// HDF5 closes (vol/lifetime.cc).
///
/// Thread safety: WatchEnds may be called from any thread.
#pragma once

namespace tidelane::vol {

/// Has forks and the end watched from now on.
void WatchEnds();

}  // namespace tidelane::vol
