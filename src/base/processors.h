/// \file
/// How many processors there are: for the ranks of an MPI program on this node, and for the lanes of each.
///
/// Thread safety: reads the environment; must not race with setenv.
#pragma once

namespace tidelane {

/// Processors that this process may run on. Launchers that bind each rank to one say nothing of the others': then those of the node.
unsigned ProcessorsForRanks();

/// How many threads of this process may compute at once without taking turns: its share of them, where a node has several ranks; what
/// control groups allow, where that is less. At least 1.
unsigned ProcessorsForLanes();

/// Whether this node has fewer of them than ranks: who waits for another rank in a circle then takes the processor that it needs.
bool HasMoreRanksThanProcessors();

}  // namespace tidelane
