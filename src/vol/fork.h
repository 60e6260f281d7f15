/// \file
/// Chunks on their way (vol/chunk_capture.h) when the program forks.
///
/// Both sides of a fork must find them in the file: a child that only reads would otherwise write. So
/// they are inserted before it, by the thread that forks.
///
///   - A thread-safe HDF5: if no other thread is inside it. A fork waits only a moment for one that
///     is: that thread may wait for what the forking one has (an interpreter's lock). The child of
///     such a fork cannot use HDF5 anyway, whose lock stays taken there.
///   - Any other HDF5: only by the thread that wrote them, and where no other thread that is still there has ever called it
///     through us: such a one could be inside HDF5 now.
///
/// Otherwise they stay with the parent, and the child forgets them.
///
/// Thread safety: WatchForks may be called from any thread.
#pragma once

namespace tidelane::vol {

/// Has forks watched from now on.
void WatchForks();

}  // namespace tidelane::vol
