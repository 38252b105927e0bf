"""The pictures of a page: each from plain numbers of the case, only where there is something to see."""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from reports import attempts_picture, clock_ticks, guard_picture, html, layer_picture, picture_list, rank_picture
from reports.scales import Scale
from reports.schema import complete
from tests.reports import cases

Case = dict[str, Any]
STARTS = list(range(0, 600, 100))


def drawn_from(**pictures: Any) -> Case:
    case = cases.base("a", "unhealthy", "It went wrong.")
    return complete(case | {"pictures": pictures})


def ranks(**changes: Any) -> Case:
    rows = [{"rank": r, "last": 599, "cells": [1.0, 1.0, 1.0, 1.0, 1.0, 1.4 if r == 2 else 1.0]} for r in range(4)]
    return {
        "metric": "time.step",
        "starts": STARTS,
        "rows": rows,
        "waits": [],
        "silent": [],
        "heard": [],
        "until": None,
        "left_out": 0,
    } | changes


FULL: dict[str, Any] = {
    "ranks": ranks(
        waits=[{"rank": r, "collective": 3121, "operation": "BROADCAST" if r else "ALLREDUCE"} for r in range(3)], silent=[3],
        heard=[{"rank": r, "from": cases.START, "to": cases.START + 100 - 60 * (r == 3)} for r in range(4)], until=cases.START + 700,
    ),
    "layers": {"starts": STARTS, "left_out": 2, "rows": [
        {"layer": "grad/a", "cells": [1.0, 0.1, 0.01, None, 0.0, 0.0]}, {"layer": "grad/b", "cells": [1, 2, 3, 4, "Infinity", "Infinity"]}]},
    "memory": {"metric": "gpu.mem", "tag": "mem", "points": [[0, 10], [599, 39]], "capacity": 40.0, "where": "train.log line 8", "tried": 2.0},
    "seeds": {"metric": "loss.train", "unit": "", "scale": "log", "left_out": 0,
              "runs": [{"id": f"s{i}", "seed": i, "last": 0.1 * i, "points": [[0, 1.0], [599, 0.1 * i]]} for i in (1, 2, 9)]},
    "baseline": {"path": "runs/good", "metric": "loss.train", "unit": "", "scale": "log", "run": [[0, 1], [599, 0.6]], "baseline": [[0, 1], [599, 0.5]],
                 "difference": {"unit": "%", "points": [[0, 0], [599, 20]], "level": [[0, 0], [599, 20]], "noise": 1.0, "parts": 300}},
    "evaluation": {"metric": "loss.eval", "tag": "val", "unit": "", "how": "logged as val_stderr", "best": 300, "alike": 2, "alike_from": 200,
                   "alike_last": True, "points": [[s, 1 / (s + 1), 0.01] for s in STARTS]},
}  # fmt: skip


def test_a_case_without_pictures_has_no_section() -> None:
    assert picture_list.pictures(drawn_from()) == []
    assert 'id="pictures"' not in html.render(cases.base("a", "healthy", "Nothing went wrong."))


def test_each_picture_stands_on_the_page_with_its_sentence() -> None:
    case = cases.base("a", "unhealthy", "It went wrong.") | {"pictures": copy.deepcopy(FULL)}
    page = html.render(case)
    assert re.findall(r'id="picture-([\w-]+)"', page) == ["hang", "ranks", "memory", "layers", "baseline", "seeds", "evaluation"]
    for said in (
        "No rank logged a step in the last 10 minutes. Rank 3 stopped first",
        "Collective 3121: ranks 1 and 2 wait in BROADCAST.",
        "Rank 3 says nothing.",
        "At most 39 of 40 GiB (98 %), at step 599; the last request was for another 2 GiB.",
        "Not finite first at about step 400: b.",
        "2 layers with nothing to see left out.",
        "From step 300 on this run is apart from the baseline: 20 % higher at the end.",
        "the best at 0.1 (s1), the worst at 0.9 (s9)",
        "An evaluation is uncertain by \u00b10.02 (two standard errors, logged as val_stderr).",
        "does not stand out from 2 others, the first at step 200; the last is one of them.",
    ):
        assert said in page, said


def test_the_rank_that_is_apart_is_named_and_shaded() -> None:
    shown = rank_picture.picture(drawn_from(ranks=ranks()))
    assert shown is not None and "h-over4" in shown["svg"] and "h-odd" not in shown["svg"]
    late = ranks()
    late["rows"][2]["cells"] = [1, 1, 1, 1.5, 1.5, 1.5]
    late["rows"][1]["last"] = 310
    told = rank_picture.picture(drawn_from(ranks=late))
    assert told is not None and "rank 2 is 50 % above the median of the ranks (time a step)" in told["says"]
    assert "Rank 1 stopped first, at step 310; the others came to step 599." in told["says"]
    assert "the same value until about step 300" in told["says"]


def test_a_gradient_of_zero_and_one_that_is_not_finite_have_marks_of_their_own() -> None:
    shown = layer_picture.picture(drawn_from(layers=FULL["layers"]))
    assert shown is not None
    assert {kind for kind, _ in shown["legend"]} == {"h-low1", "h-low8", "h-zero", "h-odd"}
    assert all(f'class="{kind}"' in shown["svg"] for kind in ("h-zero", "h-odd"))
    still = {"starts": STARTS, "rows": [{"layer": n, "cells": [v] * 6} for n, v in (("x/head", 1.0), ("x/body", 0.0))]}
    told = layer_picture.picture(drawn_from(layers=still))
    assert told is not None and told["says"] == "No gradient reaches body."


def test_repeated_work_and_down_time_are_told_apart_on_the_clock() -> None:
    case = cases.spike()
    case["run"]["goodput"] = {"seconds_running": 6759.0}
    shown = attempts_picture.picture(complete(case))
    assert shown is not None
    assert {kind for kind, _ in shown["legend"]} == {"a-kept", "a-again", "a-down"}
    assert "down 6 minutes" in shown["says"] and "work repeated 23 minutes" in shown["says"]
    case["run"]["goodput"] = {"seconds_running": None}  # a clock in doubt
    assert attempts_picture.picture(complete(case)) is None


def test_a_silence_takes_its_time_from_the_work() -> None:
    case = cases.base("a", "unhealthy", "It hung.")
    case["run"]["goodput"] = {"seconds_running": 5391.0}
    case["findings"] = [{"id": "stall-9", "kind": "stall", "title": "Silence", "steps": [9, None], "severity": "critical", "evidence": [],
                         "times": ["2026-11-21T03:08:03Z", None], "facts": {"seconds": 600.0}}]  # fmt: skip
    shown = attempts_picture.picture(complete(case))
    assert shown is not None and "silent 10 minutes (11 %)" in shown["says"]


def test_guards_are_drawn_where_they_differ_from_the_harm() -> None:
    row = {"guard": "loss_z", "tag": "loss", "fired": 418, "lead": 0, "false_alarms": 0, "healthy_values": 400}
    case = drawn_from() | {"guards": {"best": "loss_z", "says": "", "rows": [row]}}
    assert guard_picture.picture(case) is None
    case["guards"]["rows"] = [row, row | {"guard": "grad_z", "fired": 406, "lead": 12, "false_alarms": 3}]
    shown = guard_picture.picture(case)
    assert shown is not None and shown["says"] == "2 guards of 2 would have caught it; the earliest, grad_z, at step 406."
    assert "406, 3 false alarms" in shown["svg"]


@pytest.mark.parametrize("span", [3, 40, 300, 5400, 80_000, 10 * 86400, 400 * 86400])
def test_moments_on_a_clock_neither_repeat_nor_crowd(span: int) -> None:
    found = clock_ticks.ticks(cases.START, cases.START + span, 5)
    assert 1 <= len(found) <= 6
    names = [(clock, day) for _, clock, day in found]
    assert len({clock for _, clock, _ in found}) == len(found) or all(day for _, day in names)
    assert all(b[0] > a[0] for a, b in pairwise(found))
    assert len(clock_ticks.drawn(Scale(cases.START, cases.START + span), 10)) >= len(found)


def test_a_damaged_case_still_makes_a_page() -> None:
    broken = {
        "ranks": {"rows": [{"rank": None, "cells": ["x"]}], "heard": [{}]}, "layers": {"rows": [7], "starts": "no"}, "memory": {"points": [[1, 2]]},
        "seeds": {"runs": [{"points": [[0, 1]]}, {"points": [[0, "NaN"]]}]}, "baseline": {"run": [[0, 1]], "baseline": [[0, 1]]},
        "evaluation": {"points": [[1, None, None]]},
    }  # fmt: skip
    for kept in (broken, dict.fromkeys(broken), {k: {} for k in broken}, dict.fromkeys(broken, math.nan)):
        assert "<h1" in html.render(cases.base("a", "unhealthy", "It went wrong.") | {"pictures": kept})


@pytest.mark.parametrize("viewport", [{"width": 375, "height": 800}, {"width": 1440, "height": 900}])
def test_pictures_are_accessible_and_fit(open_page: Callable[..., Any], axe: Callable[[Any], Any], viewport: Case) -> None:
    case = cases.base("a", "unhealthy", "It went wrong.") | {"pictures": copy.deepcopy(FULL)}
    page = open_page(html.render(case), viewport=viewport, bypass_csp=True)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert axe(page) == []
    crowded = """[...document.querySelectorAll(".picture .axis, .picture .plot")].flatMap(svg => {
      const t = [...svg.querySelectorAll("text.xl")].filter(e => getComputedStyle(e).display !== "none").map(e => e.getBoundingClientRect());
      return t.flatMap((a, i) => t.slice(i + 1).filter(b => a.left < b.right && b.left < a.right && a.top < b.bottom - 2 && b.top < a.bottom - 2)); }).length"""
    assert page.evaluate(crowded) == 0
