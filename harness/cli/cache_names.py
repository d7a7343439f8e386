"""What a suite or a run on the command line means for the store. No torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.errors import UserError

if TYPE_CHECKING:
    from harness.run.session import Options
    from harness.store.source import Source
    from harness.store.store import Store


def keys_of_suites(names: Sequence[str], options: Options) -> set[str]:
    """Keys of everything that suites need.

    Raises:
        UserError: a suite cannot be opened.
    """
    from harness.run.session import open_session

    found: set[str] = set()
    for name in names:
        found |= set(open_session(name, options).plan.producers)
    return found


def here(names: Sequence[str], store: Store, options: Options) -> tuple[list[str], list[str]]:
    """Keys and runs of this store that the names of suites and ids of runs stand for; all where there are none.

    Raises:
        UserError: a name is neither a suite nor a run.
    """
    from harness.results.run_record import RECORD
    from harness.store.exchange import stored
    from harness.store.references import keys_of_runs
    from harness.store.source import FolderSource

    if not names:
        source = FolderSource(store)
        return source.keys(), source.runs()
    runs = [name for name in names if (store.runs / name / RECORD).is_file()]
    suites = [name for name in names if name not in runs]
    keys = keys_of_runs(store, runs) | _keys_of_suites(suites, options, "this store")
    return stored(store, keys), runs


def there(names: Sequence[str], source: Source, options: Options) -> tuple[set[str], list[str]]:
    """The same for another store, as far as it is known before its runs have been read.

    Raises:
        UserError: a name is neither a suite nor a run of the other store.
    """
    if not names:
        return set(source.keys()), source.runs()
    known = set(source.runs())
    runs = [name for name in names if name in known]
    suites = [name for name in names if name not in known]
    return _keys_of_suites(suites, options, source.name), runs


def _keys_of_suites(suites: Sequence[str], options: Options, where: str) -> set[str]:
    try:
        return keys_of_suites(suites, options)
    except UserError as error:
        raise UserError(f"{error}\n(a run of {where} may be named too; by its id)") from None
