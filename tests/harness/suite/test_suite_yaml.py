"""The strict YAML reader."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.safe_io import yaml_text
from harness.suite.tree import Problems, Table, plain
from harness.suite.yaml import MAX_BYTES, MAX_DEPTH, read_file, read_text


def read(text: str) -> object:
    problems = Problems()
    tree = read_text(text, "f.yaml", problems)
    problems.check()
    assert tree is not None
    return plain(tree)


def fault(text: str) -> str:
    problems = Problems()
    read_text(text, "f.yaml", problems)
    with pytest.raises(Exception, match=":") as caught:
        problems.check()
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001),
        ("1E5", 100000.0),
        ("1.0e3", 1000.0),
        ("-.5", -0.5),
        ("3.", 3.0),
        ("+7", 7),
        ("010", 10),
        ("0x1F", 31),
        ("true", True),
        ("False", False),
        ("yes", "yes"),
        ("off", "off"),
        ("12:30", "12:30"),
        ("2024-01-01", "2024-01-01"),
        ("1_000", "1_000"),
        ("~", None),
        ("", None),
        ("'1e-3'", "1e-3"),
        ("e3", "e3"),
    ],
)
def test_scalars_follow_yaml_1_2(text: str, value: object) -> None:
    found = read(f"a: {text}")
    assert found == {"a": value}
    assert type(found["a"]) is type(value)  # type: ignore[index]


def test_infinities_are_read_as_numbers() -> None:
    assert read("[.inf, -.inf]") == [float("inf"), float("-inf")]


def test_every_key_and_value_knows_its_place() -> None:
    tree = read_text("a: 1\nb:\n  - x\n  - {c: 2}\n", "f.yaml", Problems())
    assert isinstance(tree, Table)
    assert str(tree.key("b")) == "f.yaml:2:1"
    items = tree.entries["b"].items  # type: ignore[union-attr]
    assert str(items[0].place) == "f.yaml:3:5"
    assert str(items[1].key("c")) == "f.yaml:4:6"
    assert str(items[1].entries["c"].place) == "f.yaml:4:9"


def test_a_duplicate_key_is_an_error_at_any_level() -> None:
    assert fault("a: 1\nb: {c: 1, c: 2}\na: 3\n") == (
        "f.yaml:2:11: duplicate key 'c' (first given at f.yaml:2:5)\n"
        "f.yaml:3:1: duplicate key 'a' (first given at f.yaml:1:1)"
    )


def test_anchors_work() -> None:
    assert read("x: &x {a: 1, b: &b [2]}\ny: *b\nz: *x\n") == {
        "x": {"a": 1, "b": [2]},
        "y": [2],
        "z": {"a": 1, "b": [2]},
    }


@pytest.mark.parametrize("text", ["[" * 2000, "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), "{a: " * 500 + "1"])
def test_depth_is_bounded(text: str) -> None:
    assert "levels deep" in fault(text)


@pytest.mark.parametrize(
    "text", ["a: !!python/object:os.system x", "a: !thing {b: 1}", "a: !!set {b}", "!!omap []", "a: !!int 1"]
)
def test_tags_are_refused(text: str) -> None:
    assert "is not allowed; suites are plain YAML" in fault(text)


def test_syntax_errors_have_a_place_and_a_hint() -> None:
    assert fault("a: [1, 2\nb: 3\n").startswith("f.yaml:2:2: not valid YAML: expected ',' or ']'")
    assert "indent with spaces, not tabs" in fault("a:\n\tb: 1\n")
    assert fault("a: 1\n---\nb: 2\n").startswith("f.yaml:2:1: not valid YAML")
    assert fault("a: 1\nb: \x07\n") == "f.yaml:2:4: a character that YAML does not allow: U+0007"


def test_keys_are_text() -> None:
    assert read("1: a\n0.5: b\ntrue: c\n") == {"1": "a", "0.5": "b", "true": "c"}
    assert "a key must be plain text" in fault("? [1]\n: 2\n")


def test_files(tmp_path: Path) -> None:
    def message(name: str, content: bytes) -> str:
        problems = Problems()
        (tmp_path / name).write_bytes(content)
        assert read_file(tmp_path / name, problems, name=name) is None
        with pytest.raises(Exception, match=name) as caught:
            problems.check()
        return str(caught.value)

    assert "latin.yaml:2:4: not a text file in UTF-8" in message("latin.yaml", b"# x\na: \xff\n")
    assert "a suite may have" in message("large.yaml", b"#" * (MAX_BYTES + 1))
    problems = Problems()
    assert read_file(tmp_path, problems, name="folder") is None
    assert problems
    (tmp_path / "bom.yaml").write_bytes(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n")
    tree = read_file(tmp_path / "bom.yaml", Problems())
    assert tree is not None
    assert plain(tree) == {"a": 1, "b": 2}


def test_a_runs_resolved_suite_may_be_larger(tmp_path: Path) -> None:
    """What many ``--set``s or a large matrix give could not be read back by ``reproduce`` and the like."""
    values = {f"name-{number}": "x" * 9_999 for number in range(MAX_BYTES // 9_999 + 1)}
    (tmp_path / "suite.yaml").write_text(yaml_text(values), encoding="utf-8")
    assert (tmp_path / "suite.yaml").stat().st_size > MAX_BYTES
    assert read_file(tmp_path / "suite.yaml", Problems()) is None
    (tmp_path / "run.json").touch()
    tree = read_file(tmp_path / "suite.yaml", Problems())
    assert tree is not None
    assert plain(tree) == values
