"""Fixtures of the suite language's tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from suite_kit import Load, declare, made_up_catalog

from harness.errors import SuiteError
from harness.registry.catalog import Catalog
from harness.suite import Overrides, load_suite
from harness.suite.spec import Suite


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    """Components under the names of real ones."""
    return made_up_catalog()


@pytest.fixture
def load(tmp_path: Path, catalog: Catalog) -> Load:
    """Loads a suite from its text; other files by name as keywords' ``files``."""

    def loaded(text: str, *, files: dict[str, str] | None = None, **overrides: object) -> Suite:
        for name, content in (files or {}).items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(content)
        path = tmp_path / "suite.yaml"
        path.write_text(text)
        return load_suite(path, catalog, declare, overrides=Overrides(**overrides))  # type: ignore[arg-type]

    return loaded


@pytest.fixture
def faults(load: Load, tmp_path: Path) -> Callable[..., list[str]]:
    """The faults of a suite, each as ``line:column: message`` (``file:line:column`` for other files)."""

    def found(text: str, **more: object) -> list[str]:
        with pytest.raises(SuiteError) as caught:
            load(text, **more)
        lines = [str(problem) for problem in caught.value.problems]
        return [line.removeprefix(f"{tmp_path}/").removeprefix("suite.yaml:") for line in lines]

    return found
