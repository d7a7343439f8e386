"""Hints at what a misspelt name was meant to be."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint such as `` (did you mean 'tox21'?)``, or nothing where no known name is near; case does not count."""
    folded = {other.lower(): other for other in known}
    near = get_close_matches(name.lower(), folded, n=1, cutoff=0.6)
    return f" (did you mean '{folded[near[0]]}'?)" if near else ""


def shortened(names: Iterable[str]) -> str:
    """Names as text that fits on a screen, however many there are."""
    text = ", ".join(names)
    return text if len(text) <= 200 else f"{text[:200]} …"
