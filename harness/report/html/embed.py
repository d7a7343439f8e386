"""How data, styles and scripts get into the page without becoming markup."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from harness.results.rows import dumps

FOLDER = Path(__file__).resolve().parent
_ESCAPES = str.maketrans({c: f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"})


def script_json(value: Any) -> str:
    """The value as JSON that cannot end or change the ``<script>`` element that holds it.

    ``<``, ``>``, ``&`` and the two line separators of JavaScript are written as escapes, which JSON allows wherever
    they can stand: in strings.
    """
    return _compact(value).translate(_ESCAPES)


def packed(value: Any) -> str:
    """The value as base64 of zlib-compressed JSON, for what is read only on demand."""
    return base64.b64encode(zlib.compress(_compact(value).encode(), 6)).decode()


def _compact(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:
        return dumps(value, indent=None).strip()


@cache
def asset(name: str) -> str:
    """A text file of this package."""
    return (FOLDER / name).read_text(encoding="utf-8")


def content_policy(styles: Iterable[str], scripts: Iterable[str]) -> str:
    """A Content-Security-Policy under which the page can load nothing and run no code but its own."""
    style, script = (" ".join(map(_digest, texts)) for texts in (styles, scripts))
    return (
        f"default-src 'none'; style-src {style}; script-src {script}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
