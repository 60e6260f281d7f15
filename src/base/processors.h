/// \file
/// How many processors there are for the ranks of an MPI program on this node.
///
/// Thread safety: reads the environment; must not race with setenv.
#pragma once

namespace tidelane {

/// Processors that this process may run on. Launchers that bind each rank to one say nothing of the others': then those of the node.
unsigned ProcessorsForRanks();

/// Whether this node has fewer of them than ranks: who waits for another rank in a circle then takes the processor that it needs.
bool HasMoreRanksThanProcessors();

}  // namespace tidelane
