"""Write what a run holds to a folder: results, predictions, weights, selected settings, an archive. No torch."""

from __future__ import annotations

import io
import shutil
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from harness.errors import UserError
from harness.registry.planned_code import KeptCode
from harness.results.rows import RunResults, rows_to_csv, write_text
from harness.results.run_record import CellRecord, RunRecord
from harness.run.collect import collect
from harness.run.selected import resolved_suite, selected_suites
from harness.run.suite_code import archived
from harness.safe_io import file_name
from harness.store.store import Store

RERUN = """\
Run {run} of suite {suite}, made with bench {version}.

    pip install equad-bench=={version}
    bench run suite.yaml

suite.yaml is complete: nothing of a protocol, bundle or fragment is needed. plugins/ holds the plugin files that it
names, datasets/ the code that its datasets name. Data files are not in here: put those that it names beside it, or into
the data folder; results.json has the fingerprint of each dataset, and `bench data describe` prints
the one of the files at hand. run.json has the versions of all packages and the machine. results.csv has one row per
cell, split and checkpoint; environment.txt the packages, as pip writes them.
"""


@dataclass(frozen=True)
class Export:
    """One export: the run, the cells asked for, where from and where to."""

    record: RunRecord
    cells: Sequence[CellRecord]
    store: Store
    output: Path

    @property
    def folder(self) -> Path:
        """The run's own folder."""
        return self.store.runs / self.record.id

    def results(self) -> RunResults:
        """The results of the cells asked for."""
        ids = {cell.id for cell in self.cells}
        results = collect(self.record, self.store)
        return results.with_rows(row for row in results.rows if row.cell in ids)


def results(export: Export) -> list[Path]:
    """``results.json``, ``results.csv`` and ``run.json``."""
    found = export.results()
    paths = [export.output / name for name in ("results.json", "results.csv", "run.json")]
    found.save(paths[0])
    write_text(paths[1], rows_to_csv(found.rows))
    export.record.save(export.output)
    return paths


def parquet(export: Export) -> list[Path]:
    """``results.parquet``: the flat table with typed columns.

    Raises:
        UserError: pyarrow is missing.
    """
    try:
        import pyarrow as arrow
        from pyarrow import parquet as files
    except ImportError:
        raise UserError("--what parquet needs pyarrow: pip install 'equad-bench[parquet]'") from None
    from harness.results.rows import dumps

    rows = []
    for row in export.results().rows:
        tuned = dumps(dict(row.hyperparameters), indent=None).strip()
        rows.append({**vars(row), "hyperparameters": tuned, "oracle": list(row.oracle)})
    path = export.output / "results.parquet"
    files.write_table(arrow.Table.from_pylist(rows), path)
    return [path]


def selected(export: Export) -> list[Path]:
    """``selected-DATASET.yaml``: a suite for each dataset with every method as it was selected there.

    Raises:
        UserError: nothing has been selected yet.
    """
    found = selected_suites(collect(export.record, export.store), resolved_suite(export.folder))
    if not found:
        raise UserError(f"run {export.record.id} has selected nothing: no method has a result for every seed")
    paths = []
    for label, text in found.items():
        path = export.output / f"selected-{file_name(label)}.yaml"
        write_text(path, text)
        paths.append(path)
    return paths


def archive(export: Export) -> list[Path]:
    """``RUN.tar.gz``: suite, plugin files, named code, results and versions: everything to run it again but the data.

    Raises:
        UserError: the run does not keep a plugin file as it was, or code that a dataset names is gone or has changed.
    """
    found = export.results()
    suite = resolved_suite(export.folder)
    plugins = [str(name) for name in suite.get("plugins", ())]
    codes = {f"plugins/{number:02d}": _code(export, name) for number, name in enumerate(plugins, start=1)}
    named = archived(export.record.provenance.get("named", ()), suite["datasets"])
    files: dict[str, bytes] = {
        "suite.yaml": _suite_text(suite, [f"{folder}/{next(iter(code))}" for folder, code in codes.items()]),
        "results.csv": rows_to_csv(found.rows).encode(),
        "environment.txt": _requirements(export.record).encode(),
        "README.txt": RERUN.format(run=export.record.id, suite=found.suite, version=_version(export.record)).encode(),
    }
    files |= named
    for folder, code in codes.items():
        files |= {f"{folder}/{name}": data for name, data in code.items()}
    for name in ("run.json", "results.json"):
        if (export.folder / name).is_file():
            files[name] = (export.folder / name).read_bytes()
    target = export.output / f"{export.record.id}.tar.gz"
    _pack(target, export.record.id, files)
    return [target]


def _code(export: Export, plugin: str) -> dict[str, bytes]:
    """A plugin file and what it imports beside it, as the run had them; the plugin file first.

    Raises:
        UserError: the run does not keep them.
    """
    kept = KeptCode.read(export.folder)
    code = {name: kept.content(digest) for name, digest in kept.plugins.get(plugin, {}).items()}
    if not code or None in code.values():
        raise UserError(
            f"run {export.record.id} does not keep the plugin {plugin} as it was; run the suite again (what is in the "
            "store is not trained anew) and export that run"
        )
    return {name: data for name, data in code.items() if data is not None}


def _suite_text(suite: Mapping[str, object], plugins: Sequence[str]) -> bytes:
    import yaml

    inside = {**suite, "plugins": list(plugins)} if plugins else dict(suite)
    return yaml.safe_dump(inside, sort_keys=False, allow_unicode=True).encode()


def _version(record: RunRecord) -> str:
    return str(record.provenance.get("versions", {}).get("equad-bench", ""))


def _requirements(record: RunRecord) -> str:
    """The packages' versions as pip reads them; a build's own suffix (``+cpu``) is not on any index."""
    versions = record.provenance.get("versions", {})
    lines = [f"{name}=={str(version).partition('+')[0]}" for name, version in versions.items() if name != "python"]
    return "".join(f"{line}\n" for line in [f"# Python {versions.get('python', '')}", *lines])


def _pack(target: Path, top: str, files: Mapping[str, bytes]) -> None:
    """A gzipped tar of files below one folder, written whole or not at all."""
    part = target.with_suffix(".part")
    with tarfile.open(part, "w:gz") as packed:
        for name, data in files.items():
            entry = tarfile.TarInfo(f"{top}/{name}")
            entry.size = len(data)
            packed.addfile(entry, io.BytesIO(data))
    part.replace(target)


def _copied(export: Export, prefix: str, folder: str) -> list[Path]:
    """Files of each cell's training whose name starts with ``prefix``."""
    written = []
    for cell in export.cells:
        if not export.store.has(cell.train):
            continue
        artifact = export.store.open(cell.train)
        for name in artifact.meta.files:
            if name.startswith(prefix):
                target = export.output / folder / f"{cell.id}-{name}"
                target.parent.mkdir(exist_ok=True)
                shutil.copyfile(artifact.path(name), target)
                written.append(target)
    return written


def predictions(export: Export) -> list[Path]:
    """``predictions/CELL-predictions.safetensors``: logits of every split under every checkpoint rule."""
    return _copied(export, "predictions", "predictions")


def checkpoints(export: Export) -> list[Path]:
    """``checkpoints/CELL-weights-RULE.safetensors``."""
    return _copied(export, "weights-", "checkpoints")


WRITERS: Mapping[str, Callable[[Export], list[Path]]] = MappingProxyType(
    {
        "results": results,
        "parquet": parquet,
        "predictions": predictions,
        "checkpoints": checkpoints,
        "suite": selected,
        "archive": archive,
    }
)
