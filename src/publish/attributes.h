/// \file
/// What a file that replaces another one takes over from it: mode, group, access list, extended attributes.
///
/// Thread safety: any thread; both descriptors are the caller's.
#pragma once

namespace tidelane {

/// 0, or the errno of what could not be taken over. What only the system keeps there (SELinux labels and the like) is left to the
/// system; an access list that `from` has not is removed.
int TakeOverAttributes(int from, int to);

}  // namespace tidelane
