"""A real headless Chromium for the tests of the pages; they are skipped, with a reason, where there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    path = next((p for p in CHROMIUM if Path(p).exists()), None)
    if path is None:
        pytest.skip("no Chromium on this machine")
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with playwright.sync_playwright() as p:
        chromium = p.chromium.launch(executable_path=path, args=arguments)
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """open_page(html, "#anchor", **context options) opens a page from a file; at the end no request, no dialog and no
    complaint may have come from any of them."""
    contexts, complaints = [], []

    def opened(text: str, anchor: str = "", **options: Any) -> Any:
        file = tmp_path / f"page-{len(contexts)}.html"
        file.write_text(text, encoding="utf-8")
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}} | options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda m: complaints.append(m.text))
        page.on("pageerror", lambda e: complaints.append(str(e)))
        page.on("dialog", lambda d: (complaints.append(d.message), d.dismiss()))
        page.on("request", lambda r: r.url.partition("#")[0] != file.as_uri() and complaints.append(r.url))
        page.goto(file.as_uri() + anchor)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


CUT = """() => [...document.querySelectorAll("main *")].filter((e) => { const r = e.getBoundingClientRect(), o = (p) => getComputedStyle(p).overflowX;
  if (r.width < 2 || r.right <= innerWidth + 1) return false;
  for (let p = e; p && p !== document.body; p = p.parentElement) if (["auto", "scroll"].includes(o(p))) return false;
  return true; }).map((e) => e.tagName + "." + e.getAttribute("class") + ": " + e.textContent.slice(0, 40))"""


@pytest.fixture
def cut_off() -> Callable[[Any], list[str]]:
    """What reaches beyond the right edge of a window of 390 pixels and lies in no box that scrolls; folds open."""

    def found(page: Any) -> list[str]:
        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        page.set_viewport_size({"width": 390, "height": 844})
        return list(page.evaluate(CUT))

    return found


def axe_findings(page: Any, practices: bool = True) -> list[tuple[str, str, str]]:
    """What axe-core finds at WCAG 2 A and AA and, with ``practices``, of its best practices, in light and in dark: (scheme, rule, markup).
    Needs a page that bypasses its CSP."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    options = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", *["best-practice"] * practices]}, "resultTypes": ["violations"]}
    found = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        violations = axe.run(page, options=options).response["violations"]
        found += [(scheme, v["id"], v["nodes"][0]["html"][:200]) for v in violations]
    return found


@pytest.fixture
def axe() -> Callable[..., list[tuple[str, str, str]]]:
    return axe_findings
