"""Labels as file names."""

import pytest

from harness.safe_io import file_name, file_names


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


def test_labels_have_files_of_their_own() -> None:
    assert file_names(["T+", "T-", "t", "T-2", "T*"]) == {
        "T+": "T",
        "T-": "T-2",
        "t": "t-3",
        "T-2": "T-2-2",
        "T*": "T-4",
    }
