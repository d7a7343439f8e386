"""Where a command's text goes: a file, or standard output in the signs that it has."""

from __future__ import annotations

import sys
from pathlib import Path

from harness.errors import UserError


def emit(text: str, output: Path | None = None) -> None:
    """Print a text, or write it to a file as a whole.

    Raises:
        UserError: the file cannot be written.
    """
    if output is None:
        from harness.report.plain import encodable

        sys.stdout.write(encodable(text, sys.stdout.encoding))
        sys.stdout.flush()
        return
    from harness.results import write_text

    try:
        write_text(output, text)
    except OSError as error:
        raise UserError(f"cannot write {output}: {error.strerror or error}") from None
