"""``python -m harness.reference PAGE…``: generate the deviations on the named pages again."""

import sys
from pathlib import Path

from harness.reference.components import renewed
from harness.registry.index import load_catalog

catalog = load_catalog(strict=True)
for path in map(Path, sys.argv[1:]):
    path.write_text(renewed(path.read_text(encoding="utf-8"), catalog), encoding="utf-8")
