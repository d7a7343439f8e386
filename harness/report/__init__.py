"""From the flat table to something to read: aggregation, ranks, caption, and one renderer per format. No torch."""
