"""What the page may take of its reader: sizes of type, screens, sheets of paper, and nothing to do said twice."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import cases
import pytest

import forensics
from reports import do_next, first_rows, html, missing, quiet_series, timeline_chart
from reports.schema import complete

SAMPLES = Path(__file__).parents[2] / "samples"
SIZES = """() => [...new Set([...document.querySelectorAll("body *")].filter((e) => !["SCRIPT", "STYLE"].includes(e.tagName)
  && [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())).map((e) => getComputedStyle(e).fontSize))]"""


def empty() -> Any:
    """A folder with a short log and nothing else."""
    case = cases.inconclusive()
    case["run"] |= {"last_lines": [{"path": "train.log", "lines": ["Loading the tokenizer", "Waiting for data"]}], "metrics": {}}
    case["timeline"] |= {"series": [], "marks": [], "bands": []}
    case["checks"] = [cases.check(f"check_{i}", "cannot_tell", "loss.train was not logged") for i in range(60)]
    return case | {
        "findings": [],
        "hypotheses": [cases.ranked(cases.unknown(1.0))[0]],
        "sources": [cases.source("train.log", "console", 74, "")],
    }


@pytest.mark.parametrize("name", cases.ALL)
def test_six_sizes_of_type_on_screen_phone_and_paper(open_page: Any, name: str) -> None:
    page = open_page(html.render(cases.ALL[name]()))
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    seen = set(page.evaluate(SIZES))
    page.set_viewport_size({"width": 390, "height": 844})
    seen |= set(page.evaluate(SIZES))
    page.emulate_media(media="print")
    seen |= set(page.evaluate(SIZES))
    assert len(seen) <= 6 and all(float(s.removesuffix("px")).is_integer() for s in seen), seen


def test_an_empty_run_fits_one_screen_with_its_last_lines_and_one_command(open_page: Any) -> None:
    page = open_page(html.render(empty()), viewport={"width": 1440, "height": 900})
    assert page.evaluate("document.documentElement.scrollHeight") <= 900
    text = page.locator("#answer").inner_text()
    assert "train.log" in text and "Waiting for data" in text and "forensics analyze FOLDER" in text
    assert page.locator("#timeline, #causes, #symptoms").count() == 0
    assert page.locator(".next .cmd").count() == 1


@pytest.mark.parametrize("name", ["spike", "nan", "replayed", "healthy", "inconclusive"])
def test_a_run_of_six_hundred_steps_prints_on_five_sheets(open_page: Any, name: str) -> None:
    pdf = open_page(html.render(cases.ALL[name]())).pdf(format="A4")
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 5


@pytest.mark.parametrize("sample", ["fp16_overflow_deepspeed", "lr_jump_stays_jsonl"])
def test_a_run_with_many_symptoms_prints_on_five_sheets_too(open_page: Any, sample: str) -> None:
    case = forensics.analyze(str(SAMPLES / sample)).to_json()
    pdf = open_page(html.render(case)).pdf(format="A4")
    assert len(case["findings"]) >= 10 and len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 5


@pytest.mark.parametrize("name", cases.ALL)
def test_at_most_four_things_to_do(name: str) -> None:
    assert 1 <= len(do_next.do_next(complete(cases.ALL[name]()))) <= 4


def test_the_line_that_killed_it_is_quoted_whole_and_not_in_the_headline(open_page: Any) -> None:
    case, line = cases.nan(), "RuntimeError: CUDA error: an illegal memory access was encountered while computing the attention of layer 7"
    case["run"] |= {"status": "crashed", "ending": {"kind": "exception", "says": line, "where": "train.log line 68"}}
    case["answer"] = f"Died after step 400: {line}. The cause is open."
    page = open_page(html.render(case))
    assert page.locator("h1").inner_text() == "Died after step 400. The cause is open."
    assert dict(first_rows.rows(complete(case)))["Log says"] == [f"`{line}` (train.log line 68)"]
    assert line in page.locator(".facts").inner_text()


def test_a_loss_that_came_back_needs_no_checkpoint() -> None:
    case = cases.spike()
    case["findings"] = [f for f in case["findings"] if f["kind"] == "loss_spike"]
    case["spikes"] = [s for s in case["spikes"] if s["end"] is not None]
    told = dict(first_rows.rows(complete(case)))
    assert told["Go back to"][0].startswith(
        "nothing to roll back by the training loss, which came back; the last checkpoint before it: `checkpoints/step_400.pt`"
    )
    case["spikes"][0]["end"] = None
    assert dict(first_rows.rows(complete(case)))["Go back to"][0].startswith("`checkpoints/step_400.pt`")


def test_checks_that_cannot_tell_are_grouped_by_what_was_missing() -> None:
    needs = {
        "a": ["loss.train"],
        "b": ["checkpoints"],
        "c": ["loss.eval", "acc.eval"],
        "d": ["metrics"],
        "e": ["lr"],
        "f": ["loss_scale"],
        "g": [],
    }
    checks = [cases.check(i, "error" if i == "e" else "cannot_tell", "whatever it says") | {"needs": n} for i, n in needs.items()]
    case = cases.healthy() | {"checks": checks}
    found = dict(missing.groups(complete(case)))
    assert found == {
        "checkpoints": ["b"],
        "evaluations": ["c"],
        "nothing: the check broke": ["e"],
        "settings, rate and source": ["f"],
        "training losses": ["a"],
        "other values": ["d", "g"],
    }


def test_constant_series_copies_and_counters_are_named_and_not_drawn() -> None:
    case, steps = cases.healthy(), range(0, 100, 10)
    more = {
        "other/constant": [[s, 3.0] for s in steps],
        "other/copy": case["timeline"]["series"][0]["lives"][0]["points"],
        "other/total_time": [[s, 2.0 * s] for s in steps],
        "other/odd": [[s, float(s % 30)] for s in steps],
    }
    case["timeline"]["series"] = [case["timeline"]["series"][0], *(cases.series(m, m, "", "linear", p) for m, p in more.items())]
    full = complete(case)
    quiet = quiet_series.quiet(full, timeline_chart.order(full))
    assert list(quiet.values()) == ["constant 3 throughout", "copy, the same as training loss", "total_time, which follows the step"]
    drawn = [p["title"] for p in timeline_chart.panels(full, timeline_chart.domain(full), quiet)]
    assert drawn == ["training loss", "odd"]
    assert "Not drawn: constant 3 throughout" in html.render(case)


def test_no_clock_is_written_twice_under_an_axis(open_page: Any) -> None:
    case = cases.spike()
    start = case["timeline"]["clock"][0]["points"][0][1]
    case["timeline"]["clock"] = [{"attempt": 0, "points": [[0, start], [599, start + 40]]}]
    page = open_page(html.render(case))
    stamps = [t for t in page.locator("#stack > div.gutter .axis text").all_text_contents() if ":" in t]
    assert len(stamps) == len(set(stamps)) > 2
