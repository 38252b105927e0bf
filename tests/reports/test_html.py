"""The page, in a real browser: no request, no error, readable without script, accessible, printable, safe."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import cases
import pytest

from reports import html, run_list, schema, symptom_list

UPLOT = {
    "uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    "LICENSE": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
}
PAGES = {name: html.render(make()) for name, make in cases.ALL.items()}


class Parsed(HTMLParser):
    """Tags with their attributes, and the text of scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.raw: list[tuple[str, str]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.cdata_elem:
            self.raw.append((self.cdata_elem, data))


def embedded(page: str) -> Any:
    found = re.search(r'<script type="application/json" id="case">(.*?)</script>', page, re.S)
    assert found
    return json.loads(found[1])


# --- the text of the page -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", cases.ALL)
def test_the_same_case_gives_the_same_bytes(name: str) -> None:
    assert html.render(cases.ALL[name]()) == PAGES[name]


@pytest.mark.parametrize("name", cases.ALL)
def test_the_page_carries_its_case(name: str) -> None:
    assert embedded(PAGES[name]) == schema.plain(cases.ALL[name]())


@pytest.mark.parametrize("name", cases.ALL)
def test_only_our_own_style_and_scripts_and_nothing_fetched(name: str) -> None:
    parsed = Parsed(PAGES[name])
    policy = next(a["content"] or "" for t, a in parsed.tags if t == "meta" and a.get("http-equiv"))
    assert policy.startswith("default-src 'none'; base-uri 'none'; form-action 'none';")
    assert "unsafe" not in policy and "*" not in policy
    code = [text for tag, text in parsed.raw if tag in ("script", "style") and not text.startswith("{")]
    hashes = {base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in code}
    assert hashes == set(re.findall(r"'sha256-([^']+)'", policy)) and len(hashes) == 3
    for tag, attrs in parsed.tags:
        assert tag not in ("img", "link", "iframe", "object", "embed", "base", "form")
        assert not [a for a in attrs if a.startswith("on") or a in ("style", "src", "srcset", "action")]
        assert (attrs.get("href") or "#").startswith("#")


@pytest.mark.parametrize("name", cases.ALL)
def test_ids_are_unique_and_every_link_has_its_target(name: str) -> None:
    tags = Parsed(PAGES[name]).tags
    ids = [a["id"] for _, a in tags if a.get("id")]
    assert len(ids) == len(set(ids))
    assert {(a["href"] or "")[1:] for t, a in tags if t == "a"} <= set(ids)


def test_vendored_files_are_those_of_npm() -> None:
    assert {n: hashlib.sha256((html.VENDOR / n).read_bytes()).hexdigest() for n in UPLOT} == UPLOT


def test_sizes() -> None:
    assert len(PAGES["spike"]) < 300_000
    assert len(PAGES["crowded"]) < 2_000_000


def test_the_trap_of_a_metric_stands_beside_its_name() -> None:
    case = cases.spike()
    case["run"]["metrics"]["loss.train"]["trap"] = "A mean of ten steps."
    assert html.render(case).count("A mean of ten steps.") == 2  # in the list of metrics and in the case that the page carries


def test_what_is_not_json_is_embedded_as_the_contract_says() -> None:
    case = cases.healthy()
    case["findings"] = [cases.finding("nonfinite-1", "bad", [1, 1], "info", facts={"worst": float("nan")})]
    assert embedded(html.render(case))["findings"][0]["facts"]["worst"] == "NaN"


def test_a_damaged_case_still_gives_a_page() -> None:
    """Any one value of a case replaced by something else: a page all the same."""
    rng, junk = random.Random(7), [None, "x", -1, 10**30, [], {}, True, [1], {"a": 1}, [[1]]]

    def spots(x: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        for key, inner in x.items() if isinstance(x, dict) else enumerate(x[:3]) if isinstance(x, list) else ():
            yield (*path, key)
            yield from spots(inner, (*path, key))

    small = cases.replayed()
    for series in small["timeline"]["series"]:
        for attempt in series["lives"]:
            attempt["points"] = attempt["points"][::60]
    for path in rng.sample(list(spots(small)), 120):
        case = json.loads(json.dumps(small))
        holder = case
        for key in path[:-1]:
            holder = holder[key]
        holder[path[-1]] = rng.choice(junk)
        assert html.render(case).endswith("</html>\n"), path


# --- in the browser -------------------------------------------------------------------------------------------------


@pytest.fixture
def show(open_page: Any) -> Any:
    """Opens the page of a case, or a page given as its text."""
    return lambda name, anchor="", **options: open_page(PAGES.get(name, name), anchor, **options)


@pytest.mark.parametrize("name", cases.ALL)
def test_axe_finds_nothing(show: Any, axe: Any, name: str) -> None:
    page = show(name, bypass_csp=True)
    if name != "crowded":
        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert axe(page) == []


@pytest.mark.parametrize("name", cases.ALL)
def test_no_page_scrolls_sideways(show: Any, cut_off: Any, name: str) -> None:
    assert cut_off(show(name)) == []
    page = show(name)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    for width in (1280, 760, 375, 320):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("script", [True, False])
def test_hostile_text_stays_text(show: Any, script: bool) -> None:
    page = show("hostile", java_script_enabled=script)
    assert page.locator("h1").inner_text().startswith("</script><!--<script><img src=x onerror=alert(1)>")
    assert "\\u202egpj.exe \\x1b[31mred" in page.locator("h1").inner_text()
    assert page.locator("img, b:text-is('bold'), main script").count() == 0
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\u2028]", page.locator("body").inner_text())


def test_the_first_screen_answers(show: Any) -> None:
    page = show("spike")
    text = page.locator("#answer").inner_text()
    for part in ("Cause likely", "Step 418", "02:50:54 UTC", "likely, 86 %", "Something not on the list", "Keep the run",
                 "checkpoints/step_400.pt", "metrics.jsonl line 419", cases.REPLAY, "sample 52", "152 steps repeated"):  # fmt: skip
        assert part in text
    assert page.locator(".next").bounding_box()["y"] < 800


def test_the_runs_of_one_place_are_listed_and_long_lists_folded(show: Any) -> None:
    page = show("several")
    listed = page.locator(".runs li")
    assert (
        page.locator(".runs > summary").inner_text()
        == "4 runs lie here, and this one is the worst: 1 unhealthy, 1 inconclusive and 2 healthy"
    )
    assert [x.split()[0] for x in listed.all_inner_texts()] == ["Unhealthy", "Inconclusive", "Healthy", "Healthy"]
    assert "this page" in listed.first.inner_text() and "forensics analyze runs --run llm-124m-d" in listed.last.inner_text()
    assert page.locator(".next").bounding_box()["y"] < 1000
    page = show("crowded")
    assert page.locator(".runs").get_attribute("open") is None and page.locator(".runs li").count() == 1 + run_list.SHOWN
    assert "151 runs lie here, all unhealthy; no clock tells which of these ran last" in page.locator("#answer").inner_text()


def test_an_older_case_names_its_siblings_by_path_alone(open_page: Any) -> None:
    case = cases.spike()
    case["run"]["siblings"] = ["runs/a b", "runs/c"]
    page = open_page(html.render(case))
    assert page.locator(".runs > summary").inner_text() == "3 runs lie here; the others were not judged with this one"
    assert "forensics analyze 'runs/a b'" in page.locator(".runs").inner_text()


def test_verdicts_read_as_they_should(show: Any) -> None:
    assert "Nothing needs doing." in show("healthy").locator(".next").inner_text()
    assert "a jump of 0.31 nats over one step" in show("healthy").locator("#answer").inner_text()
    page = show("inconclusive")
    assert "not logged: training loss" in page.locator("#answer").inner_text()
    assert page.locator("#clear details").first.get_attribute("open") is None  # the first screen says how many
    assert "No cause leads clearly" in show("nan").locator("#answer").inner_text()


def test_without_script_the_charts_and_folds_are_there(show: Any) -> None:
    page = show("spike", java_script_enabled=False)
    assert page.locator("#stack .panel svg.plot").count() == 4  # evaluation loss shares a panel, a constant has none
    assert page.locator("#stack .panel path.run").first.bounding_box()["width"] > 400
    assert page.locator("button:visible").count() == 0
    page.locator("#throughput-179 > summary").click()
    assert page.locator("#throughput-179 .body").is_visible()


def test_a_link_opens_the_folds_around_its_target(show: Any) -> None:
    page = show("crowded", "#throughput-5000")
    target = page.locator("#throughput-5000")
    assert target.get_attribute("open") is not None
    assert target.locator(".body").is_visible() and target.bounding_box()["y"] < 800
    page.locator("#lr_too_high a.cite").first.click()
    assert page.url.endswith("#loss_spike-0") and page.locator("#loss_spike-0 .body").is_visible()


def test_many_findings_stay_usable(show: Any) -> None:
    page = show("crowded")
    assert page.locator("details.finding").count() == 200
    assert page.locator("details.finding[open]").count() == 2 * symptom_list.OPEN_OF_A_KIND  # two of the three kinds are serious
    assert page.evaluate("document.querySelector('#symptoms').getBoundingClientRect().height") < 6000
    assert page.locator("#causes > details.cause").count() == 6


def test_theme_button_switches_and_names_the_other(show: Any) -> None:
    page = show("spike", color_scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(ground)
    assert page.locator("#theme").inner_text() == "Light"
    page.locator("#theme").click()
    assert page.evaluate(ground) != before and page.locator("#theme").inner_text() == "Dark"


def test_copy_buttons(show: Any) -> None:
    page = show("spike", permissions=["clipboard-read", "clipboard-write"])
    page.locator(".next .copy").first.click()
    assert page.evaluate("navigator.clipboard.readText()") == cases.REPLAY
    page.locator("#copy-summary").click()
    assert page.evaluate("navigator.clipboard.readText()").startswith("# Step 418 trained on a bad batch")
    page.locator("#copy-json").click()
    assert json.loads(page.evaluate("navigator.clipboard.readText()")) == cases.spike()


def test_copying_without_a_clipboard_selects_the_text(show: Any) -> None:
    page = show("spike")
    page.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    page.locator(".next .copy").first.click()
    assert page.evaluate("getSelection().toString()") == cases.REPLAY


@pytest.mark.parametrize("script", [True, False])
def test_print_opens_what_is_no_reference(show: Any, script: bool) -> None:
    page = show("spike", java_script_enabled=script, color_scheme="dark")
    folded = page.locator("#not-known details.ref").first
    page.locator("#not-known > details > summary").click()
    assert not page.locator("#not-known table").first.is_visible()
    if script:
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.locator("details:not([open], .ref)").count() == 0
        assert folded.get_attribute("open") is None
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.locator("#not-known > details").get_attribute("open") is None
    page.emulate_media(media="print")
    assert page.locator("#not-known table").first.bounding_box()["height"] > 10
    pdf = page.pdf(format="A4")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 5  # a run of 600 steps


def test_everything_is_reached_by_tab(show: Any) -> None:
    page = show("spike")
    seen = set()
    for _ in range(90):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("(e => e.id || e.textContent.trim().slice(0, 30))(document.activeElement)"))
    assert {"copy-json", "theme", "z-in", "Bad data batch"} <= seen
    assert "Skip to the answer" in seen


def test_every_finding_names_its_rule_its_file_and_what_it_says_of_the_causes(show: Any) -> None:
    case = cases.spike()
    case["checks"][0]["rule"] = "Candidates stand 5 sigmas above the median."
    page = show(html.render(case))
    finding = page.locator("#loss_spike-418")
    assert "+26 Bad data batch" in " ".join(finding.locator(".weighs").inner_text().split())
    assert "metrics.jsonl line 419" in finding.locator(".where").all_inner_texts()
    assert not page.locator("#rules dd").is_visible()
    finding.locator("a", has_text="the rule").click()
    assert page.locator("#rules dd").inner_text() == "Candidates stand 5 sigmas above the median."
    assert page.locator("#rules dd").is_visible()


def test_no_drawing_is_cut_on_paper(show: Any) -> None:
    """On a sheet of A4 no chart is wider than the paper, and none may be broken between pages."""
    page = show("spike", viewport={"width": 794, "height": 1123})
    page.emulate_media(media="print")
    wide = """() => [...document.querySelectorAll("svg.plot, table, pre")].filter((e) => e.getBoundingClientRect().width
      && e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.outerHTML.slice(0, 100))"""
    assert page.evaluate(wide) == []
    kept = "() => [...document.querySelectorAll('.panel, .hero, .ev')].every((e) => getComputedStyle(e).breakInside === 'avoid')"
    assert page.evaluate(kept)


def test_compiled_templates_are_kept_where_that_is_possible(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    case = cases.spike()
    page = html.render(case)
    (tmp_path / "templates").mkdir()
    for template in (html.HERE / "templates").glob("*.*"):
        (tmp_path / "templates" / template.name).write_bytes(template.read_bytes())
    monkeypatch.setattr(html, "HERE", tmp_path)
    kept = tmp_path / "templates" / "__pycache__"
    for _ in range(2):  # written, then read
        html.environment.cache_clear()
        assert html.render(case) == page and list(kept.iterdir())
    report = tmp_path / "templates" / "report.html"
    report.write_text(report.read_text("utf-8") + "<!-- changed -->", "utf-8")
    html.environment.cache_clear()
    assert html.render(case).endswith("<!-- changed -->")
    for file in kept.iterdir():
        file.write_bytes(file.read_bytes()[:40])  # torn
    html.environment.cache_clear()
    assert html.render(case).endswith("<!-- changed -->")
    for file in kept.iterdir():
        file.unlink()
    kept.rmdir()
    kept.write_text("a file where the folder would be")
    html.environment.cache_clear()
    assert html.render(case).endswith("<!-- changed -->")
    monkeypatch.undo()
    html.environment.cache_clear()
