"""Results of runs: the flat table, selection, aggregation, statistics, comparison and published numbers. No torch."""
