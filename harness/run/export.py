"""Write what a run holds to a folder: results, predictions, weights, selected settings, an archive. No torch."""

from __future__ import annotations

import copy
import io
import re
import shutil
import sys
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final

from harness.errors import UserError
from harness.registry.planned_code import KeptCode
from harness.results.rows import RunResults, rows_to_csv
from harness.results.run_record import RESULTS, CellRecord, RunRecord
from harness.results.selection import ScoreTable, choose
from harness.run.collect import collect
from harness.run.suite_code import archived
from harness.safe_io import file_name, file_names, json_text, parse_json_as, parse_yaml, visible, write_text, yaml_text
from harness.store import Store

README = """\
Run {run} of suite {suite}, made with bench {version}{commit}.

    pip install equad-bench=={version}
    bench run suite.yaml

suite.yaml is complete: nothing of a protocol, bundle or fragment is needed. plugins/ holds the plugin files that it
names, datasets/ the code that its datasets name. Data files are not in here: put those that it names beside it, or into
the data folder; results.json has the fingerprint of each dataset, and `bench data describe` prints
the one of the files at hand. run.json has the versions of all packages and the machine. results.csv has one row per
cell, split and checkpoint; environment.txt the packages, as pip writes them.
"""
SELECTED_HEADER = """\
# The configurations that run {run} selected on {dataset}: {how}.
# Made from the run's own suite, with every setting in it; nothing is tuned here.
"""
_ABSOLUTE = re.compile(r"""(?<=["'\s=(`])/(?:[\w.@+~-]+/)+""")
"""The folders of an absolute path."""


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

    @cached_property
    def results(self) -> RunResults:
        """The results of the cells asked for, without the places of this machine."""
        ids = {cell.id for cell in self.cells}
        results = collect(self.record, self.store)
        results = results.with_rows(row for row in results.rows if row.cell in ids)
        return parse_json_as(RunResults, self.without_places(results.text()))

    def texts(self) -> dict[str, str]:
        """The results and the record as files, without the places of this machine.

        Of the suite's files those beyond all its folders go by their names.
        """
        suite = Path(self.record.suite_path)
        depth = len(suite.parts) - 2
        files = {
            Path(name).name if name.count("../") >= depth else name: digest
            for name, digest in self.record.suite_files.items()
        }
        record = replace(self.record, suite_path=suite.name, suite_files=files)
        return {
            RESULTS: self.results.text(),
            "results.csv": rows_to_csv(self.results.rows),
            "run.json": self.without_places(json_text(record, indent=None)),
        }

    def without_places(self, text: str) -> str:
        """Name files by the folder of the suite or of Python's modules that they are in, others without a folder."""
        folders = {str(Path(self.record.suite_path).parent), *map(str, filter(None, sys.path))} - {"/"}
        for folder in sorted(folders, key=len, reverse=True):
            text = text.replace(f"{folder}/", "")
        return _ABSOLUTE.sub("", text)

    def portable_suite(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """Return the run's resolved suite with the code that it names beside it, and that code by its place.

        Raises:
            UserError: the run does not keep a plugin file as it was, or code that a dataset names is gone or changed.
        """
        suite, files, plugins = self.suite(), dict[str, bytes](), []
        kept = KeptCode.read(self.folder)
        for number, plugin in enumerate(suite.get("plugins", ()), start=1):
            code = {name: kept.content(digest) for name, digest in kept.plugins.get(str(plugin), {}).items()}
            if not code or None in code.values():
                raise UserError(
                    f"run {self.record.id} does not keep the plugin {plugin} as it was; run the suite again (what is "
                    "in the store is not trained anew) and export that run"
                )
            plugins.append(f"plugins/{number:02d}/{next(iter(code))}")  # the plugin itself is the first of its files
            files |= {f"plugins/{number:02d}/{name}": data for name, data in code.items() if data is not None}
        files |= archived(self.record.provenance.get("named", ()), suite["datasets"])
        return suite | ({"plugins": plugins} if plugins else {}), files

    def suite(self) -> dict[str, Any]:
        """Read the run's resolved suite.

        Raises:
            UserError: it is not there or cannot be read.
        """
        path = self.folder / "suite.yaml"
        try:
            suite = parse_yaml(path.read_text(encoding="utf-8"))
            if not isinstance(suite, dict):
                raise ValueError("it is not a table")
        except (OSError, ValueError) as error:
            raise UserError(f"{path}: the run's suite cannot be read: {error}") from None
        return suite


def export_results(export: Export) -> list[Path]:
    """Write ``results.json``, ``results.csv`` and ``run.json``."""
    texts = export.texts()
    for name, text in texts.items():
        write_text(export.output / name, text)
    return [export.output / name for name in texts]


def export_parquet(export: Export) -> list[Path]:
    """Write ``results.parquet``: the flat table with typed columns."""
    import pyarrow as arrow
    from pyarrow import parquet

    rows = []
    for row in export.results.rows:
        tuned = json_text(row.hyperparameters, indent=None).strip()
        rows.append({**vars(row), "hyperparameters": tuned, "oracle": list(row.oracle)})
    path = export.output / "results.parquet"
    parquet.write_table(arrow.Table.from_pylist(rows), path)
    return [path]


def export_files(export: Export, folder: str, prefix: str) -> list[Path]:
    """Copy the files of each cell's training whose name starts with ``prefix``, as ``FOLDER/CELL-NAME``."""
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


def export_selected(export: Export) -> list[Path]:
    """Write ``selected-DATASET.yaml``: a suite for each dataset with every method as selected there, and its code.

    Methods whose search is unfinished or has no eligible configuration are left out, and the file says so.

    Raises:
        UserError: nothing has been selected yet; or see :meth:`Export.portable_suite`.
    """
    results, (resolved, code) = collect(export.record, export.store), export.portable_suite()
    paths = []
    names = file_names(dataset.label for dataset in results.datasets)
    for dataset in results.datasets:
        name = f"{resolved['name']}-selected-{names[dataset.label]}"
        text = _selected_suite(results, resolved, dataset.label, next(iter(dataset.test_splits), ""), name)
        if text:
            paths.append(export.output / f"selected-{names[dataset.label]}.yaml")
            write_text(paths[-1], export.without_places(text))
    if not paths:
        raise UserError(f"run {export.record.id} has selected nothing: no method has a result for every seed")
    for name, data in code.items():
        paths.append(export.output / name)
        paths[-1].parent.mkdir(parents=True, exist_ok=True)
        paths[-1].write_bytes(data)
    return paths


def _selected_suite(results: RunResults, resolved: Mapping[str, Any], label: str, split: str, name: str) -> str:
    """Write the suite of a dataset with nothing left to tune; empty where nothing was selected."""
    scores = ScoreTable(results)
    methods: dict[str, Any] = {}
    lacking, rules = [], set()
    for entry in (entry for entry in results.entries if entry.dataset == label):
        choice = choose(scores, entry, split)
        if choice.config_id is None or choice.provisional:
            lacking.append(entry.method)
            continue
        rules.add(entry.select.config)
        methods[entry.method] = _fixed(resolved["methods"][entry.method], entry.configurations[choice.config_id])
    if not methods:
        return ""
    left_out = ("budget", "tune", "analyses")
    report = dict(resolved.get("report", {}))
    if report.get("reference") not in methods:
        report.pop("reference", None)
    datasets = {label: resolved["datasets"][label]}
    suite = {**resolved, "name": file_name(name), "methods": methods, "datasets": datasets, "report": report}
    suite = {name: value for name, value in suite.items() if name not in left_out and value != {}}
    text = SELECTED_HEADER.format(run=results.run, dataset=visible(label), how=", ".join(sorted(rules)))
    if lacking:
        text += f"# Left out, as their search has not finished or has no result: {', '.join(lacking)}.\n"
    return text + yaml_text(suite)


def _fixed(method: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a method's table with tuned values in their places and without ``tune`` (and ``pool`` left as it is).

    Values of environments that the method does not name, but the dataset or its component, stay as a choice of one.
    """
    table: dict[str, Any] = copy.deepcopy({name: value for name, value in method.items() if name != "tune"})
    for path, value in values.items():
        head, _, name = path.partition(".")
        if head == "envs" and "envs" not in method:
            table.setdefault("tune", {})[path] = [value]
            continue
        part = table.setdefault(head, {})
        backbone = part.get("backbone") if head == "model" else None
        target = backbone if isinstance(backbone, dict) and name in backbone else part
        target[name] = value
    return table


def export_archive(export: Export) -> list[Path]:
    """Write ``RUN.tar.gz``: suite, plugin files, named code, results and versions: all to run it again but the data.

    Raises:
        UserError: see :meth:`Export.portable_suite`.
    """
    run, (suite, files) = export.record.id, export.portable_suite()
    versions = export.record.provenance.get("versions", {})
    texts = {
        "suite.yaml": export.without_places(yaml_text(suite)),
        **export.texts(),
        "environment.txt": _requirements(versions),
        "README.txt": README.format(
            run=run,
            suite=export.results.suite,
            version=versions.get("equad-bench", ""),
            commit=_commit(export.record.provenance.get("repository")),
        ),
    }
    files |= {name: text.encode() for name, text in texts.items()}
    target = export.output / f"{run}.tar.gz"
    part = target.with_suffix(".part")
    with tarfile.open(part, "w:gz") as packed:
        for name, data in files.items():
            info = tarfile.TarInfo(f"{run}/{name}")
            info.size = len(data)
            packed.addfile(info, io.BytesIO(data))
    part.replace(target)
    return [target]


def _commit(repository: Mapping[str, Any] | None) -> str:
    if not repository:
        return ""
    return f", commit {repository['commit']}{' with changes to its files' if repository['changed'] else ''}"


def _requirements(versions: Mapping[str, Any]) -> str:
    """List the packages' versions as pip reads them; a build's own suffix (``+cpu``) is not on any index."""
    lines = [f"{name}=={str(version).partition('+')[0]}" for name, version in versions.items() if name != "python"]
    return "".join(f"{line}\n" for line in [f"# Python {versions.get('python', '')}", *lines])


WRITERS: Final[Mapping[str, Callable[[Export], list[Path]]]] = {
    "results": export_results,
    "parquet": export_parquet,
    "predictions": partial(export_files, folder="predictions", prefix="predictions"),
    "checkpoints": partial(export_files, folder="checkpoints", prefix="weights-"),
    "suite": export_selected,
    "archive": export_archive,
}
