"""The results of the conformance kit: an outcome per check, grouped by component. Imports nothing heavy."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from harness.safe_io import visible

Status = Literal["ok", "failed", "skipped"]
CheckFunction = Callable[[Any], Iterable[str]]
"""A check: from a rig to its problems, one text each with the expected and the actual result."""

_WIDTH, _INDENT = 118, 13


class Note(str):
    """A measurement of a check that is no problem."""


class Skip(Exception):
    """Raised where a check does not apply to a component; the text gives the reason."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of one check.

    Attributes:
        check: the check's name, unique within a kind.
        about: the contract that it checks, in one line.
        status: ``ok``, ``failed`` or ``skipped``.
        problems: the violations, or for a skipped check the reason.
        notes: measurements that are no problem.
        traceback: the lines of the traceback, from the component's own frame on, if the component raised.
    """

    check: str
    about: str
    status: Status
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    traceback: tuple[str, ...] = ()

    def lines(self, indent: str = "") -> list[str]:
        """Return problems, traceback and notes; control characters of a component's texts are escaped."""
        width = _WIDTH - len(indent)
        blocks = [_wrapped(text, width) for text in self.problems]
        blocks += [list(self.traceback), *(_wrapped(text, width) for text in self.notes)]
        return [f"{indent}{visible(line)}" for lines in blocks for line in lines]


@dataclass(frozen=True)
class Report:
    """The outcomes of all checks of one component.

    Attributes:
        kind, name: the component.
        outcomes: one per check, in their order.
        seconds: duration.
        lines: number of lines that the component printed.
        printed: the last of them.
    """

    kind: str
    name: str
    outcomes: tuple[Outcome, ...]
    seconds: float = 0.0
    lines: int = 0
    printed: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Return True if no check failed."""
        return not self.with_status("failed")

    @property
    def all_skipped(self) -> bool:
        """Return True if no check applied."""
        return bool(self.outcomes) and len(self.with_status("skipped")) == len(self.outcomes)

    def with_status(self, status: Status) -> tuple[Outcome, ...]:
        """Return the outcomes of one status."""
        return tuple(outcome for outcome in self.outcomes if outcome.status == status)

    def to_json(self) -> dict[str, Any]:
        """Return a plain mapping that :meth:`from_json` reads back."""
        outcomes = [_plain(outcome) for outcome in self.outcomes]
        return {**_plain(self), "passed": self.passed, "seconds": round(self.seconds, 3), "outcomes": outcomes}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Report:
        """Read the mapping of :meth:`to_json`."""
        values = {name: value for name, value in data.items() if name != "passed"}
        outcomes = tuple(Outcome(**_tuples(item)) for item in data["outcomes"])
        return cls(**{**_tuples(values), "outcomes": outcomes})

    def text(self, *, verbose: bool = False) -> str:
        """Return lines for a terminal: a heading and the failed checks, with ``verbose`` every check.

        The last lines that the component printed follow a failure, and with ``verbose``.
        """
        skipped = self.with_status("skipped")
        word = "FAILED" if not self.passed else "skipped" if self.all_skipped else "ok"
        counts = f"{len(self.outcomes)} check{'' if len(self.outcomes) == 1 else 's'}" + (
            f", {len(skipped)} skipped" if skipped else ""
        )
        lines = [f"{word:<7} {self.kind}/{self.name}  ({counts}, {self.seconds:.1f} s)"]
        if self.all_skipped and not verbose:
            lines.append(" " * _INDENT + skipped[0].problems[0])
        for outcome in self.outcomes:
            if verbose or outcome.status == "failed":
                lines.append(f"  {outcome.status:<7}  {outcome.check}: {outcome.about}")
                lines += outcome.lines(" " * _INDENT)
        return visible("\n".join([*lines, *self._output(verbose or not self.passed)]))

    def _output(self, shown: bool) -> list[str]:
        if not self.lines:
            return []
        count = f"{self.lines} line" + ("s" if self.lines > 1 else "")
        if not shown:
            return [f"  it printed {count} (-v shows the last)"]
        rest = ", the last of them:" if self.lines > len(self.printed) else ":"
        return [f"  it printed {count}{rest}", *(f"    | {line}" for line in self.printed)]


def _plain(item: Outcome | Report) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in vars(item).items()}


def _tuples(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in item.items()}


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
