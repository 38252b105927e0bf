"""How far a run came and how it ended, told on the first screen without one number contradicting another."""

from __future__ import annotations

from typing import Any

import cases
import pytest

from reports import do_next, html, markdown
from reports.labels import Label, place
from reports.schema import complete


def with_run(**more: Any) -> dict[str, Any]:
    case = cases.healthy()
    case["run"] |= more
    return case


def first(case: dict[str, Any]) -> str:
    page = html.render(case)
    return page[page.index('id="answer"') : page.index('id="causes"')]


def test_epochs_are_not_called_steps() -> None:
    page = first(with_run(steps=[0, 9], step_unit="epoch", axis={"unit": "epoch", "steps": [0, 9], "says": ""}))
    assert "finished, epochs 0 to 9" in page and "<b>Epochs 0 to 9</b>" in page and "count" not in page
    assert '<text class="yl" x="-7" y="14">epoch</text>' in page


def test_two_ways_to_count_are_both_told() -> None:
    page = first(with_run(steps=[0, 9], step_unit="epoch", axis={"unit": "step", "steps": [0, 35109], "says": "made"}))
    assert "<b>Epochs 0 to 9</b>" in page and "charts count steps 0 to 35109" in page
    assert '<text class="yl" x="-7" y="14">step</text>' in page


def test_where_the_ending_is_told() -> None:
    case = with_run(ending={"kind": "finished", "says": "Training done", "where": "train.out line 1028"})
    assert "<code>Training done</code> (train.out line 1028)" in first(case)
    assert "- Log says: `Training done` (train.out line 1028)" in markdown.render(case)
    assert "Log says" not in first(cases.healthy())


@pytest.mark.parametrize(("kind", "done"), [("finished", True), ("unknown", True), ("cut", False), ("scheduler", False), ("signal", False)])
def test_a_run_that_was_stopped_is_not_said_to_need_nothing(kind: str, done: bool) -> None:
    said = do_next.do_next(complete(with_run(ending={"kind": kind, "says": "", "where": ""})))[0][1]
    assert (said == "Nothing needs doing.") == done and ("resume it" in said) != done


def test_no_probability_where_no_cause_was_weighed_against_another() -> None:
    case = cases.nan()
    case["hypotheses"] = cases.ranked(cases.unknown(1.0))
    page = first(case)
    assert "fits what was logged" in page and "decide between them" not in page and "99.9" not in page


def test_restarts_at_one_step_have_one_label() -> None:
    assert len(place([Label(0.5, "405: restart", "restart")] * 4)) == 1
