"""The library versions and the device that each stage was made with, in one file, so that a plan can compare them.

The record of a stage says the same and more; reading a record for each of very many stages would take too long. No
torch.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness.safe_io import parse_json

if TYPE_CHECKING:
    from harness.store.stage import Stage
    from harness.store.store import Store

FILE: Final = "toolchains.txt"
"""A line for each stage: its key, a space, and its toolchain as JSON."""
_CPU: Final = "cpu"


def note(root: Path, key: str, facts: Mapping[str, Any]) -> None:
    """Append the toolchain that the record of a stage names, if it names one."""
    provenance = facts.get("provenance")
    if isinstance(provenance, Mapping):
        toolchain = {"device": provenance.get("device", _CPU), "versions": provenance.get("versions")}
        with (root / FILE).open("a", encoding="utf-8") as stream:
            stream.write(f"{key} {json.dumps(toolchain, sort_keys=True)}\n")


def differences(store: Store, stages: Mapping[str, Stage], versions: Mapping[str, str], device: str) -> list[str]:
    """Return a line for each way in which stored stages were made otherwise than they would be now.

    Args:
        stages: the plan's, by key.
        versions: of the libraries here.
        device: where networks would be trained: ``cpu``, or any other.
    """
    try:
        lines = (store.root / FILE).read_text(encoding="utf-8", errors="replace").splitlines()
    except (OSError, ValueError):
        return []
    toolchains = {key: text for key, _, text in (line.partition(" ") for line in lines) if key in stages}
    compared = {text: _compare(text, versions, device) for text in set(toolchains.values())}
    differing = {}
    for key, text in toolchains.items():
        of_versions, of_device = compared[text]
        if words := "; ".join(filter(None, [of_versions, of_device if stages[key].trains else ""])):
            differing[key] = words
    counts = Counter(differing[key] for key in store.present(differing))
    return [
        f"{f'{count} cached stages were' if count > 1 else '1 cached stage was'} made {words}"
        for words, count in counts.most_common()
    ]


def _compare(text: str, versions: Mapping[str, str], device: str) -> tuple[str, str]:
    """Say how a stored toolchain differs from now, in its libraries and in its device; a torn line does not differ."""
    try:
        toolchain = parse_json(text)
        then, made_on = dict(toolchain["versions"]), toolchain["device"]
    except (ValueError, TypeError, KeyError):
        return "", ""
    changed = [
        f"{name} {then[name]} (now {now})"
        for name, now in versions.items()
        if name != "equad-bench" and then.get(name, now) != now  # a change of ours that matters is in the keys
    ]
    named = ["the CPU" if place == _CPU else place for place in (made_on, device)]
    other = (made_on == _CPU) != (device == _CPU)
    return f"with {', '.join(changed)}" if changed else "", f"on {named[0]} (now {named[1]})" if other else ""
