"""Plugins to write for tests of the registry, the index and source digests, and rows of a made-up catalog."""

from __future__ import annotations

from pathlib import Path

from harness.hparams import HParam
from harness.registry.catalog import Entry
from harness.store import digest

TEMPLATE = '''"""A plugin of the tests."""

from harness import Dataset, hookimpl, hparam
{imports}

class Made(Dataset):
    """Graphs of {name}."""

    name = "{name}"
    size: int = hparam({size}, low=1, search=[1, 2], help="how many")


@hookimpl
def bench_register(register):
    register(Made)
'''


def entry(kind: str, name: str, *hparams: HParam, **traits: object) -> Entry:
    """A row of a made-up catalog."""
    declared = {item.name: item for item in hparams}
    file = f"/made/up/{name}.py"
    return Entry(kind, name, "made_up", name.title(), file, "built-in", digest(name), declared, "", traits)


def write_plugin(path: Path, name: str, *, size: int = 3, imports: str = "") -> Path:
    """A single-file plugin with one dataset component; it needs no torch to be described."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(TEMPLATE.format(name=name, size=size, imports=imports))
    return path


def install(site: Path, distribution: str, module: str) -> None:
    """Pretend that a distribution with one plugin entry point is installed in a folder on ``sys.path``."""
    info = site / f"{distribution.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[equad_bench]\nmine = {module}\n")
