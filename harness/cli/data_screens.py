"""What ``bench data`` prints."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.cli.screens import show_table, show_text
from harness.downloads.files import command
from harness.safe_io import size_text

if TYPE_CHECKING:
    from harness.downloads.survey import DataState, Verdict

_STYLES = {"present": "green", "missing": "yellow", "faulty": "red", "sealed": "dim"}
_NO_ENVIRONMENT = "-1"
_MOST_ENTRIES = 12
_MOST_ENVIRONMENTS = 12
_MOST_TASKS = 20
_MOST_SKIPPED = 10
_COMPARED = {
    "promised": "equal to what the source promises",
    "tested": "equal to the copy this code was tested with",
    "": "readable, no digest known",
    "fetched": "unchanged since fetched",
}


def settings_text(params: Mapping[str, Any]) -> str:
    """``measure=ec50 domain=assay``."""
    return " ".join(f"{name}={value}" for name, value in params.items())


def list_json(state: DataState, root: Path) -> dict[str, Any]:
    """One dataset of the list as JSON."""
    downloads = [
        {"path": str(root / item.path), "url": item.url, "how": item.how, "bytes": item.size, "sha256": item.sha256}
        for item in state.downloads
    ]
    return {
        "dataset": state.name,
        "settings": dict(state.params),
        "state": state.state,
        "bytes": state.size,
        "files": [str(path) for path in state.files],
        "downloads": downloads,
        "reason": state.reason,
    }


def show_list(states: Sequence[DataState], root: Path) -> None:
    """The table of datasets."""
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
    if state.state == "own files":
        return "named by its settings"
    return state.reason.partition("\n")[0]


def verdict_json(name: str, params: Mapping[str, Any], verdict: Verdict) -> dict[str, Any]:
    """What checking a dataset found, as JSON."""
    files = [{"path": path, "compared": whose or None} for path, whose in verdict.files.items()]
    return {"dataset": name, "settings": dict(params), "files": files, "problems": verdict.problems}


def show_verdict(verdicts: Sequence[tuple[str, Mapping[str, Any], Verdict]], root: Path) -> None:
    """What checking found: a line for each dataset, then its problems."""
    if not verdicts:
        show_text(f"no data files in {root}: `bench data list` says how to get them")
    for name, params, verdict in verdicts:
        title = f"{name} {settings_text(params)}".rstrip()
        if verdict.problems:
            show_text(f"{title}: {len(verdict.problems)} problem{'s' if len(verdict.problems) > 1 else ''}")
            for problem in verdict.problems:
                for line in problem.splitlines():
                    show_text(f"  {line}")
            continue
        if not verdict.files:
            show_text(f"{title}: generated, reads no file")
            continue
        show_text(
            f"{title}: {len(verdict.files)} file{'s' if len(verdict.files) > 1 else ''} sound ({_compared(verdict)})"
        )


def _compared(verdict: Verdict) -> str:
    whose = list(verdict.files.values())
    kinds = [kind for kind in _COMPARED if kind in whose]
    if len(kinds) == 1:
        return _COMPARED[kinds[0]]
    return ", ".join(f"{whose.count(kind)} {_COMPARED[kind]}" for kind in kinds)


def show_description(told: Mapping[str, Any], seconds: float) -> None:
    """All that may be told of a dataset."""
    _show_head(told, seconds)
    _show_splits(told)
    _show_tasks(told)
    _show_sizes(told)
    _show_environments(told)
    _show_facts(told)
    for note in told["notes"]:
        show_text(f"note: {note}")
    skipped = told["skipped"]
    show_text(f"skipped rows: {len(skipped)}")
    for line in skipped[:_MOST_SKIPPED]:
        show_text(f"  {line}")
    if len(skipped) > _MOST_SKIPPED:
        show_text(f"  … and {len(skipped) - _MOST_SKIPPED} more (--json lists all)")


def _show_head(told: Mapping[str, Any], seconds: float) -> None:
    task = told["task"]
    tasks = f"{task['num_tasks']} tasks" if task["kind"] == "multitask" else f"{task['num_classes']} classes"
    lines = {
        "settings": settings_text(told["settings"]) or "defaults",
        "version": told["version"],
        "variant": told["variant"],
        "task": f"{task['kind']}, {tasks}, {task['metric']}",
        "features": f"nodes {_features(told['node_features'])}; edges {_features(told['edge_features'])}",
        "validation": f"{told['default_val']} ({told['validation']})",
        "data": _files_text(told["files"]),
        "fingerprint": told["fingerprint"],
        "prepared": f"in {seconds:.1f} s" if seconds else "from the store",
    }
    show_text(told["dataset"])
    for name, text in lines.items():
        if text:
            show_text(f"  {name:<12} {text}")


def _features(declared: Mapping[str, Any]) -> str:
    sizes = declared["sizes"]
    if declared["kind"] == "none":
        return "none"
    return f"{sizes[0]} numeric" if declared["kind"] == "numeric" else f"{len(sizes)} categorical ({sum(sizes)} codes)"


def _files_text(files: Sequence[str]) -> str:
    if len(files) < 2:
        return files[0] if files else "generated"
    return f"{len(files)} files in {os.path.commonpath(files)}"


def _show_splits(told: Mapping[str, Any]) -> None:
    rows = []
    for name, split in told["splits"].items():
        nodes, edges = split["nodes"], split["edges"]
        rows.append(
            (
                name,
                split["role"],
                str(split["graphs"]),
                f"{nodes['min']}/{nodes['mean']:.1f}/{nodes['max']}",
                f"{edges['min']}/{edges['mean']:.1f}/{edges['max']}",
                _labels(split, told["task"]),
                _environment_count(split),
            )
        )
    labels = {"binary": "positive", "multiclass": "graphs per class"}.get(told["task"]["kind"], "labels")
    show_text()
    show_table(("split", "role", "graphs", "nodes", "edges", labels, "envs"), rows, {2, 3, 4}, _STYLES)
    show_text("nodes, edges: fewest/mean/most of a graph; envs: the dataset's own environments")


def _labels(split: Mapping[str, Any], task: Mapping[str, Any]) -> str:
    labels = split["labels"]
    if labels == "sealed":
        return "sealed"
    if task["kind"] == "multitask":
        labelled, positive = sum(labels["labelled"]), sum(labels["positive"])
        return f"{labelled} labels, {_percent(positive, labelled)} positive"
    classes = labels["classes"]
    if task["kind"] == "binary":
        return f"{classes[1]} ({_percent(classes[1], sum(classes))})"
    return " / ".join(map(str, classes))


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def _environment_count(split: Mapping[str, Any]) -> str:
    found = split["environments"]
    return found if isinstance(found, str) else str(len(found.keys() - {_NO_ENVIRONMENT}) or "none")


def _show_tasks(told: Mapping[str, Any]) -> None:
    if told["task"]["kind"] != "multitask":
        return
    open_splits = {name: split["labels"] for name, split in told["splits"].items() if split["labels"] != "sealed"}
    count = told["task"]["num_tasks"]
    rows = [
        (
            str(task + 1),
            *(f"{labels['positive'][task]} of {labels['labelled'][task]}" for labels in open_splits.values()),
        )
        for task in range(min(count, _MOST_TASKS))
    ]
    show_text()
    show_text("positive of labelled, by task:")
    show_table(("task", *open_splits), rows, set(range(1 + len(open_splits))))
    if count > _MOST_TASKS:
        show_text(f"… and {count - _MOST_TASKS} more tasks (--json lists all)")


def _show_sizes(told: Mapping[str, Any]) -> None:
    bounds, splits = told["size_classes"], told["splits"]
    used = [place for place in range(len(bounds)) if any(split["sizes"][place] for split in splits.values())]
    rows = []
    for place in range(used[0], used[-1] + 1):
        last = place + 1 == len(bounds)
        name = f"{bounds[place]}+" if last else f"{bounds[place]}-{bounds[place + 1] - 1}"
        rows.append((name, *(str(split["sizes"][place]) for split in splits.values())))
    show_text()
    show_text("graphs by number of nodes:")
    show_table(("nodes", *splits), rows, set(range(1, 1 + len(splits))))


def _show_environments(told: Mapping[str, Any]) -> None:
    open_splits = {n: s["environments"] for n, s in told["splits"].items() if isinstance(s["environments"], dict)}
    found = {name: counts for name, counts in open_splits.items() if counts}
    for name, counts in found.items():
        ordered = sorted(counts.items(), key=lambda item: (-item[1], int(item[0])))
        named = [(("none" if env == _NO_ENVIRONMENT else env), count) for env, count in ordered]
        shown = ", ".join(f"{env}: {count}" for env, count in named[:_MOST_ENVIRONMENTS])
        rest = ordered[_MOST_ENVIRONMENTS:]
        more = f", … {len(rest)} more with {sum(count for _, count in rest)} graphs" if rest else ""
        show_text()
        show_text(f"environments of {name}, id: graphs, largest first: {shown}{more}")


def _show_facts(told: Mapping[str, Any]) -> None:
    facts = {name: value for name, value in told["facts"].items() if name not in ("skipped", "splits")}
    texts = [f"{name.replace('_', ' ')} {text}" for name, value in facts.items() if (text := _fact(value))]
    show_text()
    if texts:
        show_text("facts: " + "; ".join(texts))


def _fact(value: Any) -> str:
    """A fact on one line: of a table or list, such as that of the classes' names, the first entries."""
    if isinstance(value, Mapping):
        entries = [f"{str(name).replace('_', ' ')}: {_fact(entry)}" for name, entry in value.items()]
    elif isinstance(value, list):
        entries = [_fact(entry) for entry in value]
    else:
        return "" if value is None else str(value)
    more = len(entries) - _MOST_ENTRIES
    shown = ", ".join(entries[:_MOST_ENTRIES]) + (f", … {more} more" if more > 0 else "")
    return f"({shown})" if entries else ""
