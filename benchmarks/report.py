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
import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.engine.provenance import provenance

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"(<!-- measured: (?P<command>[^\n]+?) -->\n)(?P<body>.*?)(<!-- /measured -->)", re.DOTALL)
SHOWN = ("python", "torch", "torch-geometric", "PyGCL", "scikit-learn")
CODE = ("harness", "plugins", "benchmarks")


def circumstances() -> str:
    """Day, commit, machine, versions and load, in two lines."""
    facts = provenance()
    commit = (facts["repository"] or {}).get("commit", "unknown")[:7]
    # Not whether anything differs from the commit: this script itself changes the page.
    changed = subprocess.run(["git", "diff", "--quiet", "HEAD", "--", *CODE], cwd=ROOT, check=False).returncode
    versions = ", ".join(f"{name} {facts['versions'].get(name, 'absent')}" for name in SHOWN)
    return (
        f"{datetime.date.today()}, commit {commit}{' with changes' if changed else ''}, {facts['cores']} cores of "
        f"{facts['cpu']}, {platform.system()} {platform.release()},\n"
        f"{versions}; load average before: {os.getloadavg()[0]:.1f}"
    )


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
