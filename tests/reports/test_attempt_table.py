"""The attempts of a run, on the page and in Markdown."""

from __future__ import annotations

import re
from typing import Any

import cases
import pytest

from reports import attempt_table, html, markdown
from reports.schema import complete

RESUMED = "train.log line 115: Resuming training from out (iter 400)"


def restarted(n: int) -> dict[str, Any]:
    case = cases.healthy()
    told = [cases.attempt(i, 100 * i, 100 * i + 150, None, None, f"stopped for the {i}th time") for i in range(n)]
    case["run"]["attempts"] = [told[0], *(a | {"evidence": RESUMED} for a in told[1:])]
    return case


def test_what_shows_that_an_attempt_continues_the_run_stands_on_the_page_and_in_markdown() -> None:
    for text in (html.render(restarted(2)).partition('<script type="application/json"')[0], markdown.render(restarted(2))):
        table = text[re.search(r"(?i)<h3[^>]*>2 attempts|## Attempts", text).start() :]  # type: ignore[union-attr]
        at = [
            table.lower().index(x.lower()) for x in ("attempt", "steps", "why it ended", "what shows that", "stopped for the 0th", RESUMED)
        ]
        assert at == sorted(at)
        assert "started" not in table[: at[-1]].lower()  # no clock was logged


def test_the_first_line_leads_to_the_table() -> None:
    page = html.render(restarted(3))
    assert '<a href="#attempts">3 attempts</a>' in page and page.index('id="attempts"') > page.index('id="timeline"')


@pytest.mark.parametrize(("n", "more"), [(attempt_table.OPEN, ""), (attempt_table.OPEN + 1, "1 more attempt"), (9, "3 more attempts")])
def test_many_attempts_are_folded(n: int, more: str) -> None:
    page, text = html.render(restarted(n)), markdown.render(restarted(n))
    assert (f"<summary>{more}</summary>" in page and f"and {more} in the case file" in text) if more else "more attempt" not in page + text
    assert f"stopped for the {n - 1}th time" in page and (f"stopped for the {n - 1}th time" in text) == (not more)


def test_of_a_case_without_evidence_there_is_no_column_of_it() -> None:
    head, rows = attempt_table.table(complete(cases.replayed()))
    assert head == ["attempt", "steps", "started", "ended", "why it ended"]
    assert rows[1] == ["1", "300 to 599", "2026-11-21 03:01:30 UTC", "2026-11-21 03:46:21 UTC", "finished"]
    assert "Why it ended" in html.render(cases.replayed()) and "What shows" not in html.render(cases.replayed())


def test_one_attempt_needs_no_table() -> None:
    assert attempt_table.table(complete(cases.healthy())) == ([], [])
    assert 'id="attempts"' not in html.render(cases.healthy()) and "## Attempts" not in markdown.render(cases.healthy())


def test_attempts_of_a_run_that_counts_epochs() -> None:
    case = restarted(2)
    case["run"]["axis"] = {"unit": "epoch", "steps": [0, 250], "says": ""}
    assert attempt_table.table(complete(case))[0][1] == "epochs"


def test_a_log_line_of_an_attempt_stays_text() -> None:
    case = restarted(2)
    case["run"]["attempts"][1] |= {"why": cases.HOSTILE, "evidence": cases.HOSTILE * 50}
    page = html.render(case).partition('<script type="application/json"')[0]
    assert "<img src=x" not in page and "<b>bold" not in page and "more characters)" in page
