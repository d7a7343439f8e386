"""Names in messages."""

from __future__ import annotations

from collections.abc import Iterable


def shortened(names: Iterable[str]) -> str:
    """Names as text that fits on a screen, however many there are."""
    text = ", ".join(names)
    return text if len(text) <= 200 else f"{text[:200]} …"
