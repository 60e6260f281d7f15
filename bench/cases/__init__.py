"""The benchmarks by name, in the order in which they run and stand on the page."""

from cases import checkpoint, commits, filters, modes, never_slower, objects, query, ranks, reads, recording, tier, writes

CASES = {
    case.key: case
    for case in [
        checkpoint.CHECKPOINT,
        checkpoint.PLAIN,
        objects.OBJECTS,
        writes.WRITES,
        writes.MERGING,
        filters.FILTERS,
        never_slower.NEVER_SLOWER,
        never_slower.NEVER_MORE_BYTES,
        never_slower.NEVER_MORE_CPU,
        never_slower.CORNER_COSTS,
        never_slower.IN_TURN_COSTS,
        never_slower.LIGHT_FILTER_COSTS,
        reads.SERIES,
        reads.LOADER,
        query.QUERY,
        query.LATER,
        objects.WALK,
        modes.REGRET,
        modes.PREDICT,
        checkpoint.MEMORY,
        checkpoint.BUSY,
        objects.START,
        recording.RECORDING,
        commits.APPENDED,
        commits.OVERWRITTEN,
        commits.POWER,
        commits.OPEN_DATASETS,
        tier.TIER,
        tier.AGAIN,
        tier.BURST,
        tier.PLOTFILES,
        ranks.SERIES,
        ranks.INTERLEAVED,
        ranks.MERGING,
        ranks.FILTERED,
        ranks.READS,
        ranks.OPENING,
    ]
}
