"""Scales, ticks and paths: the numbers behind the drawings."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest

from reports import chart, scales
from reports.chart import Curve, Look
from reports.labels import Label, place
from reports.scales import GRID, Scale


def corners(d: str) -> list[tuple[int, int]]:
    """The absolute points of a path as `path` writes it."""
    out: list[tuple[int, int]] = []
    for piece in d.split("M")[1:]:
        move, _, line = piece.partition("l")
        x, y = map(int, move.split())
        out.append((x, y))
        steps = [int(n) for n in re.findall(r"-?\d+", line)]
        for dx, dy in zip(steps[2::2], steps[3::2], strict=True):
            x, y = x + dx, y + dy
            out.append((x, y))
    return out


def test_linear_and_log_scales_map_their_ends_and_middle() -> None:
    assert [Scale(10, 30)(v) for v in (10, 20, 30, 5, 99)] == [0, 0.5, 1, 0, 1]
    log = Scale(1, 10000, log=True)
    assert [round(log(v), 9) for v in (1, 100, 10000)] == [0, 0.5, 1]
    assert log(0) == 0 and log(-3) == 0


def test_a_scale_keeps_every_finite_value_and_ignores_the_rest() -> None:
    s = scales.scale([1.0, math.nan, 8.0, math.inf], log=True)
    assert s.log and 0 < s(1.0) < s(8.0) < 1
    assert not scales.scale([-1.0, 0.0], log=True).log
    flat = scales.scale([3.0, 3.0], log=False)
    assert flat(3.0) == pytest.approx(0.5)
    assert scales.scale([], log=False).hi > scales.scale([], log=False).lo
    extreme = scales.scale([-1e307, 1e307], log=False)
    assert 0 < extreme(0.0) < 1


@pytest.mark.parametrize(("lo", "hi", "expected"), [(0, 599, [0, 200, 400]), (0.1, 0.52, [0.2, 0.4]), (-3, 3, [-2, 0, 2]), (5, 5, [5])])
def test_linear_ticks_are_round(lo: float, hi: float, expected: list[float]) -> None:
    assert scales.ticks(lo, hi, 3) == expected


@pytest.mark.parametrize(
    ("lo", "hi", "expected"),
    [(1e-6, 10, [1e-6, 1e-4, 1e-2, 1]), (0.4, 7, [0.5, 1, 2, 5]), (1.6, 4.4, [2, 3, 4]), (2, 900, [3, 10, 30, 100, 300])],
)
def test_log_ticks_are_powers_then_steps_within_them(lo: float, hi: float, expected: list[float]) -> None:
    assert scales.log_ticks(lo, hi) == pytest.approx(expected)


@pytest.mark.parametrize("lo", [1e-9, 0.003, 1.0, 7e5])
@pytest.mark.parametrize("factor", [1.02, 1.5, 3, 40, 1e4, 1e12])
def test_log_ticks_lie_inside_and_are_few(lo: float, factor: float) -> None:
    found = scales.log_ticks(lo, lo * factor)
    assert found == sorted(found) and len(found) <= 8
    assert all(lo * 0.999999 <= v <= lo * factor * 1.000001 for v in found)


def test_a_path_reaches_every_point_and_breaks_at_nan() -> None:
    x, y = Scale(0, 4), Scale(0, 1)
    d = scales.path([(0, 0.0), (1, 1.0), (2, math.nan), (3, 0.5), (4, 0.0)], x, y)
    assert d.count("M") == 2
    assert corners(d) == [(0, GRID), (GRID // 4, 0), (3 * GRID // 4, GRID // 2), (GRID, GRID)]


def test_rounding_does_not_add_up_along_a_path() -> None:
    points = [(float(i), i / 3331) for i in range(3332)]
    assert corners(scales.path(points, Scale(0, 3331), Scale(0, 1)))[-1] == (GRID, 0)


def test_thinning_keeps_extremes_ends_and_gaps() -> None:
    values = [math.sin(i / 50) for i in range(20000)]
    values[7001], values[13002], values[500] = 9.0, -9.0, math.nan
    points = [(float(i), v) for i, v in enumerate(values)]
    kept = scales.thin(points, Scale(0, 19999), 100)
    assert len(kept) <= 4 * 101 + 1
    assert {(7001.0, 9.0), (13002.0, -9.0), points[0], points[-1]} <= set(kept)
    assert any(math.isnan(v) for _, v in kept)


def test_values_of_the_case_and_what_is_none() -> None:
    assert scales.value("Infinity") == math.inf and scales.value("-Infinity") == -math.inf
    assert all(math.isnan(scales.value(v)) for v in ("NaN", None, True, "x", [], 10**400))
    assert scales.points([[1, 2.0], [None, 3], "ab", [3, "NaN"]])[0] == (1.0, 2.0)
    assert [s for s, _ in scales.points([[1, 2.0], [None, 3], "ab", [3, "NaN"]])] == [1.0, 3.0]


def test_labels_never_overlap_and_harm_goes_first() -> None:
    labels = [Label(i / 20, f"restart number {i}", "restart") for i in range(20)] + [Label(0.5, "NaN from 10", "nonfinite")]
    placed = place(labels, rows=2)
    assert placed[0].kind == "nonfinite"
    for row in (0, 1):
        spans = sorted((p.x * 900 - len(p.text) * 6.9 * p.end, p.x * 900 + len(p.text) * 6.9 * (not p.end)) for p in placed if p.row == row)
        assert len(spans) > 1
        assert all(b <= c for (_, b), (c, _) in pairwise(spans))
    assert any(p.wide for p in placed) and not placed[0].wide


def test_a_panel_is_well_formed_and_says_what_it_shows() -> None:
    points = [(float(i), 2.0 + i % 3) for i in range(50)] + [(50.0, math.nan), (51.0, math.nan)]
    svg = chart.panel(
        [Curve(points), Curve([(10.0, 3.0), (20.0, 3.5)], "old"), Curve([(5.0, 2.5)], "eval")],
        Scale(0, 60),
        Look('loss "<&>"', 120, True,
             bands=[{"from": 30, "to": None, "kind": "slow"}, {"from": 40, "to": 40, "kind": "fast"}],
             marks=[{"step": 12, "label": "<restart>", "kind": "restart"}, {"step": 99, "label": "off", "kind": "event"}]),
    )  # fmt: skip
    root = ET.fromstring(svg)
    assert root.attrib["aria-label"] == 'loss "<&>"' and root.attrib["role"] == "img"
    bands = {e.attrib["class"]: e.attrib for e in root.iter("rect")}
    assert bands["band slow"]["width"] == "50.00%"
    assert float(bands["band fast"]["width"].rstrip("%")) > 0
    assert [e.attrib["x1"] for e in root.iter("line") if e.attrib["class"] == "nan"] == ["83.33%"]
    text = "".join(root.itertext())
    assert "<restart>" in text and "off" not in text and "NaN from 50" in text
    order = [e.attrib["class"] for e in root.iter("path")]
    assert order == ["old", "run", "eval"]
    assert "style=" not in svg


def test_a_constant_has_one_label() -> None:
    svg = chart.panel([Curve([(0.0, 32.0), (9.0, 32.0)])], Scale(0, 9), Look("batch size", 44, True))
    assert "".join(ET.fromstring(svg).itertext()) == "32"


@pytest.mark.parametrize(("kind", "marks"), [("run", 2), ("eval", 2), ("limit", 0), ("noise", 0), ("zero", 0)])
def test_what_was_logged_has_marks_and_a_line_for_a_height_has_none(kind: str, marks: int) -> None:
    drawn = chart.panel([Curve([(0, 1.0), (9, 2.0)], kind)], Scale(0, 9), Look("says", 120, False))
    assert str(drawn).count("<circle") == marks


def test_a_long_label_of_a_finding_becomes_its_kind() -> None:
    mark = {"step": 7, "label": "a sentence that is far too long for a chart", "kind": "event", "finding": "grad_spike-7-2"}
    svg = chart.panel([Curve([(0.0, 1.0), (9.0, 2.0)])], Scale(0, 9), Look("x", 120, False, marks=[mark]))
    assert "7: grad spike" in "".join(ET.fromstring(svg).itertext())


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(("lo", "hi"), [(1.0, 100.0), (-1e308, 1e308), (5.0, 5.0), (0.0, 1e-310)])
def test_many_values_lie_where_each_does(log: bool, lo: float, hi: float) -> None:
    scale = Scale(lo, hi, log)
    values = [lo, hi, (lo / 2 + hi / 2), lo - 1, hi * 2, 0.0, 3.5]
    places = scale.all(values)
    assert places == [scale(v) for v in values] and all(0 <= p <= 1 for p in places)
    if lo < hi and not log:
        assert places[:3] == [0.0, 1.0, pytest.approx(0.5)]


@pytest.mark.parametrize("lo", [5e-324, 1e-310, 2.3e-308, 1e-300, 1e-12, 1.0])
@pytest.mark.parametrize("hi", [5e-324, 3e-323, 1e-310, 2.0, 1e250, 1.7e308])
@pytest.mark.parametrize("log", [True, False])
def test_any_positive_numbers_have_a_scale_with_ticks_inside(lo: float, hi: float, log: bool) -> None:
    lo, hi = min(lo, hi), max(lo, hi)
    y = scales.scale([lo, hi], log)
    assert 0 <= y.lo < y.hi < math.inf
    found = scales.log_ticks(y.lo, y.hi) if y.log else scales.ticks(y.lo, y.hi)
    assert all(math.isfinite(v) for v in found) and len(found) < 60
    curve = chart.Curve([(0.0, lo), (1.0, hi)])
    assert "nan" not in chart.panel([curve], scales.Scale(0, 1), Look("x", 90, log))
