"""The errors the harness raises on purpose, and the exit code each one stands for."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

_BRACKETS = re.compile(r"\([^()]*\)")


class BenchError(Exception):
    """Base of every error raised on purpose; the command line prints its text without a traceback."""

    exit_code = 1


class UserError(BenchError):
    """Something the user can mend: a suite, a name, a file, a folder. Exit code 2."""

    exit_code = 2


class FileError(UserError):
    """A file or folder cannot be written or used; the text names the path."""


class DiskFullError(FileError):
    """The disk is full, or what is to come would not fit: no result of a stage."""


class DataError(UserError):
    """A data file is missing, truncated, foreign or inconsistent; the text names the path and what to do."""


@dataclass(frozen=True)
class Problem:
    """One fault in a suite file: its place (empty on the command line), the value there and what is allowed."""

    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


class SuiteError(UserError):
    """Every fault found in a suite, reported together."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class ChangedError(UserError):
    """Code has changed since the suite was planned; the text names the file. Planning again helps."""


class DivergedError(BenchError):
    """A training met non-finite losses or scores and has nothing worth keeping."""


def bounded(text: str, longest: int = 4000) -> str:
    """Cut a text, which a plugin may have made of any length, where it enters the harness."""
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"


def listed(names: Iterable[str]) -> str:
    """Join names with commas; one with a comma outside brackets is quoted, so that a reader can tell it from two."""
    return ", ".join(f"'{name}'" if "," in _BRACKETS.sub("", name) else name for name in names)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint such as `` (did you mean 'mvgrl'?)``, or nothing when no known name is near.

    Case and ``-``/``_`` differences count as near: they are the commonest slips.
    """
    folded = {other.lower().replace("_", "-"): other for other in known}
    near = get_close_matches(name.lower().replace("_", "-")[:200], folded, n=1, cutoff=0.6)
    return f" (did you mean '{folded[near[0]]}'?)" if near else ""
