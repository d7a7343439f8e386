"""Tables and texts of ``bench data``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.cli.output import counted, show_table, show_text
from harness.downloads.files import command
from harness.safe_io import size_text

if TYPE_CHECKING:
    from harness.downloads.survey import DataState, Verdict

_STYLES = {"present": "green", "missing": "yellow", "faulty": "red", "sealed": "dim"}
_NO_ENVIRONMENT = "-1"
_MOST = 12
"""Environments, entries of a fact and skipped rows that are shown; ``--json`` has all."""
_COMPARED = {
    "promised": "equal to what the source promises",
    "tested": "equal to the copy this code was tested with",
    "": "readable, no digest known",
    "fetched": "unchanged since fetched",
}


def settings_text(params: Mapping[str, Any]) -> str:
    """``measure=ec50 domain=assay``."""
    return " ".join(f"{name}={value}" for name, value in params.items())


def show_list(states: Sequence[DataState], root: Path) -> None:
    """Print the table of datasets."""
    show_text(f"data folder: {root}{'' if root.is_dir() else '  (not there yet; fetching makes it)'}")
    show_text()
    rows = [
        (
            state.name,
            settings_text(state.params),
            state.state,
            size_text(state.size) if state.files else "",
            _where(state, root),
        )
        for state in states
    ]
    show_table(("dataset", "settings", "data", "size", "where"), rows, {3}, _STYLES)
    missing = [state for state in states if state.state == "missing"]
    if missing:
        example = next((state for state in missing if state.fetchable), missing[0])
        show_text()
        show_text(f"to get what is missing, for example: `{command('fetch', example.name, example.params, root)}`")


def _where(state: DataState, root: Path) -> str:
    if state.state == "present" and state.files:
        common = Path(os.path.commonpath([str(path) for path in state.files]))
        files = f", {len(state.files)} files" if len(state.files) > 1 else ""
        return f"{common.relative_to(root) if common.is_relative_to(root) else common}{files}"
    if state.state == "missing":
        return "can be fetched" if state.fetchable else "to be put there by hand"
    return "named by its settings" if state.state == "own files" else state.reason.partition("\n")[0]


def show_verdict(name: str, params: Mapping[str, Any], verdict: Verdict) -> None:
    """Print the result of a check of one dataset's files."""
    title = f"{name} {settings_text(params)}".rstrip()
    if verdict.problems:
        show_text(f"{title}: {counted(len(verdict.problems), 'problem')}")
        for line in "\n".join(verdict.problems).splitlines():
            show_text(f"  {line}")
    elif verdict.files:
        kinds = list(verdict.files.values())
        compared = ", ".join(f"{kinds.count(kind)} {text}" for kind, text in _COMPARED.items() if kind in kinds)
        if len(set(kinds)) == 1:
            compared = _COMPARED[kinds[0]]
        show_text(f"{title}: {counted(len(kinds), 'file')} sound ({compared})")
    else:
        show_text(f"{title}: generated, reads no file")


def show_description(about: Mapping[str, Any], seconds: float) -> None:
    """Print a description that :func:`harness.run.dataset.describe` made; ``seconds`` is the time of its building."""
    task, files = about["task"], about["files"]
    tasks = f"{task['num_tasks']} tasks" if task["kind"] == "multitask" else f"{task['num_classes']} classes"
    place = f"{len(files)} files in {os.path.commonpath(files)}" if len(files) > 1 else "".join(files)
    lines = {
        "settings": settings_text(about["settings"]) or "defaults",
        "version": about["version"],
        "variant": about["variant"],
        "task": f"{task['kind']}, {tasks}, {task['metric']}",
        "features": f"nodes {_features(about['node_features'])}; edges {_features(about['edge_features'])}",
        "validation": f"{about['default_val']} ({about['validation']})",
        "data": place or "generated",
        "fingerprint": about["fingerprint"],
        "prepared": f"in {seconds:.1f} s" if seconds else "from the store",
    }
    show_text(about["dataset"])
    for name, text in lines.items():
        if text:
            show_text(f"  {name:<12} {text}")
    _show_splits(about["splits"], task["kind"])
    _show_sizes(about["splits"], about["size_classes"])
    for name, split in about["splits"].items():
        if isinstance(split["environments"], dict) and split["environments"]:
            _show_environments(name, split["environments"])
    facts = {name: _fact(value) for name, value in about["facts"].items() if name not in ("skipped", "splits")}
    texts = [f"{name.replace('_', ' ')} {text}" for name, text in facts.items() if text]
    show_text()
    if texts:
        show_text("facts: " + "; ".join(texts))
    for note in about["notes"]:
        show_text(f"note: {note}")
    skipped = about["skipped"]
    show_text(f"skipped rows: {len(skipped)}")
    for line in skipped[:_MOST]:
        show_text(f"  {line}")
    if len(skipped) > _MOST:
        show_text(f"  … and {len(skipped) - _MOST} more (--json lists all)")


def _features(declared: Mapping[str, Any]) -> str:
    sizes = declared["sizes"]
    if declared["kind"] == "none":
        return "none"
    return f"{sizes[0]} numeric" if declared["kind"] == "numeric" else f"{len(sizes)} categorical ({sum(sizes)} codes)"


def _show_splits(splits: Mapping[str, Any], task: str) -> None:
    rows = []
    for name, split in splits.items():
        sizes = (f"{s['min']}/{s['mean']:.1f}/{s['max']}" for s in (split["nodes"], split["edges"]))
        counts = split["environments"]
        environments = counts if isinstance(counts, str) else str(len(counts.keys() - {_NO_ENVIRONMENT}) or "none")
        rows.append((name, split["role"], str(split["graphs"]), *sizes, _labels(split["labels"], task), environments))
    labels = {"binary": "positive", "multiclass": "graphs per class"}.get(task, "labels")
    show_text()
    show_table(("split", "role", "graphs", "nodes", "edges", labels, "envs"), rows, {2, 3, 4}, _STYLES)
    show_text("nodes, edges: fewest/mean/most of a graph; envs: the dataset's own environments")


def _labels(labels: Any, task: str) -> str:
    if labels == "sealed":
        return "sealed"
    if task == "multitask":
        labelled, positive = sum(labels["labelled"]), sum(labels["positive"])
        return f"{labelled} labels, {_percent(positive, labelled)} positive"
    classes = labels["classes"]
    return f"{classes[1]} ({_percent(classes[1], sum(classes))})" if task == "binary" else " / ".join(map(str, classes))


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def _show_sizes(splits: Mapping[str, Any], bounds: Sequence[int]) -> None:
    used = [place for place in range(len(bounds)) if any(split["sizes"][place] for split in splits.values())]
    rows = []
    for place in range(used[0], used[-1] + 1):
        name = f"{bounds[place]}+" if place + 1 == len(bounds) else f"{bounds[place]}-{bounds[place + 1] - 1}"
        rows.append((name, *(str(split["sizes"][place]) for split in splits.values())))
    show_text()
    show_text("graphs by number of nodes:")
    show_table(("nodes", *splits), rows, set(range(1, 1 + len(splits))))


def _show_environments(split: str, counts: Mapping[str, int]) -> None:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], int(item[0])))
    shown = [f"{'none' if name == _NO_ENVIRONMENT else name}: {count}" for name, count in ordered[:_MOST]]
    rest = [count for _, count in ordered[_MOST:]]
    shown += [f"… {len(rest)} more with {sum(rest)} graphs"] if rest else []
    show_text()
    show_text(f"environments of {split}, id: graphs, largest first: {', '.join(shown)}")


def _fact(value: Any) -> str:
    """Return a fact on one line; of a table or list the first entries."""
    if isinstance(value, Mapping):
        entries = [f"{str(name).replace('_', ' ')}: {_fact(entry)}" for name, entry in value.items()]
    elif isinstance(value, list):
        entries = [_fact(entry) for entry in value]
    else:
        return "" if value is None else str(value)
    more = len(entries) - _MOST
    shown = ", ".join(entries[:_MOST]) + (f", … {more} more" if more > 0 else "")
    return f"({shown})" if entries else ""
