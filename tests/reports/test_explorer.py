"""The explorer of the timeline in a real browser: zoom by button, key, drag and link; what is marked while zoomed."""

from __future__ import annotations

import re
from typing import Any

import cases
import pytest

from reports import html


@pytest.fixture
def show(open_page: Any) -> Any:
    """Opens the page of a case by its name, or of a case."""

    def shown(case: Any, anchor: str = "", **options: Any) -> Any:
        return open_page(html.render(cases.ALL[case]() if isinstance(case, str) else case), anchor, **options)

    return shown


def test_zoom_from_a_finding_buttons_and_dragging(show: Any) -> None:
    page = show("spike")
    page.locator("#loss_spike-418 a[data-from]").click()
    assert page.locator("#stack .uplot").count() == 4
    assert page.locator("#readout").inner_text() == "Steps 392 to 457"
    page.locator("#z-in").click()
    assert page.locator("#readout").inner_text() != "Steps 392 to 457"
    page.locator("#z-all").click()
    assert page.locator("#stack .uplot").count() == 0
    box = page.locator("#stack .panel svg.plot").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 4, box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 60)
    page.mouse.up()
    first, last = (int(n) for n in re.findall(r"\d+", page.locator("#readout").inner_text()))
    assert abs(first - 599 / 4) < 3 and abs(last - 599 / 2) < 3
    plot = page.locator("#stack .u-over").first.bounding_box()
    page.mouse.move(plot["x"] + plot["width"] / 2, plot["y"] + 20)
    assert re.fullmatch(r"Step 22\d, 2026-11-21 \d\d:\d\d:\d\d UTC", page.locator("#readout").inner_text())
    page.locator("#theme").click()
    assert page.locator("#stack .uplot").count() == 4


def test_zoom_by_keyboard_on_a_run_with_nan(show: Any) -> None:
    page = show("nan")
    page.locator("#z-in").focus()
    page.keyboard.press("Enter")
    assert page.locator("#readout").inner_text() == "Steps 100 to 300"
    page.locator("#z-right").focus()
    page.keyboard.press("Enter")
    assert page.locator("#readout").inner_text() == "Steps 167 to 367"


def test_zoomed_charts_fit_a_phone_and_mark_nan(show: Any) -> None:
    page = show("nan", viewport={"width": 375, "height": 800})
    page.locator("#z-in").click()
    page.locator("#z-right").click()
    assert page.locator("#stack .uplot").count() == 3
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    red = """() => {
      const c = document.querySelector("#stack canvas");
      const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
      let n = 0;
      for (let i = 0; i < d.length; i += 4) n += d[i] > 150 && d[i + 1] < 60 && d[i + 2] < 60;
      return n;
    }"""
    assert page.evaluate(red) > 50


def test_a_link_zooms_and_the_address_follows(show: Any) -> None:
    page = show("spike", "#steps=400-440")
    assert page.locator("#stack .uplot").count() == 4
    assert page.locator("#readout").inner_text() == "Steps 400 to 440"
    assert page.locator("#timeline").bounding_box()["y"] < 200
    page.locator("#loss_spike-418 a[data-from]").click()
    assert page.url.endswith("#steps=392-457")
    page.locator("#z-all").click()
    assert page.url.endswith("#timeline")


def test_the_explorer_shows_every_point_of_a_finding_and_follows_with_its_lanes(show: Any) -> None:
    case = cases.spike()
    loss = case["timeline"]["series"][0]
    for attempt in loss["lives"]:
        attempt["points"] = attempt["points"][::40]  # a long run, thinned; the finding's window has every step
    page = show(case, "#steps=410-426")
    over = page.locator("#stack .u-over").first
    box = over.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20)
    assert page.locator("#stack .val").first.inner_text().startswith("4.06")
    lanes = page.locator(".lanes").bounding_box()
    assert lanes["width"] > 30 * box["width"] and page.locator(".lanebox").bounding_box()["width"] < 1200


def test_the_replayed_steps_have_a_lane(show: Any) -> None:
    case = cases.replayed()
    case["replay"] |= {"from": {"step": 400, "checkpoint": "a.pt", "parts": ["model"]}, "steps": [418, 431]}
    page = show(case)
    lane, plot = page.locator(".life.replay").bounding_box(), page.locator(".lanes").bounding_box()
    assert lane["width"] / plot["width"] == pytest.approx(31 / 599, abs=0.01)


@pytest.mark.parametrize("first", [2**62, 2**53, -(2**62), 2**63 - 5000])
def test_steps_that_no_axis_can_tell_apart_are_drawn_but_not_zoomed(show: Any, first: int) -> None:
    case = cases.spike()
    for series in case["timeline"]["series"]:
        for attempt in series["lives"]:
            attempt["points"] = [[first + s, v] for s, v in attempt["points"]]
    case["run"]["steps"] = [first, first + 599]
    page = show(case, f"#steps={first}-{first + 3}")
    for button in ("#z-in", "#z-left", "#z-out", "#z-all", "#z-in"):
        page.locator(button).click()
    assert "cannot be zoomed" in page.locator("#readout").inner_text()
    assert page.locator("#stack .uplot").count() == 0


@pytest.mark.parametrize("log", ["log", "linear"])
def test_values_at_the_ends_of_a_float_are_zoomed(show: Any, log: str) -> None:
    case = cases.spike()
    ends = [5e-324, 1e-310, 1.7e308, 2.5, 0.0 if log == "linear" else 1e-5]
    for series in case["timeline"]["series"]:
        series["scale"] = log
        for attempt in series["lives"]:
            attempt["points"] = [[s, ends[i % 5]] for i, (s, _) in enumerate(attempt["points"])]
    page = show(case)
    page.locator("#z-in").click()
    page.locator("#z-in").click()
    assert page.locator("#stack .uplot").count() > 3
