"""Reading and showing what comes from others, strict and harmless on a screen; sizes and labels as file names."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from harness.safe_io import file_name, file_names, parse_json, parse_json_as, parse_yaml, shown, size_text, visible


@pytest.mark.parametrize("text", ["\x1b[2J", "\x07", "\r", "\x9b31m", "\u202e", "\u2066", "\u2028", "\x7f", "\ud800"])
def test_what_steers_a_terminal_is_written_out(text: str) -> None:
    made = visible(f"a{text}b")
    assert made == f"a\\u{ord(text[0]):04x}{text[1:]}b"
    assert json.loads(visible(json.dumps(text, ensure_ascii=False))) == text, "JSON stays what it was"


def test_plain_text_stays() -> None:
    assert visible("ERM ± 0.1\n\tγ → 数 é") == "ERM ± 0.1\n\tγ → 数 é"


@pytest.mark.parametrize("text", ["[" * 100_000, "NaN", "-Infinity", "9" * 5000, '{"a":' * 50_000, "{", ""])
def test_json_bombs(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_json(text)


@pytest.mark.parametrize("text", ["[" * 5000, "!!python/object/apply:os.system [true]", "a: !x b", "\x1b"])
def test_yaml_that_nobody_here_writes(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_yaml(text)


@dataclass
class Row:
    name: str
    count: int
    value: float | None
    tags: tuple[str, ...] = ()


@pytest.mark.parametrize(
    ("item", "told"),
    [
        ({"name": 3}, "name: Input should be a valid string"),
        ({"count": True}, "count: Input should be a valid integer"),
        ({"value": "0.5"}, "value: Input should be a valid number"),
        ({"tags": "abc"}, "tags: Input should be a valid array"),
        ({"tags": ["a", 1]}, "tags.1: Input should be a valid string"),
        ([1], "Input should be an object"),
    ],
)
def test_values_have_the_types_of_their_fields(item: object, told: str) -> None:
    sound = {"name": "a", "count": 1, "value": 1, "tags": ["a"]}
    assert parse_json_as(Row, json.dumps(sound)) == Row("a", 1, 1.0, ("a",))
    odd = sound | item if isinstance(item, dict) else item
    with pytest.raises(ValueError, match=told):
        parse_json_as(Row, json.dumps(odd))
    with pytest.raises(ValueError, match="NaN is not JSON"):
        parse_json_as(Row, '{"value": NaN}')


def test_shown_is_short_and_harmless() -> None:
    assert shown("\x1b") == r"'\x1b'"
    assert len(shown("x" * 10_000)) < 100


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (999.6, "1 kB"),
        (1000, "1 kB"),
        (1_500_000, "1.5 MB"),
        (999_600, "1 MB"),
        (2**31, "2.15 GB"),
        (123_456_789_000, "123 GB"),
        (5.4e15, "5400 TB"),
    ],
)
def test_three_digits_in_decimal_units(count: float, text: str) -> None:
    assert size_text(count) == text


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("Two-piece (0.8, 0.7)", "Two-piece-0.8-0.7"),
        ("EQuAD, Eqn. 7", "EQuAD-Eqn.-7"),
        ("../../etc/passwd", "etc-passwd"),
        ("..", "unnamed"),
        ("  ", "unnamed"),
        ("a" * 200, "a" * 100),
    ],
)
def test_a_label_becomes_one_plain_name(label: str, name: str) -> None:
    assert file_name(label) == name


def test_labels_have_files_of_their_own() -> None:
    assert file_names(["T+", "T-", "t", "T-2", "T*"]) == {
        "T+": "T",
        "T-": "T-2",
        "t": "t-3",
        "T-2": "T-2-2",
        "T*": "T-4",
    }
