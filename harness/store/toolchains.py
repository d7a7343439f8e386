"""What each stage was made with: library versions and device, of all stages in one file, so that a plan may compare.

The record of a stage says the same and more; to read a record for each of very many stages would take too long. A line
of the file names a stage's key and the name of a small file with the rest, of which a store has few. No torch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from harness.safe_io import parse_json, read_text
from harness.store.keys import digest

LINES: Final = "makers.txt"
FOLDER: Final = "makers"
_OURS: Final = "equad-bench"
"""A change of ours that matters is in the keys."""
_CPU: Final = "cpu"
_MOST: Final = 1 << 20
"""Bytes of a maker: some versions."""


def note(root: Path, key: str, facts: Mapping[str, Any], write: Callable[[Path, Any], None]) -> None:
    """Keep what a stage was made with.

    Args:
        root: the store's folder.
        key: of the stage.
        facts: its record.
        write: writes a small JSON file as a whole.
    """
    made = facts.get("provenance")
    if not isinstance(made, Mapping) or not _texts(made.get("versions")):
        return
    maker = {"versions": dict(made["versions"]), "device": str(made.get("device", _CPU))}
    name = _name(maker)
    path = root / FOLDER / f"{name}.json"
    if not path.exists():
        write(path, maker)
    with (root / LINES).open("a", encoding="utf-8") as stream:
        stream.write(f"{key} {name}\n")


def differences(
    root: Path,
    keys: Collection[str],
    trained: Callable[[str], bool],
    present: Callable[[Collection[str]], Collection[str]],
    *,
    versions: Mapping[str, str],
    device: str,
) -> list[str]:
    """A line for each way in which stored stages were made otherwise than they would be now.

    Args:
        root: the store's folder.
        keys: of the plan's stages.
        trained: whether the stage of a key trains networks, so that the device matters.
        present: those of some keys that have an artifact; asked for those alone that seem to differ.
        versions: of the libraries here.
        device: where networks would be trained: ``cpu``, or any other.
    """
    makers = _lines(root)
    told = {name: _told(root / FOLDER / f"{name}.json", versions, device) for name in set(makers.values())}
    if not any(any(pair) for pair in told.values()):
        return []
    found: dict[str, str] = {}
    for key, name in makers.items():
        of_versions, of_device = told[name]
        if key in keys and (of_versions or of_device):
            text = "; ".join(filter(None, [of_versions, of_device if of_device and trained(key) else ""]))
            if text:
                found[key] = text
    counts = Counter(found[key] for key in present(found))
    return [f"{_stages(count)} made {text}" for text, count in counts.most_common()]


def unreadable(root: Path) -> Iterator[Path]:
    """What of these files is not as it was written; a plan takes it for absent."""
    if (root / LINES).exists():
        try:
            read_text(root / LINES, errors="replace")
        except (OSError, ValueError):
            yield root / LINES
    for path in sorted((root / FOLDER).glob("*.json")):
        try:
            _read(path)
        except FileNotFoundError:
            continue  # removed meanwhile
        except (OSError, ValueError):
            yield path


def _name(maker: Mapping[str, Any]) -> str:
    return digest(maker)[:16]


def _stages(count: int) -> str:
    return f"{count} cached stages were" if count > 1 else "1 cached stage was"


def _lines(root: Path) -> dict[str, str]:
    """Key -> name of what made it, the latest."""
    try:
        text = read_text(root / LINES, errors="replace")
    except (OSError, ValueError):
        return {}
    pairs = (line.split(" ") for line in text.splitlines())
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2 and pair[1].isalnum()}  # others are torn


def _read(path: Path) -> dict[str, Any]:
    """A maker, as :func:`note` wrote it.

    Raises:
        OSError, ValueError: there is none, or it is damaged.
    """
    maker = parse_json(read_text(path, _MOST))
    if not isinstance(maker, dict) or maker.keys() != {"versions", "device"} or not _texts(maker["versions"]):
        raise ValueError("it does not say what something was made with")
    if not isinstance(maker["device"], str) or _name(maker) != path.stem:
        raise ValueError("it is not as it was written")
    return maker


def _texts(versions: object) -> bool:
    return isinstance(versions, Mapping) and all(isinstance(version, str) for version in versions.values())


def _told(path: Path, versions: Mapping[str, str], device: str) -> tuple[str, str]:
    """How a maker differs from now: in its libraries, and in its device."""
    try:
        maker = _read(path)
    except (OSError, ValueError):
        return "", ""
    then, there = maker["versions"], maker["device"]
    names = [name for name in {**versions, **then} if name != _OURS and then.get(name) != versions.get(name)]
    changed = [f"{name} {then[name]} (now {versions.get(name, 'absent')})" for name in names if name in then]
    told = [f"with {', '.join(changed)}"] if changed else []
    told += [f"without {name} (now {versions[name]})" for name in names if name not in then]
    same = (there == _CPU) == (device == _CPU)
    now = "the CPU" if device == _CPU else device
    where = "" if same else f"on {'the CPU' if there == _CPU else there} (now {now})"
    return ", ".join(told), where
