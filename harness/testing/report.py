"""What the conformance kit found: an outcome per check, grouped by component. Imports nothing heavy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Status = Literal["ok", "failed", "skipped"]
CheckFunction = Callable[[Any], Iterable[str]]
"""From a subject to what is wrong with it: one text per problem, what was expected and what was found."""


class Note(str):
    """Something that a check measured and that is no problem."""


class Skip(Exception):
    """A check does not apply to a component; the text says why."""


@dataclass(frozen=True)
class Outcome:
    """What one check found.

    Attributes:
        check: its name.
        about: what it holds a component to, in one line.
        status: ``ok``, ``failed`` or ``skipped``.
        problems: what is wrong, or for a skipped check why it was skipped.
        notes: what was measured and is no problem.
    """

    check: str
    about: str
    status: Status
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Report:
    """What the kit found about one component.

    Attributes:
        kind, name: the component.
        outcomes: one per check, in their order.
        seconds: how long it took.
    """

    kind: str
    name: str
    outcomes: tuple[Outcome, ...]
    seconds: float = 0.0

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
            {**vars(outcome), "problems": list(outcome.problems), "notes": list(outcome.notes)}
            for outcome in self.outcomes
        ]
        return {
            "kind": self.kind,
            "name": self.name,
            "passed": self.passed,
            "seconds": round(self.seconds, 3),
            "outcomes": outcomes,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Report:
        """The inverse of :meth:`to_json`."""
        outcomes = (
            Outcome(**{**item, "problems": tuple(item["problems"]), "notes": tuple(item["notes"])})
            for item in data["outcomes"]
        )
        return cls(data["kind"], data["name"], tuple(outcomes), data["seconds"])

    def text(self, *, verbose: bool = False) -> str:
        """Lines for people: a heading, what failed or why all was skipped, and with ``verbose`` every check."""
        skipped = self.with_status("skipped")
        whole = len(skipped) == len(self.outcomes)
        word = "FAILED" if not self.passed else "skipped" if whole else "ok"
        counts = f"{len(self.outcomes)} checks" + (f", {len(skipped)} skipped" if skipped else "")
        lines = [f"{word:<7} {self.kind}/{self.name}  ({counts}, {self.seconds:.1f} s)"]
        if whole and skipped and not verbose:
            lines.append(f"             {skipped[0].problems[0]}")
        for outcome in self.outcomes:
            if verbose or outcome.status == "failed":
                lines.append(f"  {outcome.status:<7}  {outcome.check}: {outcome.about}")
                lines += [f"             {text}" for text in (*outcome.problems, *outcome.notes)]
        return "\n".join(lines)
