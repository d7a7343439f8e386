"""Versions, machine and state of the repository, for the record of a run. Imports none of the packages."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

from harness import __version__
from harness.engine.process_state import available_cores

PACKAGES = ("torch", "torch-geometric", "PyGCL", "scikit-learn", "scipy", "numpy", "rdkit", "safetensors", "pluggy")
_OF_DEVELOPERS = ("test", "docs", "browser", "lint")


def versions() -> dict[str, str]:
    """Return the installed version of each package that can change a number; absent ones are left out."""
    installed = {"python": platform.python_version(), "equad-bench": __version__}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            installed[name] = version(name)
    return installed


def extras() -> dict[str, str]:
    """Return ``present``, or the packages that are missing, for each extra that adds something to ``bench``."""
    with suppress(PackageNotFoundError):
        needs = [re.match(r"([\w.-]+).*extra == ['\"](\w+)", line) for line in requires("equad-bench") or ()]
        missing: dict[str, list[str]] = {}
        for package, extra in (found.groups() for found in needs if found and found[2] not in _OF_DEVELOPERS):
            missing.setdefault(extra, []).extend([] if _installed(package) else [package])
        return {extra: f"missing: {', '.join(names)}" if names else "present" for extra, names in missing.items()}
    return {}


def _installed(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


def provenance(plugins: Iterable[Path] = ()) -> dict[str, Any]:
    """Return versions, machine, repository and command line.

    Args:
        plugins: single plugin files, whose repositories are told under ``plugins``, each by number and name.
    """
    return {
        "versions": versions(),
        **machine(),
        "device": "cpu",
        "threads_per_worker": 1,
        "determinism": "same key, same bits on this machine and these versions",
        "repository": repository(Path(__file__).resolve().parents[1]),
        "plugins": {f"{n:02d}/{path.name}": repository(path.resolve().parent) for n, path in enumerate(plugins, 1)},
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
    }


@cache
def machine() -> dict[str, Any]:
    """Return the platform, the processor's name, and the number of cores that this process may use."""
    processor = platform.processor() or platform.machine()
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                processor = line.partition(":")[2].strip()
    return {"platform": platform.platform(), "cpu": processor, "cores": available_cores()}


def repository(folder: Path) -> dict[str, Any] | None:
    """Return the commit of the repository that tracks a folder's files, and if tracked files differ from it, or None.

    A folder that lies in a repository without being part of it (an environment inside a project, say) has none.
    """
    try:
        if not _git(folder, "ls-files", "--", "."):
            return None
        commit = _git(folder, "rev-parse", "HEAD")
        return {"commit": commit, "changed": bool(_git(folder, "status", "--porcelain", "--untracked-files=no"))}
    except (OSError, subprocess.SubprocessError):
        return None


def _git(folder: Path, *words: str) -> str:
    env = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}  # looking must not write to the user's repository
    output = subprocess.check_output(
        ["git", *words], cwd=folder, env=env, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True, timeout=5
    )
    return output.strip()
