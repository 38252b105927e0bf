"""The replay's part of the page: charts that can be compared, and sentences that say no more than was measured."""

from __future__ import annotations

import re
from typing import Any

from reports import replay_section


def case(**told: Any) -> dict[str, Any]:
    return {"replay": {"verdict": "data", "device": "cpu", "noise_floor": 0.0, "steps_replayed": 60, **told}}


def arm(name: str, first: int, losses: list[Any], **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "outcome": "no spike",
        "peak": 1.0,
        "steps": len(losses),
        "curve": [[first + i, x] for i, x in enumerate(losses)],
        **more,
    }


def spots(row: dict[str, Any]) -> list[tuple[float, float]]:
    found = re.search(r'polyline points="([^"]*)"', str(row["bar"]))
    assert found is not None
    return [(float(a), float(b)) for a, b in (p.split(",") for p in found[1].split())]


def test_arms_over_the_same_steps_share_their_axis_and_others_have_their_own() -> None:
    rows = replay_section.arms(
        case(
            arms=[
                arm("as logged", 50, [1.0] * 10 + [3.0]),
                arm("replaced", 58, [1.0, 1.0, 1.0]),
                arm("elsewhere", 10, [3.0, 1.0]),
                arm("by heart", 55, [1.0, 0.5], apart=True),
            ]
        )
    )
    logged, replaced, elsewhere, heart = (spots(r) for r in rows)
    assert dict(logged[8:])[replaced[0][0]] == replaced[0][1]  # step 58 stands under step 58
    assert replaced[-1][0] == logged[-1][0] == replay_section.WIDTH
    assert (elsewhere[0][0], elsewhere[-1][0]) == (heart[0][0], heart[-1][0]) == (0, replay_section.WIDTH)
    assert elsewhere[0][1] == logged[-1][1]  # losses are on one scale in all of them


def test_a_loss_that_is_not_finite_is_a_mark_and_a_missing_curve_a_bar() -> None:
    rows = replay_section.arms(
        case(
            arms=[arm("as logged", 0, [1.0, "NaN", 1.0], outcome="nan"), {"name": "odd", "outcome": "undecided", "peak": None, "steps": 0}]
        )
    )
    assert str(rows[0]["bar"]).count("<line") == 1
    assert rows[0]["hit"]
    assert "polyline" not in str(rows[1]["bar"])
    assert replay_section.arms(case()) == replay_section.arms({"replay": None}) == []


def test_dependence_is_told_and_not_judged() -> None:
    encoder = replay_section.said(case(leaks={"future_change": 0.5, "future_gradient": 0.1, "other_samples_gradient": 0.0}))
    assert any("right for an encoder" in s for s in encoder)
    clean = replay_section.said(
        case(leaks={"future_change": 1e-7, "future_gradient": 0.0, "other_samples_gradient": 0.0, "padding_change": 0.0})
    )
    assert not any("depend" in s or "mask" in s for s in clean)
    mixed = replay_section.said(case(leaks={"other_samples_gradient": 0.2, "padding_change": 0.1}))
    assert any("other samples of its batch" in s for s in mixed)
    assert any("the mask is not applied everywhere" in s for s in mixed)


def test_what_was_not_tried_is_named() -> None:
    assert any(
        "Not tried for want of steps: clipping on, larger epsilon" in s
        for s in replay_section.said(case(not_tried=["clipping on", "larger epsilon"]))
    )
    assert not any("Not tried" in s for s in replay_section.said(case(not_tried=[])))


def test_an_experiment_and_what_is_said_of_it_stand_in_one_cell() -> None:
    assert replay_section.named({"name": "clipping on", "says": "at the usual norm, 0.5"}) == "clipping on: at the usual norm, 0.5"
    assert replay_section.named({"name": "clipping on"}) == "clipping on"
