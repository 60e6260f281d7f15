"""The benchmarks by name, in the order in which they run and stand on the page."""

from cases import checkpoint, filters, modes, objects, ranks, reads, recording, writes

CASES = {
    case.key: case
    for case in [
        checkpoint.CHECKPOINT,
        checkpoint.PLAIN,
        objects.OBJECTS,
        writes.WRITES,
        writes.MERGING,
        filters.FILTERS,
        reads.SERIES,
        reads.LOADER,
        objects.WALK,
        modes.REGRET,
        modes.PREDICT,
        checkpoint.MEMORY,
        checkpoint.BUSY,
        objects.START,
        recording.RECORDING,
        ranks.SERIES,
        ranks.INTERLEAVED,
        ranks.MERGING,
        ranks.FILTERED,
    ]
}
