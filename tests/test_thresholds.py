"""Every named number of detectors, signs and spikes says beside it where it comes from; the page that measures them is up to date."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("detectors", "signs", "spikes")
LEAST = 15  # characters of a comment that can name a source


@pytest.fixture(scope="module")
def thresholds() -> Iterator[Any]:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        yield importlib.import_module("thresholds")
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


@pytest.mark.parametrize("room", ROOMS)
def test_every_number_has_a_source_beside_it(room: str, thresholds: Any) -> None:
    found = [c for path in thresholds.modules(room) for c in thresholds.constants(path)]
    assert found
    assert [f"{c.module}:{c.line} {c.name}" for c in found if len(c.comment) < LEAST] == []


def test_what_counts_as_a_number_and_as_its_comment(thresholds: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("named_numbers.ROOT", tmp_path)
    file = tmp_path / "m.py"
    file.write_text(
        "import re\n\nA, B = 1.0, -2  # both of them\n# above it\nC = 2.0**6\nD = {'x': 0.1}\nE = 1 / A\nNAMES = ('a', 'b')\nWORD = re.compile('x')\n"
        "FLAG = True\n# far above\n\nF: int = 3\nG = (0.5, 2)  # a pair\nlower = 4\n"
    )
    assert [(c.name, c.comment) for c in thresholds.constants(file)] == [
        ("A", "both of them"), ("B", "both of them"), ("C", "above it"), ("D", ""), ("E", ""), ("F", ""), ("G", "a pair"),
    ]  # fmt: skip


def test_a_number_is_replaced_wherever_it_was_imported(thresholds: Any) -> None:
    from forensics.spikes import excursions, plain_rule

    with thresholds.patched(excursions, "CROWD_SIGMA", 99.0):
        assert plain_rule.CROWD_SIGMA == 99.0 == excursions.CROWD_SIGMA
    assert plain_rule.CROWD_SIGMA == excursions.CROWD_SIGMA != 99.0


def test_a_changed_number_changes_what_is_counted(thresholds: Any) -> None:
    from forensics.detectors import plateau
    from tests.forensics.curves import noisy, run_of

    cases = [thresholds.Case(run_of({"loss.train": noisy(16, 0.001)}), True)]
    assert thresholds.counted(cases, [plateau]) == "0 / 1"
    with thresholds.patched(plateau, "LEAST_FALL", 0.0):
        assert thresholds.counted(cases, [plateau]) == "0 / 0"
    assert thresholds.scaled({"a": 0.5, "b": [4, 1]}, 0.7) == {"a": 0.35, "b": [3, 1]}


def test_the_page_has_every_number_with_its_comment(thresholds: Any) -> None:
    page = thresholds.PAGE.read_text("utf-8")
    missing = []
    for path in thresholds.modules(*thresholds.ROOMS):
        _, _, rest = page.partition(f"\n## {path.parent.name}/{path.stem}\n")
        section = rest.partition("\n## ")[0]
        for c in thresholds.constants(path):
            value = thresholds.short(getattr(importlib.import_module(c.module), c.name))
            if f"| `{c.name}` | {value} | {thresholds.cell(c.comment)} |" not in section:
                missing.append(f"{path.stem}.{c.name}")
    assert missing == [], "run `python benchmarks/thresholds.py --write`"
