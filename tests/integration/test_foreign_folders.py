"""A run from a folder whose files are called like modules that Python's helper processes import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from integration_kit import TOY, Workshop

NAMES = (
    "abc ast copy enum io json multiprocessing os pickle pluggy queue random re selectors signal socket struct torch "
    "typing numpy yaml"
)


def test_nothing_in_the_current_folder_is_imported(workshop: Workshop) -> None:
    for name in NAMES.split():
        workshop.write(
            "from pathlib import Path\nPath(__file__).with_suffix('.ran').touch()\nraise SystemExit(7)\n", f"{name}.py"
        )
    inner = workshop.folder / "harness" / "engine"
    inner.mkdir(parents=True)
    for file in (inner.parent / "__init__.py", inner / "__init__.py", inner / "preload.py"):
        file.write_text(f"open({str(workshop.folder / 'harness.ran')!r}, 'w')\n", encoding="utf-8")
    workshop.write(TOY.split("  IRM")[0])
    script = Path(sys.executable).with_name("bench")  # not `python -c`, for which the current folder comes first
    words = [str(script), "run", "suite.yaml", "--jobs", "1", "--seeds", "1"]
    done = subprocess.run(
        words, cwd=workshop.folder, env=workshop.environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not sorted(path.name for path in workshop.folder.rglob("*.ran"))
