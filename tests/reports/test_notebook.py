"""What a notebook shows of a case: the page in a sandboxed frame, with links that stay inside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cases
import pytest

import forensics
from forensics import notebook

SAMPLE = Path(__file__).parent.parent.parent / "samples" / "bad_batch_jsonl"
HOST = "<!doctype html><title>notebook</title><p id='cell'>out</p>{}"


@pytest.fixture(scope="module")
def case() -> Any:
    return forensics.analyze(str(SAMPLE))


def test_a_case_shows_itself(case: Any) -> None:
    assert case._repr_html_().startswith('<iframe sandbox="allow-scripts"')
    assert case._repr_html_() == case._repr_html_()
    line = repr(case)
    assert len(line) < 400 and "unhealthy" in line and case.answer in line and "\n" not in line


def test_the_page_works_in_its_frame(case: Any, open_page: Any) -> None:
    page = open_page(HOST.format(case._repr_html_()))
    frame = page.frame_locator("iframe")
    frame.locator("a.cite").first.click()
    finding = frame.locator("details.finding[open]").first
    finding.locator("a[data-from]").click()
    frame.locator("#stack .uplot").first.wait_for()
    frame.locator(".facts a").first.click()
    assert frame.locator("details.cause[open]").count() >= 1
    assert page.url.endswith(".html") and page.locator("#cell").inner_text() == "out"
    assert page.frames[1].url == "about:srcdoc"


def test_hostile_text_stays_in_the_frame(open_page: Any) -> None:
    page = open_page(HOST.format(notebook.frame(cases.hostile())))
    heading = page.frame_locator("iframe").locator("h1").inner_text()
    assert heading.startswith("</script><!--<script><img src=x onerror=alert(1)>")
    assert page.locator("img, b").count() == 0 and page.locator("body > *").count() == 2
