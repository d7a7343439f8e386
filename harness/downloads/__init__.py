"""Fetching data files: resumable transfers, checked archives, and never half a file under its final name. No torch."""

from harness.downloads.fetch import Fetched, fetch, is_placed
from harness.downloads.transfer import Patience, Watcher

__all__ = ["Fetched", "Patience", "Watcher", "fetch", "is_placed"]
