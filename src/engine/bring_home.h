/// \file
/// Files that wait in a tier, for drivers that know none.
///
/// Thread safety: any thread.
#pragma once

#include "engine/engine.h"

namespace tidelane {

/// Another driver is about to open the file at `path`: if it waits in a tier it is brought to its place. What fails that open says.
void BringHome(Engine& engine, const char* path);

}  // namespace tidelane
