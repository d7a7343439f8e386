"""Amounts of bytes are told in one way."""

from __future__ import annotations

import pytest

from harness.safe_io import size_text


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
def test_three_digits_in_decimal_units(count, text):
    assert size_text(count) == text
