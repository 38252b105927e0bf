"""Lines and marks of the charts stand out from the page, and from its shaded panels, in both themes (WCAG 1.4.11)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import reports

CSS = (Path(reports.__file__).parent / "templates" / "report.css").read_text()
LEAST = 3.0  # WCAG 2.1, 1.4.11: graphics that carry meaning
MARKS = ("old", "fast", "slow", "non", "pro", "con", "bad", "good")


def _colors(name: str) -> tuple[str, str]:
    found = re.search(rf"--{name}:light-dark\((#\w{{6}}),(#\w{{6}})\)", CSS)
    assert found, name
    return found[1], found[2]


def _luminance(color: str) -> float:
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("ground", ["bg", "soft"])
@pytest.mark.parametrize("mark", MARKS)
def test_marks_stand_out(mark: str, ground: str) -> None:
    for theme in (0, 1):
        low, high = sorted((_luminance(_colors(mark)[theme]), _luminance(_colors(ground)[theme])))
        assert (high + 0.05) / (low + 0.05) >= LEAST, (mark, ground, theme)
