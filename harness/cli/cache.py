"""``bench cache``: list and verify the store, make room, copy from and to other stores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from harness.cli.completion import complete_suites
from harness.cli.options import Commands, Folders, Json, StoreDir, parse_bytes, parse_seconds
from harness.cli.output import answer, counted
from harness.errors import FileError, UserError
from harness.safe_io import size_text

if TYPE_CHECKING:
    from harness.run.session import Options
    from harness.store.exchange import Copied
    from harness.store.maintenance import Garbage, Info

Target = Annotated[
    str, typer.Argument(help="A folder, or a URL that fsspec understands, e.g. s3://bucket/bench.", metavar="TARGET")
]
Names = Annotated[
    list[str] | None,
    typer.Argument(
        help="Suites, and ids of runs; everything if absent.", metavar="[SUITE|RUN]...", autocompletion=complete_suites
    ),
]


def keys_of_suites(names: Sequence[str], given: Options) -> set[str]:
    """Return the keys of everything that suites need.

    Raises:
        UserError: a suite cannot be opened.
    """
    from harness.run.session import open_session

    return {key for name in names for key in open_session(name, given).plan.producers}


def size(store: StoreDir = None, json: Json = False) -> None:
    """Show how much room the store takes, by kind of stage."""
    from harness.store import Store
    from harness.store.maintenance import disk_size, listing

    opened = Store(store)
    infos, total = listing(opened), disk_size(opened.root)
    kinds = {kind: {"artifacts": count, "bytes": taken} for kind, count, taken in _by_kind(infos)}
    other = total - sum(info.size for info in infos)
    data = {"store": str(opened.root), "bytes": total, "kinds": kinds, "other": other}
    rest = f"  {'runs, records, leftovers':<42}{size_text(other):>12}"
    answer(json, data, [f"{opened.root}: {size_text(total)}", *_kind_lines(infos), rest])


def _by_kind(infos: Iterable[Info]) -> list[tuple[str, int, int]]:
    counts, sizes = Counter[str](), Counter[str]()
    for info in infos:
        counts[info.kind] += 1
        sizes[info.kind] += info.size
    return [(kind, count, sizes[kind]) for kind, count in sorted(counts.items())]


def _kind_lines(infos: Iterable[Info]) -> list[str]:
    return [
        f"  {kind:<26}{counted(count, 'artifact'):>16}{size_text(taken):>12}" for kind, count, taken in _by_kind(infos)
    ]


def list_artifacts(store: StoreDir = None, json: Json = False) -> None:
    """List every artifact, oldest first."""
    from harness.store import Store
    from harness.store.maintenance import listing

    infos = listing(Store(store))
    answer(json, {"artifacts": infos}, map(_line, infos))


def _line(info: Info) -> str:
    return f"  {info.key[:12]}  {size_text(info.size):>9}  {info.title}"


def verify(
    store: StoreDir = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Put damaged artifacts aside, so that the next run makes them again.")
    ] = False,
    json: Json = False,
) -> None:
    """Read the whole store and report damage. Exit code 0 if all is sound or repaired, else 1."""
    from harness.store import Store, sweep
    from harness.store.maintenance import inspect

    opened = Store(store)
    faults = list(inspect(opened))
    sound = len(opened.artifact_keys()) - sum(fault.path.parent != opened.runs for fault in faults)
    swept = sweep(opened.root) if repair and opened.root.exists() else 0
    lines, left = [], 0
    for fault in faults:
        text = str(fault)
        try:
            if repair:
                fault.mend(opened)
                text += "; put aside"
        except FileError as error:
            left += 1
            text += f"; not repaired: {error}"
        lines.append(text)
    left = left if repair else len(faults)
    lines.append(
        f"{counted(sound, 'artifact')} {'is' if sound == 1 else 'are'} sound, {counted(len(faults), 'problem')}"
    )
    if swept:
        lines.append(f"{counted(swept, 'leftover')} of dead processes removed")
    if left and not repair:
        lines.append("--repair puts damaged artifacts aside; the next run makes them again")
    data = {"store": str(opened.root), "sound": sound, "problems": list(map(str, faults))}
    answer(json, {**data, "repaired": len(faults) - left, "leftovers": swept}, lines)
    raise typer.Exit(1 if left else 0)


def gc(
    folders: Folders,
    older_than: Annotated[
        float | None,
        typer.Option("--older-than", parser=parse_seconds, metavar="TIME", help="What was not used for so long: 30d."),
    ] = None,
    max_size: Annotated[
        int | None,
        typer.Option(
            "--max-size", parser=parse_bytes, metavar="SIZE", help="Least recently used first, down to: 20GB."
        ),
    ] = None,
    unreachable_from: Annotated[
        list[str] | None,
        typer.Option("--unreachable-from", metavar="SUITE", help="What none of these suites needs; repeatable."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Remove it.")] = False,
    json: Json = False,
) -> None:
    """Show what can be removed, and remove it with --yes. That is leftovers, and artifacts that meet all conditions.

    What a run that is going on needs always stays. Tables of runs stay too.
    """
    from harness.store.maintenance import choose, remove

    opened = folders.open_store()
    keep = keys_of_suites(unreachable_from, folders.session()) if unreachable_from else None
    garbage = choose(opened, older_than, max_size, keep)
    if yes:
        garbage = remove(opened, garbage)
    data = {"removed": yes, "artifacts": garbage.artifacts, "leftovers": len(garbage.leftovers)}
    data |= {"bytes": garbage.size, "bytes_before": garbage.total, "in_use": garbage.in_use}
    answer(json, data, _garbage(garbage, removed=yes))


def _garbage(garbage: Garbage, *, removed: bool) -> Iterator[str]:
    infos, leftovers = garbage.artifacts, len(garbage.leftovers)
    yield from _kind_lines(infos)
    if not removed:
        yield from map(_line, infos)
    counts = f"{counted(len(infos), 'artifact')} and {counted(leftovers, 'leftover')}, {size_text(garbage.size)}"
    left = size_text(garbage.total - sum(info.size for info in infos))
    yield f"{'removed' if removed else 'would remove'} {counts}; artifacts then take {left}"
    if garbage.in_use:
        yield f"{counted(garbage.in_use, 'artifact')} stay: a run that is going on needs them"
    if not removed and (infos or leftovers):
        yield "nothing has been removed; --yes does it"


def push(target: Target, folders: Folders, names: Names = None, json: Json = False) -> None:
    """Copy artifacts and runs of this store to another one. Exit code 1 if one was refused."""
    _copy(target, names, folders, pushing=True, json=json)


def pull(target: Target, folders: Folders, names: Names = None, json: Json = False) -> None:
    """Copy artifacts and runs of another store to this one. Exit code 1 if one was refused."""
    _copy(target, names, folders, pushing=False, json=json)


def _copy(target: str, names: Sequence[str] | None, folders: Folders, *, pushing: bool, json: bool) -> NoReturn:
    from harness.store.exchange import Remote, pull, push

    opened = folders.open_store()
    remote = Remote(target, opened, exists=not pushing)
    known = {path.name for path in opened.runs.glob("*")} if pushing else remote.runs()
    runs = [name for name in names or known if name in known]
    suites = [name for name in names or () if name not in known]
    try:
        keys = keys_of_suites(suites, folders.session()) if names else None
    except UserError as error:
        where = "this store" if pushing else target
        raise UserError(f"{error}\n(a run of {where} may be named too; by its id)") from None
    copied = (push if pushing else pull)(opened, remote, keys, sorted(runs))
    answer(json, copied, _copied(copied, f"to {target}" if pushing else f"from {target}", pushing))
    raise typer.Exit(1 if copied.refused else 0)


def _copied(copied: Copied, where: str, pushing: bool) -> Iterator[str]:
    yield from (f"{what}: refused: {reason}" for what, reason in copied.refused.items())
    with_runs = f" and {counted(copied.runs, 'run')}" if copied.runs else ""
    there = f"; {counted(copied.present, 'artifact')} already there" if copied.present else ""
    count = f"{counted(copied.artifacts, 'artifact')}{with_runs}, {size_text(copied.bytes)}"
    yield f"{'pushed' if pushing else 'pulled'} {count} {where}{there}"


COMMANDS: Commands = {"size": size, "list": list_artifacts, "verify": verify, "gc": gc, "push": push, "pull": pull}
