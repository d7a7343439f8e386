"""What the conformance kit found: an outcome per check, grouped by component. Imports nothing heavy."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from harness.safe_io import visible

Status = Literal["ok", "failed", "skipped"]
CheckFunction = Callable[[Any], Iterable[str]]
"""From a subject to what is wrong with it: one text per problem, what was expected and what was found."""


_WIDTH, _INDENT = 118, 13


class Note(str):
    """Something that a check measured and that is no problem."""


class Skip(Exception):
    """A check does not apply to a component; the text says why."""


@dataclass(frozen=True)
class Outcome:
    """What one check found.

    Attributes:
        check: the id of its rule.
        about: what it holds a component to, in one line.
        status: ``ok``, ``failed`` or ``skipped``.
        problems: what is wrong, or for a skipped check why it was skipped.
        notes: what was measured and is no problem.
        places: for each problem the line in the author's file, ``mine.py:14``; empty where unknown.
        cause: what a failure of this rule usually comes from.
    """

    check: str
    about: str
    status: Status
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    cause: str = ""

    @property
    def told(self) -> list[str]:
        """The problems with their places, and for a failure its likely cause; then the notes.

        What would steer a terminal is written out, as a component's exception may say anything.
        """
        places = (*self.places, *[""] * len(self.problems))
        lines = [f"{place}: {text}" if place else text for place, text in zip(places, self.problems, strict=False)]
        likely = [f"likely cause: {self.cause}"] if self.cause and self.status == "failed" else []
        return [visible(line) for line in (*lines, *likely, *self.notes)]


@dataclass(frozen=True)
class Report:
    """What the kit found about one component.

    Attributes:
        kind, name: the component.
        outcomes: one per check, in their order.
        seconds: how long it took.
        lines: how many lines the component printed.
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
        """Whether no check failed."""
        return not self.with_status("failed")

    def with_status(self, status: Status) -> tuple[Outcome, ...]:
        """The outcomes of one status."""
        return tuple(outcome for outcome in self.outcomes if outcome.status == status)

    def to_json(self) -> dict[str, Any]:
        """A plain mapping that :meth:`from_json` reads back."""
        outcomes = [
            {name: list(value) if isinstance(value, tuple) else value for name, value in vars(outcome).items()}
            for outcome in self.outcomes
        ]
        return {
            "kind": self.kind,
            "name": self.name,
            "passed": self.passed,
            "seconds": round(self.seconds, 3),
            "outcomes": outcomes,
            "lines": self.lines,
            "printed": list(self.printed),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Report:
        """The inverse of :meth:`to_json`."""
        outcomes = tuple(_outcome(item) for item in data["outcomes"])
        return cls(data["kind"], data["name"], outcomes, data["seconds"], data["lines"], tuple(data["printed"]))

    def text(self, *, verbose: bool = False) -> str:
        """Lines for people: a heading, what failed or why all was skipped, and with ``verbose`` every check.

        The last lines that the component printed follow where it failed or with ``verbose``.
        """
        skipped = self.with_status("skipped")
        whole = len(skipped) == len(self.outcomes)
        word = "FAILED" if not self.passed else "skipped" if whole else "ok"
        counts = f"{len(self.outcomes)} check{'' if len(self.outcomes) == 1 else 's'}" + (
            f", {len(skipped)} skipped" if skipped else ""
        )
        lines = [f"{word:<7} {self.kind}/{self.name}  ({counts}, {self.seconds:.1f} s)"]
        if whole and skipped and not verbose:
            lines.append(f"             {skipped[0].problems[0]}")
        for outcome in self.outcomes:
            if verbose or outcome.status == "failed":
                lines.append(f"  {outcome.status:<7}  {outcome.check}: {outcome.about}")
                lines += [line for text in outcome.told for line in _wrapped(text)]
        return visible("\n".join([*lines, *self._output(verbose or not self.passed)]))

    def _output(self, shown: bool) -> list[str]:
        """What is told of the lines that it printed."""
        if not self.lines:
            return []
        count = f"{self.lines} line" + ("s" if self.lines > 1 else "")
        if not shown:
            return [f"  it printed {count} (-v shows the last)"]
        rest = ", the last of them:" if self.lines > len(self.printed) else ":"
        return [f"  it printed {count}{rest}", *(f"    | {line}" for line in self.printed)]


def _outcome(item: Mapping[str, Any]) -> Outcome:
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in item.items()}
    return Outcome(**values)


def _wrapped(text: str) -> list[str]:
    """A problem or note below its rule; a longer one goes on further in."""
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=" " * _INDENT,
        subsequent_indent=" " * (_INDENT + 4),
        break_long_words=False,
        break_on_hyphens=False,
    )
