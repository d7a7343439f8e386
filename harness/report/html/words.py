"""Numbers, times and facts as the page says them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from harness.results.rows import DatasetFacts
from harness.safe_io import size_text


def seconds(value: float | None) -> str:
    """Seconds with as many decimals as make sense; an en dash for none."""
    return (
        "–" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"
    )


def memory(value: int | None) -> str:
    """Bytes; an en dash for none."""
    return "–" if value is None else size_text(value)


def moment(text: str) -> str:
    """An ISO time for people; as it is where it is none."""
    try:
        return datetime.fromisoformat(text).strftime("%Y-%m-%d %H:%M:%S %Z")
    except ValueError:
        return text


def dataset_facts(dataset: DatasetFacts) -> list[tuple[str, str]]:
    """What is known of a dataset, without what is empty."""
    own = {"label", "notes", "skipped", "higher_is_better", "splits"}
    facts = {name: value for name, value in vars(dataset).items() if name not in own}
    facts["splits"] = ", ".join(f"{name} ({role})" for name, role in dataset.splits.items())
    return flat(facts)


def flat(facts: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Nested facts as names and texts, without what is empty."""
    found: list[tuple[str, str]] = []
    for name, value in facts.items():
        label = f"{prefix}{name}".replace("_", " ")
        if isinstance(value, Mapping):
            found += flat(value, f"{label}: ")
        elif isinstance(value, (list, tuple)):
            found += [(label, " ".join(map(str, value)))] if value else []
        elif value is not None and value != "":
            found.append((label, {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)))
    return found
