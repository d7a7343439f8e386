"""The library versions and the device that each stage was made with, in one file, so that a plan can compare them.

The record of a stage says the same and more; reading a record for each of very many stages would take too long. No
torch.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Final

from harness.safe_io import parse_json, read_text

FILE: Final = "toolchains.txt"
"""A line for each stage: its key, a space, and its toolchain as JSON."""
_OURS: Final = "equad-bench"
"""A change of ours that matters is in the keys."""
_CPU: Final = "cpu"


def note(root: Path, key: str, facts: Mapping[str, Any]) -> None:
    """Append the toolchain that the record of a stage names, if it names one."""
    provenance = facts.get("provenance")
    if not isinstance(provenance, Mapping):
        return
    versions = provenance.get("versions")
    if isinstance(versions, Mapping) and all(isinstance(version, str) for version in versions.values()):
        toolchain = {"device": str(provenance.get("device", _CPU)), "versions": dict(versions)}
        with (root / FILE).open("a", encoding="utf-8") as stream:
            stream.write(f"{key} {json.dumps(toolchain, sort_keys=True)}\n")


def differences(
    root: Path,
    keys: Collection[str],
    trained: Callable[[str], bool],
    present: Callable[[Collection[str]], Collection[str]],
    *,
    versions: Mapping[str, str],
    device: str,
) -> list[str]:
    """Return a line for each way in which stored stages were made otherwise than they would be now.

    Args:
        root: the store's folder.
        keys: of the plan's stages.
        trained: whether the stage of a key trains networks, so that the device matters.
        present: returns those of some keys that have an artifact; called with those only that seem to differ.
        versions: of the libraries here.
        device: where networks would be trained: ``cpu``, or any other.
    """
    try:
        lines = [line for line in read_text(root / FILE, errors="replace").splitlines() if line.endswith("}")]
    except (OSError, ValueError):
        return []
    toolchains = {key: text for key, _, text in (line.partition(" ") for line in lines) if key in keys}
    compared = {text: _compare(text, versions, device) for text in set(toolchains.values())}
    differing: dict[str, str] = {}
    for key, text in toolchains.items():
        of_versions, of_device = compared[text]
        if words := "; ".join(filter(None, [of_versions, of_device if of_device and trained(key) else ""])):
            differing[key] = words
    counts = Counter(differing[key] for key in present(differing))
    return [
        f"{f'{count} cached stages were' if count > 1 else '1 cached stage was'} made {words}"
        for words, count in counts.most_common()
    ]


def _compare(text: str, versions: Mapping[str, str], device: str) -> tuple[str, str]:
    """Say how a stored toolchain differs from now, in its libraries and in its device; a torn line does not differ."""
    try:
        toolchain = parse_json(text)
        then, made_on = dict(toolchain["versions"]), str(toolchain["device"])
    except (ValueError, TypeError, KeyError):
        return "", ""
    names = [name for name in {**versions, **then} if name != _OURS and then.get(name) != versions.get(name)]
    changed = [f"{name} {then[name]} (now {versions.get(name, 'absent')})" for name in names if name in then]
    words = [f"with {', '.join(changed)}"] if changed else []
    words += [f"without {name} (now {versions[name]})" for name in names if name not in then]
    same = (made_on == _CPU) == (device == _CPU)
    now = "the CPU" if device == _CPU else device
    where = "" if same else f"on {'the CPU' if made_on == _CPU else made_on} (now {now})"
    return ", ".join(words), where
