"""Fetching data files: resumable transfers, checked archives, and never half a file under its final name. No torch."""
