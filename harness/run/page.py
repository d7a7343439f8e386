"""The HTML report that a run leaves in its folder. No torch."""

from __future__ import annotations

import logging
from pathlib import Path

from harness.errors import DataError
from harness.results.rows import RunResults
from harness.results.run_record import PAGE, RunRecord
from harness.store.store import Store

_LOOKED_AT = 20
_DRAWING = [Path(__file__).resolve().parents[1] / name for name in ("report", "results")]
_COMPARED = ("suite.yaml", "results.csv")
_log = logging.getLogger(__name__)


def leave_page(record: RunRecord, results: RunResults, store: Store, *, anew: bool = True) -> Path | None:
    """Write the HTML report of a run into its folder, and return where; None, with a warning, where that fails.

    Args:
        anew: False where no stage was run: then an earlier run's page is returned, if it shows the same, since
            drawing one takes longer than all the rest of such a run.
    """
    folder = store.runs / record.id
    found = None if anew else _same(record, folder)
    if found is not None:
        return found
    try:
        from harness.report.html.page import write_page

        return write_page(record, results, store)
    except Exception as error:
        _log.warning("no HTML report was written (%s: %s)", type(error).__name__, str(error).partition("\n")[0])
        return None


def _same(record: RunRecord, folder: Path) -> Path | None:
    """The page of the latest earlier run of the same suite's file that had the same settings and results."""
    label = folder.name[16:-5]  # between the time and the random end
    earlier = sorted(other for other in folder.parent.glob(f"*-{label}-????") if other != folder)
    for other in reversed(earlier[-_LOOKED_AT:]):
        alike = _drawn_by_this(other / PAGE) and all(_equal(folder / name, other / name) for name in _COMPARED)
        if alike and _suite_path(other) == record.suite_path:
            return other / PAGE
    return None


def _suite_path(folder: Path) -> str:
    try:
        return RunRecord.load(folder).suite_path
    except DataError:
        return ""


def _drawn_by_this(page: Path) -> bool:
    """Whether a page is there and not older than the code and the data that draw it."""
    try:
        drawn = page.stat().st_mtime
        files = (path for folder in _DRAWING for path in folder.rglob("*") if path.suffix not in ("", ".pyc"))
        return all(path.stat().st_mtime < drawn for path in files)
    except OSError:
        return False


def _equal(one: Path, other: Path) -> bool:
    try:
        return one.stat().st_size == other.stat().st_size and one.read_bytes() == other.read_bytes()
    except OSError:
        return False
