/// \file
/// `tidelane query-hits`: the part of `tidelane query` that loads HDF5 and the plugin, because one that is loaded may crash, hang or end
/// the process; and so that what is interrupted ends at once, whatever it does. Not for people.
///
///   query-hits [options of query] :LIBRARY :PLUGIN :FILE :QUERY [:OUTPUT]
///
/// Thread safety: one thread.
#pragma once

#include <csignal>

#include "tools/arguments.h"

namespace tidelane::tools {

/// Those that the parent holds back while there is something to be put in order after the child.
sigset_t SignalsThatEnd();

int QueryHits(const Arguments& arguments);

}  // namespace tidelane::tools
