"""The section with training data in a real browser: text, pictures and tables, of friendly and of hostile content."""

from __future__ import annotations

from typing import Any

import cases
import numpy as np
import pytest

from forensics.read_data import column_numbers, sample_parts
from parsers.records.token_pieces import Vocabulary
from reports import html

HOSTILE = "<img src=x onerror=alert(1)></div></section><script>alert(2)</script>\u202e\x1b[2J" + "W" * 300
WORDS = Vocabulary("tokenizer.json", {0: "<|end|>", 1: " the", 2: "\n", 3: HOSTILE[:80]}, frozenset({0}), False)
ROWS: dict[str, list[dict[str, Any]]] = {
    "tokens": [{"input_ids": [1, 2, 3, 1, 9, *[0] * 30], "labels": [-100, 2, 3, 1, 9, *[-100] * 30]}, {"input_ids": list(range(3000))}],
    "texts": [{"text": HOSTILE * 20, HOSTILE: HOSTILE}, {"messages": [{"role": "user", "content": HOSTILE}]}],
    "pictures": [{"image": np.full((30, 20, 3), 77, np.uint8), "label": 1}, {"image": np.full((9, 500), np.nan), "label": 2}],
    "table": [{"age": 1.5, HOSTILE: HOSTILE, **{f"c{i}": i for i in range(60)}}, {"age": float("nan"), "city": "x"}],
}


def shown(rows: list[dict[str, Any]]) -> dict[str, Any]:
    samples = [{"id": i, "odd": i == 0, **sample_parts.parts(r, WORDS)} for i, r in enumerate(rows)]
    numbers = column_numbers.gathered(rows)
    one = {
        "step": 3,
        "how": "recorded",
        "findings": ["a"],
        "count": 9,
        "samples": samples,
        "why": "",
        "columns": column_numbers.beside(numbers, numbers),
    }
    return {"data": HOSTILE[:40], "kind": "JSON lines", "tokenizer": "tokenizer.json", "notes": [HOSTILE], "why": "", "rule": "the nearest", "hidden": 2,
            "suspects": [one], "ordinary": [one | {"step": 4}, one | {"step": 5}]}  # fmt: skip


@pytest.mark.parametrize("kind", ROWS)
def test_it_is_text_and_readable(open_page: Any, axe: Any, kind: str) -> None:
    text = html.render(cases.ALL[sorted(cases.ALL)[0]](), shown(ROWS[kind]))
    page = open_page(text, bypass_csp=True)
    assert page.locator("#data .batch").count() == 3
    assert page.locator("#data script").count() == 0 and page.locator("#data img[onerror]").count() == 0
    assert page.locator("#data img").count() == (6 if kind == "pictures" else 0)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert axe(page) == []
    for width in (1280, 375):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"it scrolls sideways at {width}"


def test_pictures_are_drawn_under_the_pages_own_policy(open_page: Any) -> None:
    page = open_page(html.render(cases.ALL[sorted(cases.ALL)[0]](), shown(ROWS["pictures"])))
    assert page.evaluate("[...document.querySelectorAll('#data img')].every(i => i.complete && i.naturalWidth > 0)")


def test_a_page_without_data_allows_no_picture() -> None:
    assert "img-src" not in html.render(cases.ALL[sorted(cases.ALL)[0]]())
