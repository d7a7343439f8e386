"""The one-line reason of a failure names the line that a plugin's author should look at."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
import torch

from harness.engine.failures import failure_of, place_of, reason_of
from harness.errors import DataError, DiskFullError, DivergedError, FileError, UserError
from harness.hparams import HParam
from harness.registry.catalog import Entry
from harness.registry.discovery import load_one
from harness.store import MissingArtifact

HERE = Path(__file__).name


def raised(source: str, name: str, **given: object) -> BaseException:
    """The exception of code that stands in a file of this name."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever it is
        exec(compile(source, name, "exec"), given)
    return caught.value


def test_the_line_of_the_plugin_is_named() -> None:
    error = raised("x = 1\n\nraise ValueError('no such thing\\nat all')\n", "/somewhere/mine.py")
    assert reason_of(error) == "ValueError: no such thing (mine.py:3)"
    assert failure_of(error).reason == reason_of(error)


def test_a_library_or_the_harness_that_was_called_wrongly_is_not() -> None:
    """The last line of a plugin's says more than where torch, Python or the harness noticed."""
    in_torch = raised("\ntorch.nn.Linear(2, 3)(torch.ones(1, 5))\n", "/somewhere/mine.py", torch=torch)
    assert reason_of(in_torch).endswith("(mine.py:2)")
    in_python = raised("import json\njson.loads('{')\n", "/somewhere/mine.py")
    assert reason_of(in_python).endswith("(mine.py:2)")
    in_harness = raised("\n\n\nHParam('x', 'int', 1).coerce('y')\n", "/somewhere/mine.py", HParam=HParam)
    assert reason_of(in_harness).endswith("(mine.py:4)")


def test_an_error_raised_from_itself_ends() -> None:
    """The worker once followed the causes for ever."""
    source = "try:\n    raise MemoryError('x')\nexcept MemoryError as error:\n    raise error from error\n"
    assert failure_of(raised(source, "/somewhere/mine.py")).status == "memory"
    source = source.replace("MemoryError", "ValueError")
    assert failure_of(raised(source, "/somewhere/mine.py")).status == "failed"


def test_without_a_plugin_it_is_the_harness_s_own_line() -> None:
    source = "def inner():\n    raise KeyError('x')\n\ninner()\n"
    core = Path(__file__).resolve().parents[3] / "harness" / "training" / "loop.py"
    assert place_of(raised(source, str(core)).with_traceback(None)) == ""
    error = raised(source, str(core))
    error.__traceback__ = error.__traceback__.tb_next if error.__traceback__ else None
    assert place_of(error) == " (loop.py:2)"


def test_an_error_on_purpose_and_one_that_was_never_raised_have_no_place() -> None:
    for error in (UserError("say so"), DataError("say so"), DivergedError("say so")):
        assert reason_of(error) == "say so"
    assert reason_of(ValueError("x")) == "ValueError: x"


def test_a_long_message_keeps_its_place() -> None:
    error = raised("raise ValueError('x' * 999)\n", "/somewhere/mine.py")
    assert len(reason_of(error)) < 330
    assert reason_of(error).endswith("x… (mine.py:1)")


@pytest.mark.parametrize(
    "error",
    [
        FileError("cannot write x: Permission denied"),
        DiskFullError("the disk is full"),
        MissingArtifact("the artifact is damaged"),
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EROFS, "Read-only file system"),
        OSError(errno.ESTALE, "Stale file handle"),
        OSError(errno.EIO, "Input/output error"),
    ],
)
def test_trouble_with_the_store_is_no_result_of_a_stage(error: Exception) -> None:
    """It was stored as a failure, and the stage was not run again when the disk was back."""
    failure = failure_of(error)
    assert failure.status == "disk"
    assert not failure.kept


def test_what_cannot_be_imported_is_no_result_of_a_stage() -> None:
    """A package that was missing stayed a stored failure after it was installed."""
    lacking = raised("import no_such_package.part\n", "/somewhere/mine.py")
    assert failure_of(lacking).status == "import"
    assert not failure_of(lacking).kept
    assert reason_of(lacking) == (
        "ModuleNotFoundError: No module named 'no_such_package' (mine.py:1); "
        "install the package that provides 'no_such_package', "
        "or write `from .no_such_package import …` for a file beside it"
    )
    chained = raised("try:\n  from json import nothing\nexcept ImportError as e:\n  raise ValueError from e\n", "/m.py")
    assert failure_of(chained).status == "import"
    entry = Entry("baseline", "x", "no_such_package", "X", "/m.py", "built-in", "0", {})
    with pytest.raises(UserError, match="cannot be loaded: importing it raised ModuleNotFoundError") as caught:
        load_one(entry)
    assert failure_of(caught.value).status == "import"


def test_a_plugin_s_own_file_error_is_its_fault() -> None:
    assert failure_of(FileNotFoundError(errno.ENOENT, "No such file or directory", "mine.csv")).kept


@pytest.mark.parametrize("kind", [ValueError, DataError, type("E" * 10_000_000, (Exception,), {})])
def test_texts_of_any_length_are_cut_where_they_enter(kind: type[Exception]) -> None:
    failure = failure_of(kind("x" * 10_000_000))
    assert len(failure.reason) <= 4000
    assert len(failure.traceback) <= 20_000
