"""The suspect samples on the page: strips where the replay has the losses of their parts, else bars."""

from __future__ import annotations

from typing import Any

import cases

from reports import html, replay_section, suspect_strips
from reports.schema import complete


def replayed(**told: Any) -> Any:
    case = cases.replayed()
    ranking = [{"row": i, "sample": 50 + i, "loss": 5.0 - i, "blamed": i < 1} for i in range(3)]
    case["replay"]["samples"] = [{"step": 418, "of": 3, "how": "ranked", "ranking": ranking, **told}]
    return case


STRIPS = {
    "each": "token", "per": 4, "ordinary": 420,
    "rows": [{"sample": 52, "blamed": True, "loss": 5.0, "parts": [0.0, 5.0, 10.0, "NaN", None]}, {"sample": 53, "blamed": False, "loss": 1.0, "parts": [1.0] * 5}],
    "beside": [{"sample": 7, "loss": 1.1, "parts": [1.0] * 5}],
}  # fmt: skip


def test_strips_say_what_a_cell_is_and_keep_the_suspects_apart() -> None:
    [shown] = suspect_strips.of(complete(replayed(strips=STRIPS)))
    assert "the mean of 4 tokens" in shown["says"] and "5 or more" in shown["says"]
    assert [(head, [r["sample"] for r in rows]) for head, rows in shown["groups"]] == [
        ("Left out, the effect is gone", [52]),
        ("Kept, without effect", [53]),
        ("Of an ordinary batch (step 420)", [7]),
    ]
    strip = str(shown["groups"][0][1][0]["strip"])
    assert '<path class="s5" d="M1 0h1v1h-1zM2 0h1v1h-1z"/>' in strip  # what is beyond the scale is as strong as it gets
    assert '<path class="odd" d="M3 0h1v1h-1z"/>' in strip and "M0 0" not in strip and "M4 0" not in strip
    page = html.render(replayed(strips=STRIPS))
    assert 'href="#suspects"' in page and page.index('id="suspects"') < page.index('id="causes"')


def test_without_parts_there_is_a_bar_a_sample() -> None:
    [shown] = suspect_strips.of(complete(replayed()))
    assert shown["says"] == "" and [len(rows) for _, rows in shown["groups"]] == [1, 2]
    assert 'width="100.00%" height="14"' in str(shown["groups"][0][1][0]["strip"])
    assert suspect_strips.of(complete(cases.spike())) == []
    assert suspect_strips.of(complete(replayed(ranking=[{"sample": 1, "loss": "NaN"}]))) == []  # nobody is blamed


def test_the_experiments_at_once_are_the_logged_run_and_both_outcomes() -> None:
    case = cases.replayed()
    curve = [[s, 1.0] for s in range(400, 420)]
    case["replay"]["arms"] = [
        {"name": f"arm {i}", "outcome": "spike" if i % 2 == 0 else "no spike", "peak": 1.0, "steps": i, "curve": curve} for i in range(10)
    ]
    shown, others = replay_section.telling(replay_section.arms(complete(case)))
    assert len(shown) == replay_section.OPEN and shown[0]["arm"]["name"] == "arm 0" and len(shown) + len(others) == 10
    assert {a["hit"] for a in shown} == {True, False}
    page = html.render(case)
    assert "4 more experiments" in page
