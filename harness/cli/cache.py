"""``bench cache``: what the store holds, checking it, and making room."""

from __future__ import annotations

from typing import Annotated

import typer

from harness.cli import options
from harness.cli.main import app
from harness.errors import UserError

cache = typer.Typer(
    help="Look at the store of cached results and make room.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(cache, name="cache")
_DAY = 86400.0


def bytes_text(count: float) -> str:
    """``1.5 GB``."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


@cache.command()
def size(store: options.StoreDir = None, json: options.Json = False) -> None:
    """Show how much room the store takes, by kind of stage."""
    from harness import upkeep
    from harness.cli.words import counted
    from harness.results import dumps
    from harness.store import Store

    opened = Store(store)
    kinds: dict[str, list[int]] = {}
    for info in upkeep.listing(opened):
        kinds.setdefault(info.kind, []).append(info.size)
    total, other = upkeep.size(opened.root), upkeep.other_sizes(opened)
    rest = total - sum(sum(found) for found in kinds.values()) - sum(other.values())
    other = {**other, "descriptions and records": max(rest, 0)}
    if json:
        sizes = {kind: {"artifacts": len(found), "bytes": sum(found)} for kind, found in kinds.items()}
        print(dumps({"store": str(opened.root), "bytes": total, "kinds": sizes, "other": other}), end="")
        return
    print(f"{opened.root}: {bytes_text(total)}")
    for kind, found in sorted(kinds.items()):
        print(f"  {kind:<26}{counted(len(found), 'artifact'):>16}{bytes_text(sum(found)):>12}")
    for what, taken in other.items():
        print(f"  {what:<26}{'':16}{bytes_text(taken):>12}")


@cache.command("list")
def list_artifacts(store: options.StoreDir = None, json: options.Json = False) -> None:
    """List every artifact, oldest first."""
    from dataclasses import asdict

    from harness import upkeep
    from harness.results import dumps
    from harness.store import Store

    found = upkeep.listing(Store(store))
    if json:
        print(dumps({"artifacts": [asdict(info) for info in found]}), end="")
        return
    for info in found:
        print(f"{info.key[:12]}  {bytes_text(info.size):>9}  {info.title}")


@cache.command()
def verify(store: options.StoreDir = None, json: options.Json = False) -> None:
    """Read every artifact in full; damaged ones are put aside and made again by the next run."""
    from harness import upkeep
    from harness.cli.words import counted
    from harness.results import dumps
    from harness.store import Store

    opened = Store(store)
    problems = upkeep.verify(opened)
    sound = len(upkeep.listing(opened))
    if json:
        print(dumps({"store": str(opened.root), "sound": sound, "problems": problems}), end="")
        raise typer.Exit(1 if problems else 0)
    for problem in problems:
        print(problem)
    print(f"{counted(sound, 'artifact')} {'is' if sound == 1 else 'are'} sound, {counted(len(problems), 'problem')}")
    raise typer.Exit(1 if problems else 0)


@cache.command()
def gc(
    store: options.StoreDir = None,
    unused_days: Annotated[
        float | None, typer.Option("--unused-days", help="Remove what was not opened for so many days.")
    ] = None,
    unreachable_from: Annotated[
        list[str] | None, typer.Option("--unreachable-from", help="Remove what no such suite needs; repeatable.")
    ] = None,
    data_dir: options.DataDir = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell.")] = False,
) -> None:
    """Remove debris, and what the given conditions condemn (all of them, where there are several)."""
    from harness import upkeep
    from harness.cli.words import counted
    from harness.runs.session import Options, open_session
    from harness.store import Store

    if unused_days is not None and unused_days < 0:
        raise UserError("--unused-days must not be negative")
    keep: set[str] | None = None
    for name in unreachable_from or ():
        session = open_session(name, Options(store, options.data_folder(data_dir)))
        keep = (keep or set()) | set(session.plan.producers)
    unused = None if unused_days is None else unused_days * _DAY
    removed = upkeep.collect(Store(store), keep=keep, unused_for=unused, dry_run=dry_run)
    verb = "would remove" if dry_run else "removed"
    counts = f"{counted(len(removed.artifacts), 'artifact')} and {counted(removed.debris, 'leftover')}"
    print(f"{verb} {counts}, {bytes_text(removed.size)}")
