"""Suites made to harm: bombs of aliases, nesting, digits and messages; names that are no names; far too many cells."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from suite_kit import declare, made_up_catalog

from harness.errors import SuiteError, did_you_mean
from harness.suite.load import load_suite
from harness.suite.tree import MAX_MESSAGE, MAX_PROBLEMS

BODY = "bench: 1\nseeds: [1, 2]\ndatasets: {A: {use: spmotif}}\nmethods: {E: {baseline: erm}}\n"


def refused(folder: Path, text: str) -> list[str]:
    path = folder / "suite.yaml"
    path.write_text(text, encoding="utf-8")
    before = time.process_time()
    with pytest.raises(SuiteError) as caught:
        load_suite(path, made_up_catalog(), declare)
    assert time.process_time() - before < 20
    messages = [problem.message for problem in caught.value.problems]
    assert len(messages) <= MAX_PROBLEMS + 1
    assert all(len(message) <= MAX_MESSAGE + 100 for message in messages)
    return messages


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a0: &a0 x\n" + "".join(f"a{n}: &a{n} [{f'*a{n - 1}, ' * 10}]\n" for n in range(1, 9)), "100,000 values"),
        ("[" * 100_000, "50 levels"),
        ("- " * 100_000, "50 levels"),
        ("bench: " + "9" * 5000, "not a valid int"),
        ("bench: 0x" + "f" * 100_000, "not a valid int"),
        ("bench: 0o" + "7" * 100_000, "not a valid int"),
        ("bench: '" + "9" * 900_000 + "'", "900,002 characters"),
        ("x" * 1_000_001, "1,000,001 bytes"),
        ("bench: !!python/object/apply:os.system ['true']", "tag"),
        ("bench: &a [*a]", "names nothing that ends above it"),
    ],
    ids=["aliases", "flow", "block", "digits", "hexadecimal", "octal", "text", "size", "tag", "loop"],
)
def test_bombs(tmp_path: Path, text: str, told: str) -> None:
    assert any(told in message for message in refused(tmp_path, text))


def test_many_faults_with_a_long_text_each_stay_a_short_answer(tmp_path: Path) -> None:
    text = f'bench: 1\nname: &x "{"a" * 100_000}"\nmethods:\n' + "".join(f"  m{n}: *x\n" for n in range(2_000))
    told = refused(tmp_path, text)
    assert told[-1] == f"more than {MAX_PROBLEMS} faults; the rest is not shown"
    assert sum(map(len, told)) < 200_000


def test_long_names_are_compared_with_nothing() -> None:
    long = "ab" * 200_000
    before = time.process_time()
    assert did_you_mean(long, [long[:-1], "ab"]) == ""
    assert did_you_mean("ab", [long, "abc"]) == " (did you mean 'abc'?)"
    assert time.process_time() - before < 1


@pytest.mark.parametrize("name", ["\\e[31mred", "\\u202egnp.exe", "a\\nb", "\\x9b", "", " ", "x" * 201])
@pytest.mark.parametrize("section", ["datasets", "methods", "analyses"])
def test_labels_are_printable_and_short(tmp_path: Path, section: str, name: str) -> None:
    text = BODY.replace(f"{section}: {{", f'{section}: {{"{name}": {{}}, ')
    text += f'analyses: {{"{name}": {{use: cmd}}}}\n' if section == "analyses" else ""
    assert f"a name in '{section}' must be printable text of 1 to 200 characters" in refused(tmp_path, text)


@pytest.mark.parametrize("name", ["../../x", "a/b", "<b>", "=1+1", "x" * 101])
def test_a_suites_name_is_a_name(tmp_path: Path, name: str) -> None:
    assert any("'name' may hold letters" in message for message in refused(tmp_path, BODY + f"name: '{name}'\n"))


def test_too_many_cells_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.suite.load.MAX_CELLS", 1)
    assert refused(tmp_path, BODY) == ["the suite has 2 cells or more; at most 1 are allowed"]


def test_columns_rows_and_seeds_are_multiplied_before_anything_is_made_of_them(tmp_path: Path) -> None:
    seeds = ", ".join(map(str, range(6_000)))
    methods = ", ".join(f"M{n}: {{baseline: erm}}" for n in range(200))
    text = BODY.replace("[1, 2]", f"[{seeds}]").replace("E: {baseline: erm}", methods)
    assert "the suite has 1,200,000 cells" in refused(tmp_path, text)[0]
