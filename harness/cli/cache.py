"""``bench cache``: list and verify the store, make room, copy from and to other stores."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from harness.cli.completion import complete_suites
from harness.cli.options import Commands, Folders, Json, StoreDir, SuiteOptions, parse_bytes, parse_seconds
from harness.cli.output import counted, print_json
from harness.errors import FileError, UserError
from harness.safe_io import size_text, visible

if TYPE_CHECKING:
    from harness.run.session import Options
    from harness.store import Store
    from harness.store.gc import Garbage, Info

_SHOWN = 12

Target = Annotated[
    str, typer.Argument(help="A folder, or a URL that fsspec understands, e.g. s3://bucket/bench.", metavar="TARGET")
]
Names = Annotated[
    list[str] | None,
    typer.Argument(
        help="Suites, and ids of runs; everything if absent.",
        metavar="[SUITE|RUN]...",
        autocompletion=complete_suites,
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
    from harness.store.gc import disk_size, listing

    opened = Store(store)
    infos, total = listing(opened), disk_size(opened.root)
    leftovers = sum(disk_size(opened.root / name) for name in ("debris", "tmp"))
    other = {"runs": disk_size(opened.runs), "leftovers": leftovers}
    rest = total - sum(info.size for info in infos) - sum(other.values())
    other["descriptions and records"] = max(rest, 0)
    if json:
        kinds = {kind: {"artifacts": count, "bytes": taken} for kind, count, taken in _by_kind(infos)}
        print_json({"store": str(opened.root), "bytes": total, "kinds": kinds, "other": other})
        return
    print("\n".join([f"{opened.root}: {size_text(total)}", *_kind_lines(infos)]))
    for what, taken in other.items():
        print(f"  {what:<26}{'':16}{size_text(taken):>12}")


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
    from dataclasses import asdict

    from harness.store import Store
    from harness.store.gc import listing

    infos = listing(Store(store))
    if json:
        print_json({"artifacts": [asdict(info) for info in infos]})
        return
    for info in infos:
        print(visible(f"{info.key[:12]}  {size_text(info.size):>9}  {info.title}"))


def verify(
    store: StoreDir = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Put damaged artifacts aside, so that the next run makes them again.")
    ] = False,
    json: Json = False,
) -> None:
    """Read the whole store and report damage. Exit code 0 if all is sound or repaired, else 1."""
    from harness.store import Store, sweep
    from harness.store.verify import inspect

    opened = Store(store)
    faults = list(inspect(opened))
    sound = len(opened.artifact_keys()) - sum(fault.damaged for fault in faults)
    swept = sweep(opened.root) if repair and opened.root.exists() else 0
    left = 0
    for fault in faults:
        done = ""
        if repair:
            try:
                fault.mend(opened)
                done = f"; {fault.cure}"
            except FileError as error:
                done = f"; not repaired: {error}"
        left += not repair or done.startswith("; not")
        if not json:
            print(visible(f"{fault}{done}"))
    if json:
        problems = [str(fault) for fault in faults]
        data = {"store": str(opened.root), "sound": sound, "problems": problems, "repaired": len(faults) - left}
        print_json({**data, "leftovers": swept})
        raise typer.Exit(1 if left else 0)
    print(f"{counted(sound, 'artifact')} {'is' if sound == 1 else 'are'} sound, {counted(len(faults), 'problem')}")
    if swept:
        print(f"{counted(swept, 'leftover')} of dead processes removed")
    if left and not repair:
        print("--repair puts damaged artifacts aside; the next run makes them again")
    raise typer.Exit(1 if left else 0)


def gc(
    folders: Folders,
    older_than: Annotated[
        str | None, typer.Option("--older-than", metavar="TIME", help="What was not used for so long: 30d, 12h.")
    ] = None,
    max_size: Annotated[
        str | None,
        typer.Option("--max-size", metavar="SIZE", help="Least recently used first, until no more is left: 20GB."),
    ] = None,
    unreachable_from: Annotated[
        list[str] | None,
        typer.Option(
            "--unreachable-from", metavar="SUITE", help="What neither these suites nor runs need; repeatable."
        ),
    ] = None,
    forget_runs: Annotated[
        bool, typer.Option("--forget-runs", help="With --unreachable-from: also what only runs need.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Remove it.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell; the default.")] = False,
    json: Json = False,
) -> None:
    """Show what can be removed, and remove it with --yes: leftovers, and artifacts that meet all conditions.

    What a run that is going on needs always stays. Tables of runs stay too.
    """
    from harness.store.gc import Rules, choose, keys_of_runs, remove

    if yes and dry_run:
        raise UserError("--yes and --dry-run exclude each other")
    if forget_runs and not unreachable_from:
        raise UserError("--forget-runs has no meaning without --unreachable-from")
    opened = folders.open_store()
    age = parse_seconds(older_than, "--older-than")
    if age is not None and age < 0:
        raise UserError("--older-than must not be negative")
    keep = None
    if unreachable_from:
        keep = keys_of_suites(unreachable_from, folders.session()) | (set() if forget_runs else keys_of_runs(opened))
    garbage = choose(opened, Rules(age, parse_bytes(max_size, "--max-size"), keep))
    if yes:
        garbage = remove(opened, garbage)
    _show_garbage(garbage, removed=yes, json=json)


def _show_garbage(garbage: Garbage, *, removed: bool, json: bool) -> None:
    """Print what goes, or has gone, by kind, with a total."""
    from dataclasses import asdict

    infos, leftovers = garbage.artifacts, len(garbage.leftovers)
    if json:
        data = {"removed": removed, "artifacts": [asdict(info) for info in infos], "leftovers": leftovers}
        more = {"bytes": garbage.size, "bytes_before": garbage.total, "in_use": garbage.in_use}
        print_json({**data, **more})
        return
    lines = _kind_lines(infos)
    if not removed:
        now = time.time()
        lines += [
            f"  {info.key[:12]}  {size_text(info.size):>9}  {_ago(now - info.used):>8}  {info.title}"
            for info in infos[:_SHOWN]
        ]
        lines += [f"  … and {len(infos) - _SHOWN} more"] if len(infos) > _SHOWN else []
    counts = f"{counted(len(infos), 'artifact')} and {counted(leftovers, 'leftover')}, {size_text(garbage.size)}"
    left = size_text(garbage.total - sum(info.size for info in infos))
    lines.append(f"{'removed' if removed else 'would remove'} {counts}; artifacts then take {left}")
    if garbage.in_use:
        lines.append(f"{counted(garbage.in_use, 'artifact')} stay: a run that is going on needs them")
    if not removed and (infos or leftovers):
        lines.append("nothing has been removed; --yes does it")
    print(visible("\n".join(lines)))


def _ago(seconds: float) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return "now"


def push(
    target: Target,
    chosen: SuiteOptions,
    folders: Folders,
    names: Names = None,
    json: Json = False,
) -> None:
    """Copy artifacts of this store to another one. Exit code 1 if one was refused."""
    _copy(target, names, folders.session(chosen), pushing=True, json=json)


def pull(
    target: Target,
    chosen: SuiteOptions,
    folders: Folders,
    names: Names = None,
    json: Json = False,
) -> None:
    """Copy what suites need from another store. Exit code 1 if one was refused."""
    _copy(target, names, folders.session(chosen), pushing=False, json=json)


def _copy(target: str, names: Sequence[str] | None, given: Options, *, pushing: bool, json: bool) -> NoReturn:
    from dataclasses import asdict

    from harness.store import Store
    from harness.store.exchange import Remote, pull, push

    opened = Store(given.store)
    remote = Remote(target, opened, exists=not pushing)
    known = {path.name for path in opened.runs.glob("*")} if pushing else remote.runs()
    names = [_latest_run(name, opened) for name in names or ()] if pushing else names
    runs = [name for name in names or known if name in known]
    try:
        keys = keys_of_suites([name for name in names if name not in known], given) if names else None
    except UserError as error:
        where = "this store" if pushing else target
        raise UserError(f"{error}\n(a run of {where} may be named too; by its id)") from None
    copied = (push if pushing else pull)(opened, remote, keys, sorted(runs))
    if json:
        print_json(asdict(copied))
        raise typer.Exit(1 if copied.refused else 0)
    for what, reason in copied.refused.items():
        print(visible(f"{what}: refused: {reason}"))
    with_runs = f" and {counted(copied.runs, 'run')}" if copied.runs else ""
    there = f"; {counted(copied.present, 'artifact')} already there" if copied.present else ""
    count = f"{counted(copied.artifacts, 'artifact')}{with_runs}, {size_text(copied.bytes)}"
    print(visible(f"pushed {count} to {target}{there}" if pushing else f"pulled {count} from {target}{there}"))
    raise typer.Exit(1 if copied.refused else 0)


def _latest_run(name: str, store: Store) -> str:
    """Return the id of the latest run of a suite that the store knows by this name alone; else the name."""
    from harness.run.find import all_runs, runs_of
    from harness.suite import installed_suites

    if Path(name).exists() or name in installed_suites():
        return name
    runs = runs_of(name, all_runs(store))
    return runs[-1].id if runs else name


COMMANDS: Commands = {
    "size": size,
    "list": list_artifacts,
    "verify": verify,
    "gc": gc,
    "push": push,
    "pull": pull,
}
