"""The command ``bench``, in a module of a name that no project has: it tells what shadows the packages it needs."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path


def main() -> None:
    """Run the command line, unless another ``harness`` or ``plugins`` stands before this distribution's."""
    for name in ("harness", "plugins"):
        spec = find_spec(name)
        places = [spec.origin, *(spec.submodule_search_locations or ())] if spec else []
        place = next((Path(place).resolve() for place in places if place), None)
        if place != Path(__file__).resolve().with_name(name) / "__init__.py":
            text = (
                f"error: {place} shadows the package '{name}' of bench; rename it, or take its folder from PYTHONPATH"
            )
            print(text, file=sys.stderr)
            sys.exit(2)
    from harness.cli import main as command_line

    command_line()
