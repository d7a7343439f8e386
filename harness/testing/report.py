"""The results of the conformance kit: an outcome per check, grouped by component. Imports nothing heavy."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from harness.safe_io import visible

Status = Literal["ok", "failed", "skipped"]
CheckFunction = Callable[[Any], Iterable[str]]
"""A check: from a rig to its problems, one text each with the expected and the actual result."""

_WIDTH, _INDENT = 105, " " * 13


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
        traceback: the lines of the traceback, from the component's own frame on, if the component raised.
    """

    check: str
    about: str
    status: Status
    problems: tuple[str, ...] = ()
    traceback: tuple[str, ...] = ()

    def text(self) -> str:
        """Return problems and traceback; control characters of a component's texts are escaped."""
        problems = (textwrap.fill(text, _WIDTH, subsequent_indent="    ") for text in self.problems)
        return visible("\n".join([*problems, *self.traceback]))


@dataclass(frozen=True)
class Report:
    """The outcomes of all checks of one component.

    Attributes:
        kind, name: the component.
        outcomes: one per check, in their order.
        seconds: duration.
        printed: the last lines that the component printed.
    """

    kind: str
    name: str
    outcomes: tuple[Outcome, ...]
    seconds: float = 0.0
    printed: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Return True if no check failed."""
        return not self.with_status("failed")

    @property
    def raises_everywhere(self) -> bool:
        """Return True if every check that was not skipped met one and the same exception."""
        failed = self.with_status("failed")
        met = {(outcome.problems, outcome.traceback) for outcome in failed if outcome.traceback}
        return len(met) == 1 and len(failed) + len(self.with_status("skipped")) == len(self.outcomes)

    @property
    def all_skipped(self) -> bool:
        """Return True if no check applied."""
        return len(self.with_status("skipped")) == len(self.outcomes)

    def with_status(self, status: Status) -> tuple[Outcome, ...]:
        """Return the outcomes of one status."""
        return tuple(outcome for outcome in self.outcomes if outcome.status == status)

    def to_json(self) -> dict[str, Any]:
        """Return a plain mapping."""
        return {**asdict(self), "passed": self.passed, "seconds": round(self.seconds, 3)}

    def text(self, *, verbose: bool = False) -> str:
        """Return lines for a terminal: a heading and the failed checks, with ``verbose`` every check."""
        skipped = self.with_status("skipped")
        word = "FAILED" if not self.passed else "skipped" if self.all_skipped else "ok"
        everywhere = self.raises_everywhere and not verbose
        counts = f"{len(self.outcomes)} check{'s' if len(self.outcomes) > 1 else ''}" + (
            f", {len(skipped)} skipped" if skipped and not everywhere else ""
        )
        lines = [f"{word:<7} {self.kind}/{self.name}  ({counts}, {self.seconds:.1f} s)"]
        if everywhere:
            lines += ["  fails in every check:", textwrap.indent(self.with_status("failed")[0].text(), _INDENT)]
        for outcome in () if everywhere else self.outcomes:
            if verbose or outcome.status == "failed":
                lines.append(f"  {outcome.status:<7}  {outcome.check}: {outcome.about}")
                lines.append(textwrap.indent(outcome.text(), _INDENT))
        if self.printed and (verbose or not self.passed):
            lines += ["  the last lines that it printed:", *(f"    | {line}" for line in self.printed)]
        if self.all_skipped and not verbose:
            lines.append(_INDENT + skipped[0].problems[0])
        return visible("\n".join(line for line in lines if line))
