"""Run the benchmarks that ``docs/performance.md`` shows, and put what they print into the page.

    python benchmarks/report.py [NAME ...] [--page docs/performance.md]

A block of the page begins with a comment that holds its command::

    <!-- measured: python benchmarks/erm_step.py -->

and ends with ``<!-- /measured -->``. Each command runs from the repository's root, one after the other; what it prints
to standard output becomes the block, under a line with the day, the commit, the machine, the versions and the load
average before it. ``NAME`` (``erm_step``) runs only blocks whose command has it in it. A command that ends with another
code than 0 leaves its block as it was; then this ends with 1, after the others. Bars hold for a machine that does
nothing else: a block's load average says whether it did.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"(<!-- measured: (?P<command>[^\n]+?) -->\n)(?P<body>.*?)(<!-- /measured -->)", re.DOTALL)
VERSIONS = {"torch": "torch", "PyG": "torch-geometric", "PyGCL": "PyGCL", "scikit-learn": "scikit-learn"}


def circumstances() -> str:
    """Day, commit, machine, versions and load, in two lines."""
    commit = _git("rev-parse", "--short", "HEAD").stdout.strip()
    changed = _git("diff", "--quiet", "HEAD", "--", "harness", "plugins", "benchmarks").returncode
    versions = ", ".join(f"{name} {importlib.metadata.version(package)}" for name, package in VERSIONS.items())
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (
        f"{datetime.date.today()}, commit {commit or 'unknown'}{' with changes' if changed else ''}, {cores} cores of "
        f"{_processor()}, {platform.system()} {platform.release()},\n"
        f"Python {platform.python_version()}, {versions}; load average before: {os.getloadavg()[0]:.1f}"
    )


def _git(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)


def _processor() -> str:
    """The processor's name where the system tells it."""
    try:
        found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    except OSError:
        found = None
    return found[1].strip() if found else platform.processor() or platform.machine()


def measure(command: str) -> str | None:
    """What the command prints; None where it fails. ``python`` is this interpreter, with one thread."""
    words = shlex.split(command)
    words = [sys.executable, *words[1:]] if words[0] == "python" else words
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=environment, check=False)
    return done.stdout if done.returncode == 0 else None


def refresh(page: Path, names: Sequence[str]) -> list[str]:
    """Run the page's blocks, or those that the names pick, and write each into the page at once; what failed."""
    commands = [found["command"] for found in BLOCK.finditer(page.read_text(encoding="utf-8"))]
    chosen = [command for command in commands if not names or any(name in command for name in names)]
    if not chosen:
        raise SystemExit(f"no block of {page} has a command with {', '.join(names) or 'anything'}: {commands}")
    failed = []
    for command in chosen:
        print(f"$ {command}", flush=True)
        before = circumstances()
        found = measure(command)
        if found is None:
            failed.append(command)
            continue
        print(found, flush=True)
        page.write_text(_with_block(page.read_text(encoding="utf-8"), command, f"{before}\n\n{found.rstrip()}"))
    return failed


def _with_block(text: str, command: str, content: str) -> str:
    """The page's text with the content as the command's block."""

    def written(block: re.Match[str]) -> str:
        if block["command"] != command:
            return block[0]
        return f"{block[1]}\n```text\n{content}\n```\n\n{block[4]}"

    return BLOCK.sub(written, text)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only blocks whose command has this in it")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "performance.md")
    given = parser.parse_args()
    failed = refresh(given.page, given.names)
    if failed:
        raise SystemExit("failed, left as they were: " + "; ".join(failed))


if __name__ == "__main__":
    main()
