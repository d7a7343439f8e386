"""Labels as names of files and folders. No torch."""

from __future__ import annotations


def file_name(label: str, *, longest: int = 100, otherwise: str = "unnamed") -> str:
    """A label in letters, digits, ``.``, ``_`` and single ``-``, without dashes at its ends.

    Args:
        label: any text.
        longest: characters kept.
        otherwise: for a label of which nothing is left.
    """
    text = "".join(letter if letter.isalnum() or letter in "._" else "-" for letter in label)
    return "-".join(filter(None, text.split("-")))[:longest].strip("-.") or otherwise
