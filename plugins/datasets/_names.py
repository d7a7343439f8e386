"""Names and words: how they are shown in messages, and what counts as one."""

from __future__ import annotations

from collections.abc import Iterable


def shortened(names: Iterable[str]) -> str:
    """Names as text that fits on a screen, however many there are."""
    text = ", ".join(names)
    return text if len(text) <= 200 else f"{text[:200]} …"


def is_word(text: str) -> bool:
    """Printable ASCII without spaces. Of any other text RDKit reads a part as SMILES, and drops the rest."""
    return text.isascii() and text.isprintable() and text != "" and " " not in text
