"""What each rule of the conformance kit says, read from the docstring of the function that tries it. No torch.

The docstring's first line is what the rule holds a component to, the paragraph that begins with ``Cause:`` what a
failure usually comes from, and the one that begins with ``Look at:`` the methods that are worth a look, the likeliest
first. A rule's id is the function's name, unique within a kind; it stays when the texts change.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_PARAGRAPH = re.compile(r"\n\s*\n")


@dataclass(frozen=True)
class Rule:
    """One rule.

    Attributes:
        id: its name, unique within a kind.
        about: what it holds a component to, in one line.
        cause: what a failure usually comes from.
        methods: where to look, the likeliest first.
    """

    id: str
    about: str
    cause: str = ""
    methods: tuple[str, ...] = ()


def rule_of(check: Callable[..., Any]) -> Rule:
    """The rule that a check tries."""
    about, *rest = _PARAGRAPH.split(inspect.getdoc(check) or "")
    told = {name: " ".join(text.split()) for name, colon, text in (part.partition(":") for part in rest) if colon}
    methods = tuple(name.strip() for name in told.get("Look at", "").split(",") if name.strip())
    return Rule(check.__name__, " ".join(about.split()), told.get("Cause", ""), methods)
