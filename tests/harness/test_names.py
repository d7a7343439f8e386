"""Labels as file names."""

import pytest

from harness.safe_io import file_name


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
def test_a_label_becomes_one_plain_name(label, name):
    assert file_name(label) == name
