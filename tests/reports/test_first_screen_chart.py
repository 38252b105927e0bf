"""The first screen: which chart stands there, what a replay proved, and what is left out of sight."""

from __future__ import annotations

from typing import Any

import cases
import pytest

from reports import cause_ledger, checkpoint_table, do_next, first_screen, hero_chart, html, replay_section, timeline_chart
from reports.chart import Curve
from reports.scales import Scale
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
    assert "40 at 340" in found["upper"]["svg"] and "highest 40" in found["upper"]["svg"]
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
    full["run"]["again"]["trouble_from"], whole = 355, full["run"]["checkpoints"]["rows"] + [saved | {"path": "b.pt", "healthy": True}]
    late = full | {"run": full["run"] | {"checkpoints": full["run"]["checkpoints"] | {"rows": whole}}}
    assert checkpoint_table.last_healthy(late) == "no healthy checkpoint from before step 355, where the trouble began"
    full["run"]["again"]["trouble_from"] = None
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


def curve(metric: str, points: list[list[float]], unit: str = "") -> Case:
    """A finding's window of a metric, beside a series of the timeline."""
    data = {
        "metric": metric,
        "unit": unit,
        "scale": "linear",
        "lives": [{"attempt": 0, "points": points}],
        "window": [0, 90],
        "marks": [],
        "bands": [],
    }
    return {"kind": "series", "title": metric, "data": data, "where": ""}


def proven(*shown: tuple[str, Case, str], series: list[Case]) -> Case:
    """A case whose leading cause cites these findings (id, window, severity), in this order."""
    case = cases.spike()
    findings = [cases.finding(i, f"{i} found", [50, 60], severity, w) for i, w, severity in shown]
    clue = cases.clue("It is so.", 9.0, *(i for i, _, _ in shown))
    leading, *others = case["hypotheses"]
    return case | {
        "findings": findings,
        "hypotheses": [leading | {"clues": [clue]}, *others],
        "timeline": case["timeline"] | {"series": series},
    }


RAMP = [[float(s), 1.0 + (s > 50)] for s in range(0, 100, 5)]


def test_a_rate_that_jumps_stands_above_the_loss_that_it_moved() -> None:
    loss, rate = cases.series("loss.train", "loss", "nats", "linear", RAMP), cases.series("lr", "rate", "", "linear", RAMP)
    told = [("lr_schedule-50", curve("lr", RAMP[8:14]), "warning"), ("loss_spike-55", curve("loss.train", RAMP), "critical")]
    found = drawn(proven(*told, series=[loss, rate]))
    assert (found["upper"]["title"], found["lower"]["title"]) == ("Learning rate", "Training loss")
    assert found["upper"]["tag"] == "rate" and "shown above: steps 0 to 95" in found["overview"]
    alone = drawn(proven(told[1], series=[loss, rate]))
    assert alone["upper"]["title"] == "Training loss" and alone["lower"] is None


def test_evaluation_stands_beside_training_with_the_gap() -> None:
    held, falls = [[0.0, 2.0], [30.0, 1.0], [60.0, 1.5], [90.0, 2.5]], [[float(s), 2.0 - s / 50] for s in range(0, 95, 5)]
    series = [cases.series("loss.train", "loss", "", "linear", falls), cases.series("loss.eval", "val", "", "linear", held)]
    found = drawn(proven(("train_eval_gap-30", curve("loss.eval", held), "warning"), series=series))
    assert [said for _, said in found["upper"]["keys"]] == ["training", "evaluation", "the gap"]
    assert all(f'class="{kind}"' in found["upper"]["svg"] for kind in ("gap", "run", "eval"))
    other = [series[0] | {"unit": "bits"}, series[1]]
    assert drawn(proven(("train_eval_gap-30", curve("loss.eval", held), "warning"), series=other))["upper"]["keys"] == []
    below = drawn(proven(("eval_jump-30", curve("loss.eval", [[s, v / 4] for s, v in held]), "warning"), series=series))
    assert "gap" not in dict(below["upper"]["keys"])  # evaluation is not above training throughout


def test_the_time_of_a_step_stands_beside_its_parts() -> None:
    series = [cases.series(m, m, "s", "linear", RAMP) for m in ("time.step", "time.data", "time.total")]
    found = drawn(proven(("throughput-50", curve("time.step", RAMP, "s"), "warning"), series=series))
    assert [said for _, said in found["upper"]["keys"]] == ["time a step", "time waiting for data"]


def test_a_picture_that_proves_it_is_drawn_once(open_page: Any) -> None:
    layers = {"starts": [0, 10, 20], "rows": [{"layer": f"l{i}", "cells": [0.0 if i else 1.0] * 3} for i in range(3)], "left_out": 0}
    case = proven(
        ("layer_gradients-frozen", {"kind": "table", "title": "t", "data": {"columns": [], "rows": []}, "where": ""}, "warning"), series=[]
    )
    page = open_page(html.render(case | {"pictures": {"layers": layers}}))
    assert page.locator("#picture-layers").count() == page.locator("#answer #picture-layers svg.heat").count() == 1
    assert "No gradient reaches l1 and l2." in page.locator("#answer").inner_text()


def test_strips_have_a_key_and_every_certainty_its_mark(open_page: Any) -> None:
    case = cases.spike()
    marks = set()
    for p in (0.97, 0.86, 0.6, 0.4):
        first, *others = case["hypotheses"]
        case["hypotheses"] = cases.ranked(first | {"probability": p}, *others)
        page = open_page(html.render(case))
        marks.add(page.evaluate("getComputedStyle(document.querySelector('p.verdict b'), '::before').content"))
        assert page.locator(".hero .key").count() >= 1 and page.locator(".hero .lb.fast, .hero .lb.slow").count() == 0
    assert len(marks) == 4


def test_a_peak_far_from_the_finding_is_not_marked_as_its_own() -> None:
    high = [[0.0, 1.0], [5.0, 9.0], *([float(s), 1.0] for s in range(10, 100, 5))]
    series = [cases.series("loss.train", "loss", "", "linear", high)]
    assert "9 at 5" not in drawn(proven(("resume_break-50", curve("loss.train", high), "warning"), series=series))["upper"]["svg"]
    case = proven(("resume_break-50", curve("loss.train", high), "warning"), series=series)
    case["findings"][0]["steps"] = [5, 6]
    assert "9 at 5" in drawn(case)["upper"]["svg"]


@pytest.mark.parametrize(("end", "label"), [(600, "0.5 at 368"), (368, "last 0.5")])
def test_the_last_value_of_a_window_is_that_of_the_run_at_its_end_only(end: int, label: str) -> None:
    drawn = [Curve([(float(s), 0.5) for s in range(327, 369)])]
    spots = hero_chart._spots(drawn, {}, Scale(327, 368), set(), hero_chart._run_end({"run": {"steps": [1, end]}}))
    assert [s.text for s in spots if s.kind == "last"] == [label]
