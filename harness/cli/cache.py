"""``bench cache``: what the store holds, checking it, and making room."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli import options
from harness.cli.main import app
from harness.errors import UserError
from harness.safe_io import size_text, visible

if TYPE_CHECKING:
    from harness.store.checking import Problem

cache = typer.Typer(
    help="Look at the store of cached results and make room.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(cache, name="cache")


@cache.command()
def size(store: options.StoreDir = None, json: options.Json = False) -> None:
    """Show how much room the store takes, by kind of stage."""
    from harness.cli.words import counted
    from harness.results.rows import dumps
    from harness.store import listing as upkeep
    from harness.store.store import Store

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
    print(f"{opened.root}: {size_text(total)}")
    for kind, found in sorted(kinds.items()):
        print(f"  {kind:<26}{counted(len(found), 'artifact'):>16}{size_text(sum(found)):>12}")
    for what, taken in other.items():
        print(f"  {what:<26}{'':16}{size_text(taken):>12}")


@cache.command("list")
def list_artifacts(store: options.StoreDir = None, json: options.Json = False) -> None:
    """List every artifact, oldest first."""
    from dataclasses import asdict

    from harness.results.rows import dumps
    from harness.store import listing as upkeep
    from harness.store.store import Store

    found = upkeep.listing(Store(store))
    if json:
        print(dumps({"artifacts": [asdict(info) for info in found]}), end="")
        return
    for info in found:
        print(visible(f"{info.key[:12]}  {size_text(info.size):>9}  {info.title}"))


@cache.command()
def verify(
    store: options.StoreDir = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Put damaged artifacts aside, so that the next run makes them again.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Read the whole store and tell what is damaged. Exit code 0 where all is sound, or has been repaired, else 1."""
    from harness.cli.words import counted
    from harness.results.rows import dumps
    from harness.store.checking import inspect
    from harness.store.store import Store

    opened = Store(store)
    problems = list(inspect(opened))
    sound = len(opened.artifact_keys()) - sum(problem.damaged for problem in problems)
    swept = opened.sweep() if repair and opened.root.exists() else 0
    left = 0
    for problem in problems:
        cured = _mended(problem) if repair else ""
        left += not repair or cured.startswith("not repaired")
        if not json:
            print(visible(f"{problem}{f'; {cured}' if cured else ''}"))
    code = 1 if left else 0
    if json:
        texts = [str(problem) for problem in problems]
        data = {"store": str(opened.root), "sound": sound, "problems": texts, "repaired": len(problems) - left}
        print(dumps({**data, "leftovers": swept}), end="")
        raise typer.Exit(code)
    print(f"{counted(sound, 'artifact')} {'is' if sound == 1 else 'are'} sound, {counted(len(problems), 'problem')}")
    if swept:
        print(f"{counted(swept, 'leftover')} of dead processes removed")
    if left and not repair:
        print("--repair puts damaged artifacts aside; the next run makes them again")
    raise typer.Exit(code)


def _mended(problem: Problem) -> str:
    from harness.store.store import StoreError

    try:
        problem.mend()
    except (OSError, StoreError) as error:
        return f"not repaired: {error}"
    return problem.cure


@cache.command()
def gc(
    store: options.StoreDir = None,
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
    data_dir: options.DataDir = None,
    plugin: options.Plugins = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Remove it.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell; the default.")] = False,
    json: options.Json = False,
) -> None:
    """Tell what may go, and remove it with --yes: leftovers, and artifacts that fit all conditions given.

    What a run that is going on needs always stays. Tables of runs stay too.
    """
    from harness.cli import cache_screens
    from harness.cli.cache_names import keys_of_suites
    from harness.store.collecting import Rules, choose, remove
    from harness.store.references import keys_of_runs
    from harness.store.store import Store

    if yes and dry_run:
        raise UserError("--yes and --dry-run exclude each other")
    if forget_runs and not unreachable_from:
        raise UserError("--forget-runs has no meaning without --unreachable-from")
    opened = Store(store)
    age = options.parse_seconds(older_than, "--older-than")
    if age is not None and age < 0:
        raise UserError("--older-than must not be negative")
    keep = None
    if unreachable_from:
        given = options.session_options(store=store, data_dir=data_dir, plugins=plugin)
        keep = keys_of_suites(unreachable_from, given) | (set() if forget_runs else keys_of_runs(opened))
    choice = choose(opened, Rules(age, options.parse_bytes(max_size, "--max-size"), keep))
    removed = remove(opened, choice) if yes else None
    print(cache_screens.collection_json(choice, removed) if json else cache_screens.collection(choice, removed), end="")
