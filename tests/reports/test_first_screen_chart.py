"""The first screen: which chart stands there, what a replay proved, and what is left out of sight."""

from __future__ import annotations

from typing import Any

import cases

from reports import cause_ledger, checkpoint_table, do_next, first_screen, hero_chart, html, replay_section, timeline_chart
from reports.schema import complete

Case = dict[str, Any]


def drawn(case: Case) -> Case:
    full = complete(case)
    found = hero_chart.of(full, timeline_chart.domain(full))
    assert found is not None
    return found


def about(case: Case, kind: str, metric: str, tag: str, *, curve: bool) -> Case:
    """The case with one finding about a metric, with a curve of its own or without."""
    points = [[s, 10.0 if s < 300 else 40.0] for s in range(0, 600, 10)]
    data = {
        "metric": metric,
        "unit": "",
        "scale": "linear",
        "lives": [{"attempt": 0, "points": points[10:35]}],
        "window": [100, 340],
        "marks": [],
        "bands": [],
    }
    shown = [{"kind": "series", "title": tag, "data": data, "where": ""}] if curve else []
    f = cases.finding(f"{kind}-300", f"{tag} goes to 40", [300, 310], "critical", *shown)
    return case | {"findings": [f | {"kind": kind}], "timeline": case["timeline"] | {"series": [*case["timeline"]["series"], cases.series(metric, tag, "", "linear", points)]}}  # fmt: skip


def test_the_chart_is_of_the_metric_that_the_finding_is_about() -> None:
    found = drawn(about(cases.spike(), "lr_schedule", "other/rate", "rate", curve=True))
    assert (found["upper"]["tag"], found["upper"]["log"]) == ("rate", False)
    assert "last 40" in found["upper"]["svg"] and "highest 40" in found["upper"]["svg"]
    assert "shown above: steps 100 to 340" in found["overview"]
    without = drawn(about(cases.spike(), "odd_metric", "other/rate", "rate", curve=False))
    assert without["upper"]["tag"] == "rate"
    assert without["overview"] == ""  # it is the whole run
    memory = drawn(about(cases.spike(), "memory", "gpu.mem", "used_gib", curve=False))
    assert memory["upper"]["tag"] == "perf/memory"


def test_a_healthy_run_shows_its_loss() -> None:
    assert drawn(cases.healthy())["upper"]["title"] == "Training loss"


def test_the_gravest_finding_leads_then_what_speaks_for_the_cause() -> None:
    case = complete(cases.spike())
    ids = [f["id"] for f in first_screen.leading(case)]
    grave = [f["id"] for f in case["findings"] if f["severity"] in ("critical", "warning")]
    assert sorted(ids) == sorted(grave)
    assert [f["severity"] for f in first_screen.leading(case)] == sorted(f["severity"] for f in first_screen.leading(case))


def test_the_proof_follows_the_first_screen_and_says_what_the_logs_alone_said() -> None:
    case = complete(cases.replayed())
    alone = replay_section.logs_alone(case)
    assert alone is not None and alone < case["hypotheses"][0]["probability"]
    page = html.render(case)
    assert "proven by replay" in page and "By the logs alone" in page and "The proof: " in page
    assert page.index('<section id="answer"') < page.index('<section id="replay"') < page.index('<section id="causes"')
    undone = case | {"replay": case["replay"] | {"verdict": "undecided"}}
    assert replay_section.logs_alone(complete(undone)) is None
    assert "proven" not in html.render(undone)


def test_causes_below_one_percent_share_a_line_and_what_cannot_be_told_another() -> None:
    case = cases.spike()
    silent = [
        cases.clue("Cannot tell: no clock.", 0.0),
        cases.clue("Cannot tell: no rank.", 0.0),
        cases.clue("Cannot tell: no clock.", 0.0),
    ]
    leading, *others = case["hypotheses"]
    case["hypotheses"] = [leading | {"clues": [*leading["clues"], *silent]}, *(h | {"probability": 0.004} for h in others)]
    ledger = cause_ledger.causes(complete(case))
    assert ledger[0]["silent"] == ["no clock", "no rank"]
    assert not any("Cannot tell" in r["clue"]["text"] for r in ledger[0]["rows"] if "clue" in r)
    assert [c["likely"] for c in ledger] == [True, *[False] * len(others)]
    page = html.render(case)
    assert "Cannot tell: no clock; no rank." in page
    assert f"Under 1 %: {others[0]['title']}" in page
    assert first_screen.alternatives(complete(case)) == []


def test_nothing_to_do_is_told_twice() -> None:
    case = cases.spike()
    page = html.render(case)
    first, leading = page[: page.index('<section id="causes"')], page.split('<details class="cause')[1]
    for _, text in do_next.do_next(complete(case)):
        assert html.rich(text) in first
        assert html.rich(text) not in leading


def test_status_says_whether_the_cause_is_known() -> None:
    assert first_screen.status(complete(cases.spike()))[0] == "Cause likely"
    assert first_screen.status(complete(cases.replayed()))[0] == "Cause proven by replay"
    assert first_screen.status(complete(cases.healthy()))[0] == "Nothing found"
    assert first_screen.status(complete(cases.inconclusive())) == ("Inconclusive", "nothing found in 1 of 2 checks; the others had no data")
    case = cases.spike()
    case["hypotheses"] = cases.ranked(cases.unknown(0.99))
    assert first_screen.status(complete(case))[0] == "Cause open"


def test_causes_that_the_weights_cannot_tell_apart_are_named_together() -> None:
    case = cases.nan()
    first, second, *others = case["hypotheses"]
    case["hypotheses"] = [first | {"probability": 0.45}, second | {"probability": 0.44}, *others]
    assert first_screen.named(complete(case)) == "Overflow in fp16 or NaN from a layer"
    case["hypotheses"][1]["probability"] = 0.3
    assert first_screen.named(complete(case)) == first["title"]


def test_not_known_is_not_none() -> None:
    case = cases.spike()
    case["run"]["last_healthy_checkpoint"] = None
    saved = {"path": "a.pt", "step": 400, "kind": "full", "healthy": False}
    full = complete(case)
    full["run"]["checkpoints"]["rows"] = [saved]
    assert checkpoint_table.last_healthy(full) == "no healthy checkpoint"
    rows = [saved | {"step": None}]
    unnamed = full | {"run": full["run"] | {"checkpoints": full["run"]["checkpoints"] | {"rows": rows}}}
    assert checkpoint_table.last_healthy(unnamed) == "not known: the checkpoint does not say its step"
    unnamed["run"]["checkpoints"]["rows"] *= 2
    assert checkpoint_table.last_healthy(unnamed) == "not known: none of 2 checkpoints says its step"
    nowhere = full | {"findings": [f | {"steps": [None, None]} for f in full["findings"]]}
    assert checkpoint_table.last_healthy(nowhere) == "not known: nothing says at which step the trouble began"


def test_what_is_said_twice_is_one_row_with_both_weights() -> None:
    case = cases.spike()
    leading, *others = case["hypotheses"]
    twice = [
        cases.clue("It jumps. Where that is seen, this cause is common.", 5.0, "a"),
        cases.clue("It stays.", 1.0),
        cases.clue("It jumps.", 0.5, "a"),
    ]
    case["hypotheses"] = [leading | {"clues": twice, "score": 6.5}, *others]
    rows = cause_ledger.causes(complete(case))[0]["rows"]
    assert [(r["clue"]["text"][:9], r["sum"]) for r in rows] == [("It jumps.", 5.5), ("It stays.", 6.5)]
