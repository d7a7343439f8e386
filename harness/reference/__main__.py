"""``python -m harness.reference PAGE…``."""

import sys

from harness.reference.differences import main

main(sys.argv[1:])
